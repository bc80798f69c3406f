// cermet compile: an ONNX file to a folder from which it starts without import and without compiling kernels.
#include "cli/onnx_model.hpp"
#include "cli/verb.hpp"

namespace cermet::cli::compile_verb {

Verb verb() {
  return {"compile", "import an ONNX file for given sizes and write a plan that runs without the file, with its weights and, for a GPU, its kernels",
          "  cermet compile encoder.onnx -o encoder.plan --dim batch=1..8 --dim sequence=1..512\n"
          "  cermet run encoder.plan --input input_ids=ids.npy --output results",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<OnnxOptions>();
            parser.option("MODEL", options->model, "an ONNX file").required();
            parser.option("-o,--output", options->output, "folder to make").required();
            parser.option("--dim", options->dims, "a size that the file leaves open: NAME=4, or NAME=1..8 for all of them");
            declare_mode(parser, options->mode);
            parser.option("--device", options->device, "cpu, cuda, or null:sm_90 for such a GPU without one").show_default();
            parser.option("--threads", options->threads, "of the CPU; 0 is one for each core").range(0, 1024);
            return [options](Console& console) { compile_onnx(*options, console); };
          }};
}

}  // namespace cermet::cli::compile_verb

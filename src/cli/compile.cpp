// cermet compile: an ONNX file to a folder from which it starts without import and without compiling kernels.
#include "cli/model_options.hpp"
#include "cli/onnx_model.hpp"
#include "cli/verb.hpp"

namespace cermet::cli::compile_verb {

Verb verb() {
  return {"compile", "compile an ONNX file to a plan that starts at once",
          "cermet compile models/demo_onnx/classifier.onnx -o classifier.plan --dim batch=1..8\n"
          "cermet run classifier.plan --input x=x.npy",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<OnnxOptions>();
            parser.option("MODEL <FILE.onnx>", options->model, "an ONNX file").required();
            parser
                .option("-o,--output <DIR>", options->output,
                        "folder to make, with the weights and, for a GPU, its kernels")
                .required();
            declare_dims(parser, *options);
            declare_mode(parser, options->mode);
            declare_device(parser, options->device, options->threads, "null:sm_90 compiles for such a GPU without one");
            return [options](Console& console) { compile_onnx(*options, console); };
          }};
}

}  // namespace cermet::cli::compile_verb

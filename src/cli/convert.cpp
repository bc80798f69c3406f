// cermet convert: converts a quantized checkpoint to the other descriptor's format.
#include "quant/convert.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "cli/verb.hpp"

namespace cermet::cli::convert_verb {
namespace {

struct Options {
  std::string folder, to, out;
  bool allow_rounding = false, plain_experts = false;
  std::int64_t max_file_bytes = std::int64_t{4} << 30;
};

void convert_folder(const Options& options, Console& console) {
  stop_at_own_pace();
  ExportOptions target;
  target.allow_rounding = options.allow_rounding;
  target.pack_experts = !options.plain_experts;
  target.format = options.to == "modelslim" ? ExportFormat::modelslim : ExportFormat::compressed_tensors;
  target.shards.max_file_bytes = options.max_file_bytes;
  target.shards.cancelled = &interrupted();
  ConvertResult result;
  {
    Progress progress("writing " + options.out);
    target.shards.on_progress = [&](std::int64_t done, std::int64_t total) { progress.update(done, total); };
    result = convert(options.folder, options.out, target);
  }
  if (console.json()) {
    console.write_json({{"out", options.out},
                        {"to", options.to},
                        {"tensors", result.tensors},
                        {"bytes", result.bytes},
                        {"rounded", result.rounded}});
    return;
  }
  for (const std::string& line : result.rounded) console.print("rounded: {}\n", line);
  console.print("{}: {} tensors, {}, {}\n", options.out, result.tensors, bytes_text(static_cast<double>(result.bytes)),
                result.rounded.empty() ? "quantized values and scales bit for bit the same"
                                       : "quantized values bit for bit the same");
}

}  // namespace

Verb verb() {
  return {"convert", "convert a quantized checkpoint to the other format",
          "  cermet convert /tmp/demo-int8 --to modelslim -o /tmp/demo-slim\n"
          "  cermet convert /tmp/demo-slim --to compressed-tensors -o /tmp/demo-back",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("FOLDER <DIR>", options->folder, "a quantized checkpoint, compressed-tensors or ModelSlim")
                .required();
            parser.option("--to <FORMAT>", options->to, "format to write")
                .required()
                .values({"compressed-tensors", "modelslim"});
            parser.option("-o,--output,--out <DIR>", options->out, "folder to create; it may exist if it is empty")
                .required();
            parser.flag(
                "--allow-rounding", options->allow_rounding,
                "round what the target cannot hold exactly (biases of modules with static input scales) and list it");
            parser.flag(
                "--plain-experts", options->plain_experts,
                "do not pack int8 weights of experts: vLLM needs that for int8 inputs, transformers 5 cannot load it");
            parser
                .option("--max-file-bytes", options->max_file_bytes,
                        "tensor data of one file; a larger tensor gets one of its own")
                .range(std::int64_t{1}, std::int64_t{1} << 50)
                .show_default();
            return [options](Console& console) { convert_folder(*options, console); };
          }};
}

}  // namespace cermet::cli::convert_verb

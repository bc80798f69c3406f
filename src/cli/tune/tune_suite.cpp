// cermet tune suite: calls of several operators in one budget.
#include "cli/model_options.hpp"
#include "cli/op_call.hpp"
#include "cli/tune/tune_run.hpp"
#include "io/json_file.hpp"
#include "op/schema/region_text.hpp"

namespace cermet::cli::tune_suite_verb {
namespace {

struct Options {
  TuneRunOptions run;
  std::string file, device = "cpu";
  std::int64_t tokens = 512;
  int threads = 0;
};

Region parse_entry(const cermet::Json& json, std::int64_t tokens) {
  const auto region = json.find("region");
  const std::string op(region ? region->as_string() : json.at("op").as_string()),
      shape(region ? std::string_view() : json.at("shape").as_string());
  if (region && !is_region_text(op)) region->refuse("expected a region in place of op and shape");
  std::string constants;
  for (const cermet::Json& field : json.as_object()) {
    if (field.key() == "constants") constants = field.as_string();
    else if (field.key() != "name" && field.key() != "region" &&
             ((field.key() != "op" && field.key() != "shape") || region))
      field.refuse("expected name, op and shape or region, or constants");
  }
  Region parsed = parse_region_call(op, shape, tokens);
  mark_constants(parsed, constants);
  return parsed;
}

void tune(Console& console, const Options& options) {
  const JsonDocument document = JsonDocument::read(options.file);
  const Context context({options.device, options.threads});
  std::vector<TuneJob> jobs;
  for (const cermet::Json& json : document.root().as_array()) {
    Region region = parse_entry(json, options.tokens);
    region.set_target(context.target());
    add_job(jobs, {.region = std::move(region)});
  }
  run_tuning(console, context, jobs, options.run);
}

}  // namespace

Verb verb() {
  return {
      "tune suite", "tune the calls that a file lists",
      "  cermet tune suite calls.json --device cuda --budget 60 --json", [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        parser
            .option(
                "FILE <FILE.json>", options->file,
                "a list of objects with op and shape (as for bench op) or region, and optionally name and constants")
            .required();
        parser.option("--tokens", options->tokens, "largest value of a symbolic dimension")
            .range(1, 1 << 30)
            .show_default();
        declare_tune_options(parser, options->run);
        declare_device(parser, options->device, options->threads);
        return [options](Console& console) { tune(console, *options); };
      }};
}

}  // namespace cermet::cli::tune_suite_verb

// cermet bench op: how fast one kernel computes one call.
#include "cli/bench/bench_call.hpp"
#include "cli/bench/device_limits.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/verb.hpp"
#include "kernel/cpu/measure_limits.hpp"
#include "op/schema/region_text.hpp"

namespace cermet::cli::bench_op_verb {
namespace {

struct Options {
  BenchCall call;
  std::string device = "cpu", paging = "scattered";
  int threads = 0;
  bool limits = false;
};

/// What a call reached of limits measured now.
void add_limits(Json& json, Context& context) {
  if (context.target()) json["limits"] = limits_json(measure_device_limits(context, 0.1), context.device());
  else {
    const cpu::Limits limits = cpu::measure_limits(context.pool(), 0.5, stop_if_interrupted);
    json["limits"] = limits_json(limits);
  }
  const Json limits = json["limits"];  // not a reference: new keys move the others
  const auto fraction = [&](const char* rate, const char* limit) {
    return limits[limit].get<double>() > 0 ? Json(json[rate].get<double>() / limits[limit].get<double>()) : Json();
  };
  json["bandwidth_fraction"] = fraction("bytes_per_second", "read_bytes_per_second");
  for (const char* type : {"f32", "bf16", "int8"})
    json[fmt::format("{}_fraction", type)] =
        fraction("operations_per_second", fmt::format("{}_operations_per_second", type).c_str());
}

std::string limits_text(const Json& json) {
  Table table;
  table.row({"of read bandwidth", fmt::format("{:.1f} %", 100 * json["bandwidth_fraction"].get<double>())});
  for (const char* type : {"f32", "bf16", "int8"}) {
    const Json& fraction = json[fmt::format("{}_fraction", type)];
    if (!fraction.is_null())
      table.row({fmt::format("of {} peak", type), fmt::format("{:.1f} %", 100 * fraction.get<double>())});
  }
  return table.to_string();
}

void bench(Console& console, Options& options) {
  require(!options.call.shape.empty() || is_region_text(options.call.op),
          "--shape: expected operand types, as in --shape \"x=bf16[8,4096]\", found none");
  options.call.values.paging = parse_paging(options.paging);
  Context context = bench_context(options.device, options.threads);
  Json json = measure_call(options.call, bind_call(options.call, context), context);
  if (options.limits) add_limits(json, context);
  if (console.json()) return console.write_json(json);
  console.print("{}\n{}{}", json["problem"].get<std::string>(), measured_text(json),
                options.limits ? limits_text(json) : "");
}

}  // namespace

Verb verb() {
  return {"bench op", "measure one operator on random operands",
          "  cermet bench op linear --shape 'x=bf16[1,2048] w=bf16[8192,2048]' --cold --limits\n"
          "  cermet bench op rms_norm --shape 'bf16[512,2048] bf16[2048]' --device cuda --cold --json\n"
          "  cermet bench op '{n0 = rms_norm($0: f32[1, 4096], $1: f32[4096]); n1 = linear(strict n0, $2: bf16[6144, "
          "4096])} anchor n1 -> n1' --device cuda",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser
                .option("NAME <OPERATOR>", options->call.op,
                        "an operator, or a region, as timelines and `bench model --plan --json` print it")
                .required();
            parser.option("--shape <CALL>", options->call.shape,
                          "operand types by name or in order, attributes as name=value");
            parser.option("--tokens", options->call.tokens, "value of a symbolic dimension")
                .range(1, 1 << 30)
                .show_default();
            parser.option("--constant <NAMES>", options->call.constants,
                          "operands known before the first run ($2 of a region), or none; by default those that a "
                          "kernel would prepack");
            parser.option("--kernel <NAME>", options->call.kernel, "this kernel instead of the chosen one");
            parser.option("--config <FIELDS>", options->call.config,
                          "its configuration, as `cermet explain op` lists them: 'tile_m=128 tile_n=64 stages=4'");
            parser.section("Measurement");
            parser.flag("--cold", options->call.cold, "cycle through copies of the operands that no cache holds");
            parser.flag("--limits", options->limits,
                        "measure the machine's limits, too, and print the fraction of each that was reached");
            parser.option("--seconds", options->call.seconds, "how long to measure").range(0.0, 3600.0).show_default();
            parser.option("--seed", options->call.values.seed, "seed of the operands' values").show_default();
            parser.option("--paging <HOW>", options->paging, "pages of a cache; uneven: with contexts of all lengths")
                .values({"contiguous", "scattered", "uneven"})
                .show_default();
            declare_device(parser, options->device, options->threads,
                           "on a GPU, replays of a captured graph are timed");
            return [options](Console& console) { bench(console, *options); };
          }};
}

}  // namespace cermet::cli::bench_op_verb

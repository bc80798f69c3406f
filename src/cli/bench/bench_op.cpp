// cermet bench op: how fast one kernel computes one call.
#include "cli/bench/bench_call.hpp"
#include "cli/bench/device_limits.hpp"
#include "cli/model_options.hpp"
#include "cli/verb.hpp"
#include "op/schema/region_text.hpp"

namespace cermet::cli::bench_op_verb {
namespace {

struct Options {
  BenchCall call;
  std::string device = "cpu", paging = "scattered";
  int threads = 0;
  bool limits = false;
};

/// The fraction of a limit that a call reached; nothing where the machine has no unit.
struct Reached {
  std::string key, label;
  std::optional<double> fraction;
};

std::vector<Reached> reached(const MeasuredCall& call, const MeasuredLimits& limits) {
  const PeakRates most = peak_rates(limits);
  const auto share = [](double rate, double limit) { return limit > 0 ? std::optional(rate / limit) : std::nullopt; };
  const double rate = call.operations_per_second();
  return {{"bandwidth_fraction", "of read bandwidth", share(call.bytes_per_second(), most.read_bytes_per_second)},
          {"f32_fraction", "of f32 peak", share(rate, most.f32)},
          {"bf16_fraction", "of bf16 peak", share(rate, most.bf16)},
          {"int8_fraction", "of int8 peak", share(rate, most.int8)}};
}

void bench(Console& console, Options& options) {
  require(!options.call.shape.empty() || is_region_text(options.call.op),
          "--shape: expected operand types, as in --shape \"x=bf16[8,4096]\", found none");
  options.call.values.paging = parse_paging(options.paging);
  Context context = bench_context(options.device, options.threads);
  const BoundCall bound = bind_call(options.call, context);
  const MeasuredCall measured = measure_call(options.call, bound, context);
  std::optional<MeasuredLimits> limits;
  std::vector<Reached> shares;
  if (options.limits) shares = reached(measured, limits.emplace(measure_machine(context, 0.1, 0.5)));
  if (!console.json()) {
    Table table;
    for (const Reached& each : shares)
      if (each.fraction) table.row({each.label, fmt::format("{:.1f} %", 100 * *each.fraction)});
    return console.print("{}\n{}{}", bound.region.to_string(), text_of(measured, bound, context), table.to_string());
  }
  Json json = json_of(measured, bound, context);
  if (limits) json["limits"] = limits_json(*limits, context.device());
  for (const Reached& each : shares) json[each.key] = each.fraction ? Json(*each.fraction) : Json();
  console.write_json(json);
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

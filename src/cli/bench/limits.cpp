// cermet limits: what this machine can do at most, the numbers that kernels are measured against.
#include "cli/bench/device_limits.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/verb.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/measure_limits.hpp"
#include "runtime/limits_store.hpp"

namespace cermet::cli::limits_verb {
namespace {

struct Options {
  std::string device = "cpu";
  double seconds = 1;
  int threads = 0;
  bool store = false;
};

std::string rate_text(double rate, std::string_view unit) {
  return rate == 0 ? "no instruction for it" : fmt::format("{:.1f} {}", rate * 1e-9, unit);
}

void measure_cpu(Console& console, const Options& options) {
  ThreadPool pool(options.threads);
  const std::string_view isa = cpu::name_of(cpu::active_isa());
  const cpu::Limits limits = cpu::measure_limits(pool, options.seconds, stop_if_interrupted);
  if (console.json()) {
    Json json{{"threads", pool.size()}, {"instruction_set", isa}};
    json.update(limits_json(peak_rates(limits)));
    return console.write_json(json);
  }
  Table table;
  table.row({"read bandwidth", rate_text(limits.read_bytes_per_second, "GB/s")});
  table.row({"f32 peak", rate_text(limits.f32_flops, "GFLOP/s")});
  table.row({"bf16 peak", rate_text(limits.bf16_flops, "GFLOP/s")});
  table.row({"int8 peak", rate_text(limits.int8_ops, "GOP/s")});
  table.row({"bf16 peak of AMX", rate_text(limits.amx_bf16_flops, "GFLOP/s")});
  table.row({"int8 peak of AMX", rate_text(limits.amx_int8_ops, "GOP/s")});
  console.print("limits of {} threads with {}, measured now\n{}", pool.size(), isa, table.to_string());
}

void measure(Console& console, const Options& options) {
  require(!options.store || options.device != "cpu",
          "--store: expected a GPU (--device cuda), whose kernels are chosen by its limits, found cpu");
  if (options.device == "cpu") return measure_cpu(console, options);
  Context context({options.device, options.threads});
  const std::filesystem::path file = options.store ? limits_file(context.device()) : std::filesystem::path();
  require(!options.store || !file.empty(), "--store: expected a cache folder, found none: set CERMET_CACHE_DIR");
  const cuda::Limits limits = measure_device_limits(context, options.seconds / 10);
  if (options.store) store_limits(context.device(), file, device_limits(limits));
  Json json = limits_json(limits, context.device());
  if (options.store) json["stored"] = file.string();
  if (console.json()) return console.write_json(json);
  console.print("limits of {}, measured now\n{}", context.device().name(), limits_table(limits));
  if (options.store) console.print("stored in {}\n", file.string());
}

}  // namespace

Verb verb() {
  return {"limits", "measure this machine's bandwidth and peak rates",
          "  cermet limits\n  cermet limits --threads 1 --json\n  cermet limits --device cuda --store",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("--seconds", options->seconds, "time for each rate; a tenth of it for each figure of a GPU")
                .range(0.01, 60.0)
                .show_default();
            parser.flag("--store", options->store,
                        "keep a GPU's limits in the cache folder: kernels are then chosen by them");
            declare_device(parser, options->device, options->threads,
                           "on a GPU, launch costs and reads by size are measured, too");
            return [options](Console& console) { measure(console, *options); };
          }};
}

}  // namespace cermet::cli::limits_verb

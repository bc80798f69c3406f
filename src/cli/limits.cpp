// cermet limits: what this machine can do at most, the numbers that kernels are measured against.
#include "kernel/cpu/limits.hpp"
#include "cli/device_limits.hpp"
#include "cli/verb.hpp"
#include "kernel/cpu/isa.hpp"

namespace cermet::cli {
namespace {

struct Options {
  std::string device = "cpu";
  double seconds = 1;
  int threads = 0;
};

std::string rate_text(double rate, std::string_view unit) { return rate == 0 ? "no instruction for it" : fmt::format("{:.1f} {}", rate * 1e-9, unit); }

void measure_cpu(Console& console, const Options& options) {
  ThreadPool pool(options.threads);
  const std::string_view isa = cpu::name_of(cpu::active_isa());
  const cpu::Limits limits = cpu::measure_limits(pool, options.seconds);
  if (console.json()) {
    Json json{{"threads", pool.size()}, {"instruction_set", isa}};
    json.update(limits_json(limits));
    return console.write_json(json);
  }
  Table table;
  table.row({"read bandwidth", rate_text(limits.read_bytes_per_second, "GB/s")});
  table.row({"f32 peak", rate_text(limits.f32_flops, "GFLOP/s")});
  table.row({"bf16 peak", rate_text(limits.bf16_flops, "GFLOP/s")});
  table.row({"int8 peak", rate_text(limits.int8_ops, "GOP/s")});
  console.print("limits of {} threads with {}, measured now\n{}", pool.size(), isa, table.to_string());
}

void measure(Console& console, const Options& options) {
  if (options.device == "cpu") return measure_cpu(console, options);
  Context context({options.device, options.threads});
  const cuda::Limits limits = measure_device_limits(context, options.seconds / 10);
  if (console.json()) return console.write_json(limits_json(limits, context.device()));
  console.print("limits of {}, measured now\n{}", context.device().name(), limits_table(limits));
}

}  // namespace

Verb limits_verb() {
  return {"limits", "this machine's bandwidths and peak rates, measured now",
          "  cermet limits\n  cermet limits --threads 1 --json\n  cermet limits --device cuda", [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("--device", options->device, "cpu or cuda; of a GPU also what launches cost and reads take by size").show_default();
            parser.option("--seconds", options->seconds, "time for each rate; a tenth of it for each figure of a GPU").range(0.01, 60.0).show_default();
            parser.option("--threads", options->threads, "threads; 0 is one for each core").range(0, 1024).show_default();
            return [options](Console& console) { measure(console, *options); };
          }};
}

}  // namespace cermet::cli

// The speed of an ONNX model, against the machine's limits where asked.
#include <algorithm>
#include <chrono>

#include "cli/bench/device_limits.hpp"
#include "cli/onnx_model.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/process.hpp"
#include "runtime/explain.hpp"

namespace cermet::cli::bench_onnx_file {
namespace {

/// Runs on a device are timed so many in a row: how long the host takes to start one and to hear of its end is no speed
/// of the model.
constexpr int runs_in_a_row = 20;

/// Of one run, the start and the wait for its end included.
double time(OnnxModel& model) {
  const auto start = std::chrono::steady_clock::now();
  model.run();
  if (Stream* stream = model.context().stream()) stream->synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double time_in_a_row(OnnxModel& model, Stream& stream) {
  const auto start = stream.make_event(), end = stream.make_event();
  model.run();  // keeps the device busy until the first that is timed is there
  stream.record(*start);
  for (int i = 0; i < runs_in_a_row; ++i) model.run();
  stream.record(*end);
  stream.synchronize();
  return stream.seconds_between(*start, *end) / runs_in_a_row;
}

/// A device that waited, for kernels to be compiled, has lowered its clocks: the first tenths of a second are slower.
void warm_up(OnnxModel& model) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500)) {
    stop_if_interrupted();
    time(model);
  }
}

/// In rising order. `measure` takes one measurement.
template <class Measure>
std::vector<double> times_of(int repeat, Measure&& measure) {
  std::vector<double> seconds;
  for (int i = 0; i < std::max(repeat, 1); ++i) {
    stop_if_interrupted();
    seconds.push_back(measure());
  }
  std::ranges::sort(seconds);
  return seconds;
}

void time_steps(OnnxModel& model, int runs) {
  for (const onnx::PartInfo& part : model.compiled().parts())
    if (part.session) const_cast<Session*>(part.session)->executable().set_timing(true);
  for (int i = 0; i < runs; ++i) model.run();
}

/// Operations of a run, and the rates that the device reaches at most; those of a CPU are measured while nothing else
/// runs on its threads.
struct Limits {
  Cost work;
  MeasuredLimits machine;

  explicit Limits(OnnxModel& model) {
    time_steps(model, 1);
    for (const StepInfo& step : steps_of_onnx(model.compiled())) {
      work.operations += step.work.operations;
      work.bytes += step.work.bytes;
    }
    machine = measure_machine(model.context());
  }
};

struct Report {
  std::int64_t peak_memory;               ///< before limits are measured
  double first, latency, seconds, least;  ///< seconds; latency: of a run alone
  std::size_t runs;
  std::optional<Limits> limits = {};
  std::optional<std::vector<KernelUse>> steps = {};  ///< timed
};

std::string limits_text(const Limits& limits, double seconds) {
  const PeakRates rates = peak_rates(limits.machine);
  return fmt::format(
      "{}, {} of operands and results: {} and {}, where the machine reaches f32 {}, bf16 {} and reads {}",
      amount_text(limits.work.operations, "FLOP"), bytes_text(limits.work.bytes),
      amount_text(limits.work.operations / seconds, "FLOP/s"), amount_text(limits.work.bytes / seconds, "B/s"),
      amount_text(rates.f32, "FLOP/s"), amount_text(rates.bf16, "FLOP/s"),
      amount_text(rates.read_bytes_per_second, "B/s"));
}

std::string text_of(const Report& report, OnnxModel& model, const OnnxOptions& options) {
  const auto bytes = [](std::int64_t count) { return bytes_text(static_cast<double>(count)); };
  Table table;
  table.row({"model", fmt::format("{}, {}", options.model, model.context().description())});
  table.row({"run", fmt::format("{}, median of {}; least {}", seconds_text(report.seconds), report.runs,
                                seconds_text(report.least))});
  if (model.context().stream())
    table.row({"latency", seconds_text(report.latency) + " of a run alone, until the host knows its end"});
  if (report.limits) table.row({"limits", limits_text(*report.limits, report.seconds)});
  table.row({"start", seconds_text(report.first) + " to the first result"});
  table.row({"memory", fmt::format("{} at the peak; weights {}, intermediates {}", bytes(report.peak_memory),
                                   bytes(model.compiled().weight_bytes()), bytes(model.compiled().arena_bytes()))});
  return table.to_string() + (report.steps ? "\n" + kernel_table(*report.steps) : "");
}

/// `json`: what compiling took and what the model holds.
Json with_report(Json json, const Report& report, OnnxModel& model, const OnnxOptions& options) {
  json["model"] = options.model;
  json["first_run_seconds"] = report.first;
  json["seconds"] = report.seconds;
  json["least_seconds"] = report.least;
  json["latency_seconds"] = report.latency;
  if (report.limits) {
    json["operations"] = report.limits->work.operations;
    json["bytes"] = report.limits->work.bytes;
    json["limits"] = limits_json(report.limits->machine, model.context().device());
  }
  if (report.steps) json["step_kernels"] = kernel_times_json(*report.steps);
  return json;
}

}  // namespace
}  // namespace cermet::cli::bench_onnx_file

namespace cermet::cli {

void bench_onnx(const OnnxOptions& options, const OnnxBench& bench, Console& console) {
  using namespace bench_onnx_file;
  OnnxModel model(options);
  if (bench.plan) {
    model.run();
    console.write(explain(steps_of_onnx(model.compiled())));
    return console.flush();
  }
  const double first = time(model);
  model.place_operands();  // what runs take with their operands at hand
  time(model);
  Stream* const stream = model.context().computes() ? model.context().stream() : nullptr;
  if (stream) warm_up(model);
  const std::vector<double> alone = times_of(bench.repeat, [&] { return time(model); });
  const std::vector<double> seconds =
      stream ? times_of(bench.repeat, [&] { return time_in_a_row(model, *stream); }) : alone;
  Report report{peak_memory_bytes(),         first,           alone[alone.size() / 2],
                seconds[seconds.size() / 2], seconds.front(), seconds.size()};
  Json figures = onnx_figures(model);  // whose kernels are in the order of times once those are taken
  if (bench.limits) report.limits.emplace(model);
  if (bench.steps) {
    time_steps(model, std::max(bench.repeat, 1));
    report.steps = kernels_used(steps_of_onnx(model.compiled()));
  }
  if (console.json()) console.write_json(with_report(std::move(figures), report, model, options));
  else console.write(text_of(report, model, options));
  console.flush();
}

}  // namespace cermet::cli

// The speed of an ONNX model, against the machine's limits where asked.
#include <algorithm>
#include <chrono>

#include "cli/bench/device_limits.hpp"
#include "cli/onnx_model.hpp"
#include "cli/ui/interrupt.hpp"
#include "kernel/cpu/measure_limits.hpp"
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
void add_limits(OnnxModel& model, Json& json) {
  time_steps(model, 1);
  Cost work;
  for (const StepInfo& step : steps_of_onnx(model.compiled())) {
    work.operations += step.work.operations;
    work.bytes += step.work.bytes;
  }
  Context& context = model.context();
  json["operations"] = work.operations;
  json["bytes"] = work.bytes;
  json["limits"] = context.target() ? limits_json(measure_device_limits(context, 0.05), context.device())
                                    : limits_json(cpu::measure_limits(context.pool(), 0.3, stop_if_interrupted));
}

std::string limits_text(const Json& json) {
  const auto rate = [&](const char* name, const char* unit) {
    return amount_text(json["limits"][name].get<double>(), unit);
  };
  const double seconds = json["seconds"].get<double>(), operations = json["operations"].get<double>(),
               bytes = json["bytes"].get<double>();
  return fmt::format(
      "{}, {} of operands and results: {} and {}, where the machine reaches f32 {}, bf16 {} and reads {}",
      amount_text(operations, "FLOP"), bytes_text(bytes), amount_text(operations / seconds, "FLOP/s"),
      amount_text(bytes / seconds, "B/s"), rate("f32_operations_per_second", "FLOP/s"),
      rate("bf16_operations_per_second", "FLOP/s"), rate("read_bytes_per_second", "B/s"));
}

std::string text(OnnxModel& model, const OnnxOptions& options, const Json& json, std::size_t runs) {
  const auto bytes = [](std::int64_t count) { return bytes_text(static_cast<double>(count)); };
  Table table;
  table.row({"model", fmt::format("{}, {}", options.model, model.context().description())});
  table.row({"run", fmt::format("{}, median of {}; least {}", seconds_text(json["seconds"].get<double>()), runs,
                                seconds_text(json["least_seconds"].get<double>()))});
  if (model.context().stream())
    table.row({"latency", fmt::format("{} of a run alone, until the host knows its end",
                                      seconds_text(json["latency_seconds"].get<double>()))});
  if (json.contains("limits")) table.row({"limits", limits_text(json)});
  table.row({"start", fmt::format("{} to the first result", seconds_text(json["first_run_seconds"].get<double>()))});
  table.row({"memory", fmt::format("{} at the peak; weights {}, intermediates {}",
                                   bytes(json["peak_memory_bytes"].get<std::int64_t>()),
                                   bytes(model.compiled().weight_bytes()), bytes(model.compiled().arena_bytes()))});
  return table.to_string();
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
  Json json = onnx_figures(model);
  json["model"] = options.model;
  json["first_run_seconds"] = first;
  json["seconds"] = seconds[seconds.size() / 2];
  json["least_seconds"] = seconds.front();
  json["latency_seconds"] = alone[alone.size() / 2];
  if (bench.limits) add_limits(model, json);
  if (bench.steps) time_steps(model, std::max(bench.repeat, 1));
  const std::vector<KernelUse> uses = kernels_used(steps_of_onnx(model.compiled()));
  if (bench.steps) json["step_kernels"] = kernel_times_json(uses);
  if (console.json()) console.write_json(json);
  else console.print("{}{}", text(model, options, json, seconds.size()), bench.steps ? "\n" + kernel_table(uses) : "");
  console.flush();
}

}  // namespace cermet::cli

#include "cli/trace.hpp"

#include <algorithm>
#include <chrono>

#include "cli/bench_batch.hpp"
#include "cli/device_limits.hpp"
#include "cli/interrupt.hpp"
#include "io/posix_file.hpp"

namespace cermet::cli {
namespace {

constexpr int process = 1, pass_row = 1, kernel_row = 2;

/// What bounds launches.
struct Limits {
  Json json;  ///< as measured; null where nothing computes
  std::optional<DeviceLimits> device;
};

Limits measure(Engine& engine) {
  if (!engine.computes()) return {};
  if (engine.context().target()) {
    const cuda::Limits found = measure_device_limits(engine.context(), 0.05);
    return {limits_json(found, engine.context().device()), device_limits(found)};
  }
  const cpu::Limits found = cpu::measure_limits(engine.pool(), 0.3);
  return {limits_json(found), device_limits(found)};
}

std::vector<std::string> operand_types(const Region& region) {
  std::vector<std::string> types;
  for (std::size_t i = 0; i < region.operands.size(); ++i) types.push_back(region.has(i) ? region.operand_type(i).to_string() : "-");
  return types;
}

class Trace {
 public:
  Trace(Engine& engine, Limits limits) : engine_(engine), limits_(std::move(limits)), begin_(std::chrono::steady_clock::now()) {
    name_row("process_name", 0, engine.device_name());
    name_row("thread_name", pass_row, "passes");
    name_row("thread_name", kernel_row, "kernels");
  }

  /// Adds the run that has just ended.
  void add(const std::string& pass, std::int64_t tokens) {
    const EngineRun run = engine_.last_run();
    const double start = std::chrono::duration<double>(run.start - begin_).count();
    const double seconds = run.launches.empty() ? 0 : run.launches.back().start + run.launches.back().seconds;
    events_.push_back(event(pass, "pass", pass_row, start, seconds, {{"tokens", tokens}, {"launches", run.launches.size()}}));
    for (const LaunchTime& launch : run.launches)
      events_.push_back(event(run.steps[launch.step].kernel, run.steps[launch.step].region.operators(), kernel_row, start + launch.start, launch.seconds,
                              arguments(run.steps[launch.step], launch)));
  }

  Json json(const TraceOptions& options) const {
    const ModelConfig& config = engine_.config();
    return {{"traceEvents", events_},
            {"displayTimeUnit", "ns"},
            {"otherData",
             {{"architecture", config.architecture_name},
              {"dtype", name_of(engine_.dtype())},
              {"device", engine_.device_name()},
              {"prompt_tokens", options.prompt_tokens},
              {"decode_steps", options.decode_steps},
              {"limits", limits_.json}}}};
  }

 private:
  /// Times are in microseconds.
  static Json event(const std::string& name, const std::string& category, int row, double start, double seconds, Json arguments) {
    return {{"name", name}, {"cat", category}, {"ph", "X"}, {"ts", start * 1e6}, {"dur", seconds * 1e6}, {"pid", process}, {"tid", row}, {"args", arguments}};
  }

  void name_row(const char* what, int row, const std::string& name) {
    events_.push_back({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}});
  }

  Json arguments(const StepInfo& step, const LaunchTime& launch) const {
    Json json{{"scope", step.scope},
              {"kernel", step.kernel},
              {"operator", step.region.operators()},
              {"operands", operand_types(step.region)},
              {"region", step.region.to_string()},
              {"bytes", launch.work.bytes},
              {"operations", launch.work.operations}};
    if (step.fallbacks > 0) json["fallbacks"] = step.fallbacks;
    if (!limits_.device || launch.seconds <= 0) return json;
    const ModelledTime least = modelled_time(step.region.problem(), launch.work, *limits_.device);
    json["bytes_per_second"] = launch.work.bytes / launch.seconds;
    json["operations_per_second"] = launch.work.operations / launch.seconds;
    json["bound_by"] = least.bound_by();
    json["fraction_of_limit"] = least.seconds() / launch.seconds;
    return json;
  }

  Engine& engine_;
  Limits limits_;
  std::chrono::steady_clock::time_point begin_;
  Json events_ = Json::array();
};

void run_pass(Engine& engine, std::span<const std::int32_t> ids) {
  stop_if_interrupted();
  const SequenceTokens tokens{0, ids};
  engine.forward({&tokens, 1}, Engine::Logits::last, Engine::Memory::device);
}

/// Both phases; `trace` gets every pass where it is given.
void run_phases(Engine& engine, const TraceOptions& options, Trace* trace) {
  engine.reset(0);
  const std::vector<std::int32_t> ids = some_ids(options.prompt_tokens + options.decode_steps, engine.config().vocab_size);
  const std::span<const std::int32_t> all(ids);
  const auto most = static_cast<std::size_t>(engine.max_batch_tokens()), prompt = static_cast<std::size_t>(options.prompt_tokens);
  for (std::size_t at = 0; at < prompt; at += most) {
    const auto part = all.subspan(at, std::min(most, prompt - at));
    run_pass(engine, part);
    if (trace) trace->add(fmt::format("prefill {} to {}", at, at + part.size()), static_cast<std::int64_t>(part.size()));
  }
  for (std::size_t step = 0; step < ids.size() - prompt; ++step) {
    run_pass(engine, all.subspan(prompt + step, 1));
    if (trace) trace->add(fmt::format("decode {}", step), 1);
  }
}

}  // namespace

void check_trace_file(const std::filesystem::path& file) {
  const std::filesystem::path temporary = temporary_sibling(file);
  { PosixFile::create(temporary); }
  std::error_code error;
  std::filesystem::remove(temporary, error);
  if (std::filesystem::is_directory(file, error)) fail(Status::io, "{}: expected a file, found a folder", file.string());
}

void write_trace(const std::filesystem::path& file, Engine& engine, const TraceOptions& options) {
  Limits limits = measure(engine);
  engine.set_timing(true);
  run_phases(engine, options, nullptr);  // warms up
  Trace trace(engine, std::move(limits));
  run_phases(engine, options, &trace);
  engine.set_timing(false);
  write_file_atomically(file, trace.json(options).dump() + "\n");
}

}  // namespace cermet::cli

#include "cli/trace.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "cli/bench/bench_batch.hpp"
#include "cli/bench/device_limits.hpp"
#include "cli/ui/interrupt.hpp"
#include "io/output_target.hpp"
#include "io/posix_file.hpp"

namespace cermet::cli {
namespace {

constexpr int process = 1, pass_row = 1,
              kernel_row = 2;  // super-kernels are processes of their own, whose rows are blocks

std::vector<std::string> operand_types(const Region& region) {
  std::vector<std::string> types;
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    types.push_back(region.has(i) ? region.operand_type(i).to_string() : "-");
  return types;
}

class Trace {
 public:
  /// `limits`: what bounds launches; nothing where nothing computes.
  Trace(Engine& engine, std::optional<MeasuredLimits> limits)
      : engine_(engine), limits_(std::move(limits)), begin_(std::chrono::steady_clock::now()) {
    name_row("process_name", process, 0, engine.device_name());
    name_row("thread_name", process, pass_row, "passes");
    name_row("thread_name", process, kernel_row, "kernels");
  }

  /// Adds the run that has just ended.
  void add(const std::string& pass, std::int64_t tokens) {
    const EngineRun run = engine_.last_run();
    const double start = std::chrono::duration<double>(run.start - begin_).count();
    const double seconds = run.launches.empty() ? 0 : run.launches.back().start + run.launches.back().seconds;
    add_event(pass, "pass", {process, pass_row}, start, seconds,
              {{"tokens", tokens}, {"launches", run.launches.size()}});
    for (const LaunchTime& launch : run.launches)
      add_event(run.steps[launch.step].kernel, run.steps[launch.step].region.operators(), {process, kernel_row},
                start + launch.start, launch.seconds, arguments(run.steps[launch.step], launch));
    add_tasks(engine_.last_executable().task_times(), start);
  }

  /// Adds the tasks of a run that was not timed and has just ended; nothing where its super-kernels were not launched
  /// as one.
  void add_walked(const std::string& pass, std::int64_t tokens) {
    const EngineRun run = engine_.last_run();
    const std::vector<TaskTime> tasks = engine_.last_executable().task_times();
    if (tasks.empty()) return;
    const double start = std::chrono::duration<double>(run.start - begin_).count();
    add_event(pass, "pass", {process, pass_row}, start, std::ranges::max(tasks, {}, &TaskTime::announced).announced,
              {{"tokens", tokens}, {"tasks", tasks.size()}});
    add_tasks(tasks, start);
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
              {"limits", limits_ ? limits_json(*limits_, engine_.context().device()) : Json()}}}};
  }

 private:
  struct Row {
    int process, thread;
  };

  /// Times are in microseconds.
  void add_event(const std::string& name, const std::string& category, Row row, double start, double seconds,
                 Json arguments) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", start * 1e6},
                       {"dur", seconds * 1e6},
                       {"pid", row.process},
                       {"tid", row.thread},
                       {"args", std::move(arguments)}});
  }

  void name_row(const char* what, int of_process, int row, const std::string& name) {
    events_.push_back({{"name", what}, {"ph", "M"}, {"pid", of_process}, {"tid", row}, {"args", {{"name", name}}}});
  }

  /// The row of a block of a super-kernel, named when it is first asked for.
  Row row_of(const TaskTime& task) {
    const auto [at, added] = super_kernels_.try_emplace(std::string(task.super_kernel),
                                                        process + 1 + static_cast<int>(super_kernels_.size()));
    if (added) name_row("process_name", at->second, 0, "super-kernel " + at->first);
    const Row row{at->second, task.block};
    if (blocks_.emplace(row.process, row.thread).second)
      name_row("thread_name", row.process, row.thread,
               fmt::format("{} {}", engine_.context().target() ? "block" : "thread", task.block));
    return row;
  }

  /// What each block waited for and then did, from where on `start` is the run's.
  void add_tasks(std::span<const TaskTime> tasks, double start) {
    const EngineRun run = engine_.last_run();
    for (const TaskTime& task : tasks) {
      const Row row = row_of(task);
      const StepInfo& step = run.steps[task.step];
      if (task.ready > task.begin)
        add_event("wait", "wait", row, start + task.begin, task.ready - task.begin,
                  {{"scope", step.scope}, {"kernel", step.kernel}});
      add_event(step.kernel, "task", row, start + task.ready, task.announced - task.ready,
                {{"scope", step.scope},
                 {"operator", step.region.operators()},
                 {"announcing", (task.announced - task.end) * 1e6}});
    }
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
    if (!limits_ || launch.seconds <= 0) return json;
    const ModelledTime least = modelled_time(step.region.problem(), launch.work, device_limits(*limits_));
    json["bytes_per_second"] = launch.work.bytes / launch.seconds;
    json["operations_per_second"] = launch.work.operations / launch.seconds;
    json["bound_by"] = least.bound_by();
    json["fraction_of_limit"] = least.seconds() / launch.seconds;
    return json;
  }

  Engine& engine_;
  std::optional<MeasuredLimits> limits_;
  std::chrono::steady_clock::time_point begin_;
  Json events_ = Json::array();
  std::map<std::string, int> super_kernels_;  ///< and their processes in the trace
  std::set<std::pair<int, int>> blocks_;      ///< processes and rows that have a name
};

void run_pass(Engine& engine, std::span<const std::int32_t> ids) {
  stop_if_interrupted();
  const SequenceTokens tokens{0, ids};
  engine.forward({&tokens, 1}, Engine::Logits::largest, Engine::Memory::device);
}

/// Both phases; after(pass, tokens) is called after every pass.
void run_phases(Engine& engine, const TraceOptions& options,
                FunctionRef<void(const std::string& pass, std::int64_t tokens)> after) {
  engine.reset(0);
  const std::vector<std::int32_t> ids =
      some_ids(options.prompt_tokens + options.decode_steps, engine.config().vocab_size);
  const std::span<const std::int32_t> all(ids);
  const auto most = static_cast<std::size_t>(engine.max_batch_tokens()),
             prompt = static_cast<std::size_t>(options.prompt_tokens);
  for (std::size_t at = 0; at < prompt; at += most) {
    const auto part = all.subspan(at, std::min(most, prompt - at));
    run_pass(engine, part);
    after(fmt::format("prefill {} to {}", at, at + part.size()), static_cast<std::int64_t>(part.size()));
  }
  for (std::size_t step = 0; step < ids.size() - prompt; ++step) {
    run_pass(engine, all.subspan(prompt + step, 1));
    after(fmt::format("decode {}", step), 1);
  }
}

}  // namespace

void check_trace_file(const std::filesystem::path& file) { require_writable(file); }

void write_trace(const std::filesystem::path& file, Engine& engine, const TraceOptions& options) {
  const auto forget = [](const std::string&, std::int64_t) {};
  std::optional<MeasuredLimits> limits;
  if (engine.computes()) limits = measure_machine(engine.context());
  engine.set_timing(true);
  run_phases(engine, options, forget);  // warms up
  Trace trace(engine, std::move(limits));
  run_phases(engine, options, [&](const std::string& pass, std::int64_t tokens) { trace.add(pass, tokens); });
  engine.set_timing(false);
  if (engine.context().target() &&
      engine.computes()) {  // there launches are timed one by one, and super-kernels time themselves in replays
    run_phases(engine, options, forget);
    run_phases(engine, options, [&](const std::string& pass, std::int64_t tokens) {
      trace.add_walked(pass + " as one launch", tokens);
    });
  }
  write_file_atomically(file, trace.json(options).dump() + "\n");
}

}  // namespace cermet::cli

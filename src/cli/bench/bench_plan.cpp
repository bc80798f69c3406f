#include "cli/bench/bench_plan.hpp"

#include "base/device_limits.hpp"
#include "cli/bench/bench_batch.hpp"
#include "cli/ui/interrupt.hpp"
#include "runtime/plan_text.hpp"
#include "runtime/super_kernel/report.hpp"

namespace cermet::cli {
namespace {

void run_step(Engine& engine, std::int64_t prompt_tokens) {
  const std::int64_t sequences = engine.cache_size().sequences;
  const std::vector<std::int32_t> ids = some_ids(prompt_tokens + 1, engine.config().vocab_size);
  std::vector<SequenceTokens> step;
  for (int s = 0; s < static_cast<int>(sequences); ++s) {
    stop_if_interrupted();
    engine.reset(s);
    engine.prefill(s, std::span(ids).first(ids.size() - 1), Engine::Memory::device);
    step.push_back({s, std::span(ids).last(1)});
  }
  if (engine.chooses({})) {  // a step that chooses its tokens
    std::vector<StepSequence> rows;
    for (const SequenceTokens& each : step) rows.push_back({each.sequence, each.tokens.front(), {}, 0});
    engine.prepare_decode(sequences, {});
    engine.set_timing(true);
    engine.decode(rows, 1, [](std::span<const std::int32_t>) { return AfterStep::stop; });
    return;
  }
  engine.set_timing(true);  // of experts, counts those that have tokens
  engine.forward(step, Engine::Logits::last, Engine::Memory::device);
}

template <class T>
Json or_null(bool applies, const T& value) {
  return applies ? Json(value) : Json();
}

Json launch_json(std::size_t index, const PlannedLaunch& launch, const StepInfo& step) {
  const bool has_blocks = launch.is_program || launch.is_function;
  const auto seconds = launch.time ? std::optional(launch.time->seconds()) : std::nullopt;
  return {{"launch", index},
          {"step", launch.step},
          {"scope", step.scope},
          {"kernel", step.kernel},
          {"region", step.region.to_string()},
          {"program", or_null(!launch.program.empty(), launch.program)},
          {"linkable", launch.is_linkable},
          {"fallback", launch.is_fallback},
          {"items", or_null(launch.is_program, launch.items)},
          {"blocks", or_null(has_blocks, launch.blocks)},
          {"threads", or_null(has_blocks, launch.threads)},
          {"shared_bytes", or_null(has_blocks, launch.shared_bytes)},
          {"parameter_bytes", or_null(has_blocks, launch.parameter_bytes)},
          {"read_bytes", launch.read_bytes},
          {"written_bytes", launch.written_bytes},
          {"early_bytes", launch.early_bytes},
          {"bytes", launch.work ? Json(launch.work->bytes) : Json()},
          {"operations", launch.work ? Json(launch.work->operations) : Json()},
          {"modelled_seconds", seconds ? Json(*seconds) : Json()},
          {"bound_by", launch.time ? Json(launch.time->bound_by()) : Json()},
          {"follows", launch.follows}};
}

Json super_kernels_json(const SuperFormation& formation, Executable& executable) {
  Json regions = Json::array(), breaks = Json::array();
  const std::span<const StepInfo> steps = executable.steps();
  for (const SuperRegion& region : formation.regions) {
    const std::optional<double> loss = executable.predicted_loss(region);
    regions.push_back({{"name", region.name},
                       {"options", to_string(region.options)},
                       {"first_launch", region.first_launch},
                       {"end_launch", region.end_launch},
                       {"predicted_loss_seconds", loss ? Json(*loss) : Json()}});
  }
  for (const SuperBreak& found : formation.breaks)
    breaks.push_back({{"name", found.name},
                      {"launch", found.launch},
                      {"scope", steps[found.step].scope},
                      {"reason", info_of(found.reason).id},
                      {"found", found.found}});
  return {{"regions", regions}, {"breaks", breaks}};
}

}  // namespace

void print_plan(Console& console, Engine& engine, std::int64_t prompt_tokens, bool limits) {
  if (limits) engine.context().measure_limits(engine.context().target() ? 0.05 : 0.3, stop_if_interrupted);
  run_step(engine, prompt_tokens);
  Executable& executable = engine.last_executable();
  const DeviceLimits* const measured = engine.context().limits();
  const Target* const target = engine.context().target();
  const DeviceLimits known = limits_of(target);  // of a GPU that nothing was measured of now
  const std::vector<PlannedLaunch> launches = planned_launches(executable, measured || !target ? measured : &known);
  if (!console.json()) {
    console.print("decode step of {} sequences after {} tokens on {}: {} launches\n{}", engine.cache_size().sequences,
                  prompt_tokens, engine.device_name(), launches.size(), plan_table(launches, executable.steps()));
    if (const std::string text = super_kernel_text(executable); !text.empty()) console.print("\n{}", text);
    return;
  }
  Json list = Json::array();
  for (std::size_t i = 0; i < launches.size(); ++i)
    list.push_back(launch_json(i, launches[i], executable.steps()[launches[i].step]));
  Json json{{"device", engine.device_name()},
            {"batch", engine.cache_size().sequences},
            {"prompt_tokens", prompt_tokens},
            {"launches", list}};
  if (const SuperFormation* const formation = executable.super_kernels())
    json["super_kernels"] = super_kernels_json(*formation, executable);
  console.write_json(json);
}

}  // namespace cermet::cli

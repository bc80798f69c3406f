#include "foreign/kernel.hpp"

#include <algorithm>

#include "base/env.hpp"
#include "foreign/fallback.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::foreign {
namespace {

struct State {
  Manifest manifest;
  std::shared_ptr<Code> code;
  KernelOptions options;
};
using Shared = std::shared_ptr<const State>;

/// The configuration to run: the first of those that fit where none was given. It may have a field of others, the
/// threads of a launch.
Config resolved(const Manifest& manifest, const Region& region, const Config& config) {
  if (std::ranges::all_of(manifest.tile, [&](const TileField& field) { return config.find(field.name).has_value(); }))
    return config;
  const std::vector<Config> all = configs(manifest, match(manifest, region));
  CERMET_ASSERT(!all.empty());
  return all.front();
}

/// What a launch asks for that no GPU has, or not this one.
Decline too_much(const LaunchShape& shape, const Target& target) {
  const std::uint64_t threads = std::uint64_t{shape.threads} * shape.threads_y * shape.threads_z;
  if (threads < 1 || threads > 1024) return fmt::format("has blocks of {} threads", threads);
  if (shape.shared_bytes > target.shared_bytes)
    return fmt::format("needs {} bytes of shared memory, of {}", shape.shared_bytes, target.shared_bytes);
  if (shape.cluster > 1 && target.compute_capability < 90) return "needs clusters";
  return std::nullopt;
}

Decline declines(const State& state, const Region& region) {
  const Manifest& m = state.manifest;
  const Target* const target = region.target();
  if (!region.is_single()) return fmt::format("computes {} alone", m.op->name);
  if (m.op->kind != region.problem().op->kind) return fmt::format("computes {}", m.op->name);
  if (is_gpu(m.kind) != (target != nullptr)) return fmt::format("runs on a {}", is_gpu(m.kind) ? "GPU" : "CPU");
  if (target && !runs_on(m.architectures, target->compute_capability))
    return fmt::format("runs on {}, not on {}", fmt::join(m.architectures, ", "), target->architecture());
  const Match matched = match(m, region);
  if (matched.reason) return matched.reason;
  std::string why;
  const std::vector<Config> all = configs(m, matched, &why);
  if (all.empty()) return why;
  if (state.options.gate)
    if (Decline unchecked = state.options.gate(target)) return unchecked;
  for (const Config& config : all) {
    const std::vector<Interval> values = with_config(m, matched, config);
    for (const Expression& e : m.grid) e.bounds(values);  // throws where it may divide by 0
    for (const Parameter& p : m.parameters)
      if (p.kind == Parameter::Kind::i32 || p.kind == Parameter::Kind::u32 || p.kind == Parameter::Kind::i64 ||
          p.kind == Parameter::Kind::u64)
        p.value.bounds(values);
    for (const Define& define : m.defines)
      if (define.type < 0) known_value(define.value, values, define.name);
    const LaunchPlan plan(m, region, config);
    if (target)
      if (Decline reason = too_much(plan.shape(), *target)) return reason;
    state.code->bytes(instance_of(m, config)->file);
  }
  return std::nullopt;
}

/// The macros of a source, as text before it: NVRTC's own headers come first and do not see them.
std::string macros_of(const Manifest& m, const Match& matched, std::span<const Interval> values,
                      const std::string& file) {
  std::string text;
  for (const Define& define : m.defines) {
    if (define.type < 0)
      text += fmt::format("#define {} {}\n", define.name, known_value(define.value, values, define.name));
    else
      text += fmt::format("#define {} {}\n", define.name,
                          define.texts.at(matched.types[static_cast<std::size_t>(define.type)]));
  }
  return text + fmt::format("#line 1 \"{}\"\n", file);
}

Launcher bind_gpu(const Shared& state, const Region& region, const Config& config) {
  auto plan = std::make_shared<const LaunchPlan>(state->manifest, region, resolved(state->manifest, region, config));
  const Fallback fallback = state->options.falls_back ? find_fallback(state->manifest, region) : Fallback{};
  Launcher other = fallback.kernel ? fallback.kernel->bind(region) : Launcher();
  const std::size_t others = fallback.kernel ? fallback.kernel->programs(region).size() : 0;
  return [state, plan = std::move(plan), other = std::move(other), others](const LaunchArgs& args) {
    const LaunchValues values(*plan, args);
    if (values.misfit()) {
      if (!other) fail(Status::unsupported, "{}", values.misfit_text());
      const cuda::TaskQueue queue = args.queue->part(1, others);
      LaunchArgs inner = args;
      inner.queue = &queue;
      return other(inner);
    }
    LaunchShape shape = plan->shape();
    if (!values.set_grid(shape)) return;
    std::array<std::byte, LaunchValues::most_bytes> bytes;
    values.pack(bytes);
    args.queue->run_function(0, shape, std::span(bytes).first(plan->parameter_bytes()), plan->offsets());
  };
}

void parallel_for(const CpuCall* call, std::int64_t count, std::int64_t grain,
                  void (*body)(void*, std::int64_t, std::int64_t), void* state) {
  const auto run = [&](std::int64_t begin, std::int64_t end) { body(state, begin, end); };
  if (auto* const pool = static_cast<ThreadPool*>(call->runtime))
    pool->parallel_for(count, std::max<std::int64_t>(grain, 1), run);
  else if (count > 0) run(0, count);
}

Launcher bind_cpu(const Shared& state, const Region& region, const Config& wanted) {
  const Config config = resolved(state->manifest, region, wanted);
  auto plan = std::make_shared<const LaunchPlan>(state->manifest, region, config);
  const Instance& instance = *instance_of(state->manifest, config);
  const CpuEntry entry = state->code->function(instance.file, instance.entry);
  const Fallback fallback = state->options.falls_back ? find_fallback(state->manifest, region) : Fallback{};
  Launcher other = fallback.kernel ? fallback.kernel->bind(region) : Launcher();
  return [state, plan = std::move(plan), entry, other = std::move(other)](const LaunchArgs& args) {
    const LaunchValues values(*plan, args);
    if (values.misfit()) {
      if (!other) fail(Status::unsupported, "{}", values.misfit_text());
      return other(args);
    }
    alignas(16) std::array<std::byte, LaunchValues::most_bytes> bytes;
    values.pack(bytes);
    std::array<void*, Manifest::most_parameters + 2> parameters;
    for (std::size_t i = 0; i < plan->offsets().size(); ++i) parameters[i] = bytes.data() + plan->offsets()[i];
    const CpuCall call{sizeof(CpuCall), parameters.data(), plan->offsets().size(), args.pool ? args.pool->size() : 1,
                       parallel_for,    args.pool};
    const std::int32_t result = entry(&call);
    if (result != 0)
      fail(Status::internal, "kernel {}: expected 0 from its function, found {}", state->manifest.name, result);
  };
}

std::int64_t workspace(const State& state, const Region& region, const Config& config, int threads) {
  const std::int64_t own =
      LaunchPlan(state.manifest, region, resolved(state.manifest, region, config)).workspace_bytes();
  const Fallback fallback = state.options.falls_back ? find_fallback(state.manifest, region) : Fallback{};
  return fallback.kernel ? std::max(own, fallback.kernel->workspace(region, threads)) : own;
}

}  // namespace

cuda::Program program_of(const Manifest& m, Code& code, const Region& region, const Config& wanted) {
  using Form = cuda::ForeignCode::Form;
  const Config config = resolved(m, region, wanted);
  const Match matched = match(m, region);
  const std::vector<Interval> values = with_config(m, matched, config);
  const Instance& instance = *instance_of(m, config);
  const LaunchPlan plan(m, region, config);
  cuda::ForeignCode foreign{.code = code.bytes(instance.file), .entry = instance.entry};
  foreign.form = m.kind == CodeKind::cuda ? Form::source : m.kind == CodeKind::ptx ? Form::ptx : Form::cubin;
  if (m.kind == CodeKind::cuda) foreign.options = m.options;
  for (const Parameter& parameter : m.parameters) foreign.parameter_bytes.push_back(bytes_of(parameter.kind));
  foreign.parameter_bytes.insert(foreign.parameter_bytes.end(), static_cast<std::size_t>(instance.scratch_pointers), 8);
  const LaunchShape& shape = plan.shape();
  return {.header = m.name,
          .task = instance.entry,
          .prelude = m.kind == CodeKind::cuda ? macros_of(m, matched, values, instance.file) : "",
          .threads = static_cast<int>(shape.threads * shape.threads_y * shape.threads_z),
          .shared_bytes = shape.shared_bytes,
          .cluster = static_cast<int>(shape.cluster),
          .may_spill = true,
          .foreign = std::move(foreign)};
}

Kernel make_kernel(Manifest manifest, std::shared_ptr<Code> code, KernelOptions options) {
  const auto state = std::make_shared<const State>(State{std::move(manifest), std::move(code), std::move(options)});
  const Manifest& m = state->manifest;
  Kernel kernel{.name = m.name,
                .op = m.op->kind,
                .summary = fmt::format("{} (from outside, {})", m.summary, name_of(m.kind)),
                .foreign = true};
  kernel.declines = [state](const Region& region) -> Decline {
    try {
      return declines(*state, region);
    } catch (const Error& error) {
      return error.what();
    }
  };
  kernel.configs = [state](const Region& region) { return configs(state->manifest, match(state->manifest, region)); };
  kernel.workspace = [state](const Region& region, const Config& config, int threads) {
    return workspace(*state, region, config, threads);
  };
  if (!is_gpu(m.kind)) {
    kernel.bind = [state](const Region& region, const Config& config) { return bind_cpu(state, region, config); };
    return kernel;
  }
  kernel.bind = [state](const Region& region, const Config& config) { return bind_gpu(state, region, config); };
  kernel.programs = [state](const Region& region, const Config& config) {
    std::vector<cuda::Program> programs{program_of(state->manifest, *state->code, region, config)};
    const Fallback fallback = state->options.falls_back ? find_fallback(state->manifest, region) : Fallback{};
    if (fallback.kernel)
      std::ranges::move(cuda::as_fallbacks(fallback.kernel->programs(region)), std::back_inserter(programs));
    return programs;
  };
  return kernel;
}

}  // namespace cermet::foreign

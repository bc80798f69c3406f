#include "cli/bench/bench_call.hpp"

#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "cli/op_call.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/process.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"
#include "select/tune/job.hpp"
#include "select/tune/operand_sets.hpp"

namespace cermet::cli {
namespace {

/// One set of operands and results in host memory with the kernel bound to them.
struct Copy {
  BoundOp op;
  std::vector<OwnedTensor> memory;
  std::vector<TensorView> inputs, outputs;

  Copy(const Region& region, const Choice& choice, ThreadPool& pool,
       const std::vector<std::optional<BenchFill>>& values, std::int64_t set)
      : op(region, choice, pool) {
    for (std::size_t i = 0; i < region.operands.size(); ++i) {
      inputs.emplace_back();
      if (!region.has(i)) continue;
      memory.push_back(make_bench_operand(region.operand_type(i), *values[i], pool, set));
      inputs.back() = memory.back().view;
      if (region.is_constant(i)) op.prepack(i, inputs.back());
    }
    for (std::size_t o = 0; o < region.results.size(); ++o) {
      if (const auto shared = shared_operand(region, o)) {
        outputs.push_back(inputs[*shared]);
        continue;
      }
      memory.emplace_back(region.result_type(o).dtype, bind(region.result_type(o).dims, {}));
      outputs.push_back(memory.back().view);
    }
  }
  void run() { op.run(inputs, outputs); }
};

/// Bytes of all operands and results of one copy, packed weights included.
std::int64_t copy_bytes(const Region& region, const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < region.operands.size(); ++i) {
    if (!region.has(i)) continue;
    bytes += region.operand_type(i).bytes().constant();
    const WeightLayout* layout = region.is_constant(i) ? kernel.weight_layout(region, i) : nullptr;
    if (layout) bytes += packed_bytes(*layout, region.operand_type(i));
  }
  for (std::size_t o = 0; o < region.results.size(); ++o) bytes += region.result_type(o).bytes().constant();
  return bytes;
}

/// Copies that together exceed any cache, so that each run finds its operands in memory.
std::int64_t cold_copies(std::int64_t bytes) {
  constexpr std::int64_t beyond_caches = std::int64_t{1} << 30, most = 4096;
  const std::int64_t room = std::min(beyond_caches, available_memory_bytes() / 4);
  return std::clamp<std::int64_t>(room / std::max<std::int64_t>(bytes, 1), 1, most);
}

/// Seconds of each run, sorted.
std::vector<double> run_copies(std::vector<Copy>& copies, double seconds) {
  constexpr std::size_t fewest = 5;
  using CallClock = std::chrono::steady_clock;
  const auto since = [](CallClock::time_point begin) {
    return std::chrono::duration<double>(CallClock::now() - begin).count();
  };
  for (Copy& copy : copies) copy.run();
  std::vector<double> times;
  for (const auto begin = CallClock::now(); since(begin) < seconds || times.size() < fewest;) {
    stop_if_interrupted();
    Copy& copy = copies[times.size() % copies.size()];
    const auto start = CallClock::now();
    copy.run();
    times.push_back(since(start));
  }
  std::sort(times.begin(), times.end());
  return times;
}

MeasuredCall measure_on_cpu(const BenchCall& call, const BoundCall& bound, ThreadPool& pool) {
  const auto& [region, choice] = bound;
  const Kernel* const kernel = choice.kernel;
  const std::int64_t bytes = copy_bytes(region, *kernel), count = call.cold ? cold_copies(bytes) : 1;
  require_memory(count * bytes + kernel->workspace(region, choice.config, pool.size()), region.to_string());
  std::vector<std::optional<BenchFill>> values(region.operands.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (region.has(i)) values[i].emplace(bench_fill(region, i, call.values));
  std::vector<Copy> copies;
  copies.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    stop_if_interrupted();
    copies.emplace_back(region, choice, pool, values, i);
  }
  const std::vector<double> times = run_copies(copies, call.seconds);
  return {{times[times.size() / 2], times.front(), 1, std::ssize(times)}, count};
}

/// As it is deployed: replays of a captured graph. Cold sets of operands together exceed the L2 cache four times over.
MeasuredCall measure_on_device(const BenchCall& call, const BoundCall& bound, Context& context) {
  constexpr std::int64_t most_sets = 8192;  // launches of one graph
  const DeviceQueue queue = context.queue();
  OperandSets sets(bound.region, *bound.choice.kernel, queue, context.pool(), call.values);
  const std::int64_t beyond_cache = div_up(4 * context.target()->l2_bytes, sets.set_bytes()) + 1;
  MeasuredCall measured;
  measured.copies = call.cold ? std::clamp<std::int64_t>(beyond_cache, 1, most_sets) : 1;
  BoundOp op(bound.region, bound.choice, context.pool(), queue);
  sets.make(measured.copies);
  ReplayOptions replay;
  replay.seconds = call.seconds;
  replay.between = stop_if_interrupted;
  measured.times = time_replays(
      *queue.stream, measured.copies, [&](std::int64_t set) { op.run(sets.inputs(set), sets.outputs(set)); }, replay);
  measured.fallbacks = op.fallbacks();
  return measured;
}

}  // namespace

Context bench_context(const std::string& device, int threads) {
  Context context({device, threads});
  if (!context.computes()) fail(Status::unsupported, "device {}: expected one that computes", context.device().name());
  return context;
}

BoundCall bind_call(const BenchCall& call, Context& context) {
  Region region = without_symbols(parse_region_call(call.op, call.shape, call.tokens));
  mark_constants(region, call.constants);
  region.set_target(context.target());
  require(call.config.find(':') == std::string::npos,
          "--config: expected fields of one kernel, which --kernel may name, as in tile_m=128 stages=4, found {}",
          quote(call.config));
  Choice choice = choose_by_name(region, call.kernel, call.config, {.threads = context.pool().size()});
  return {std::move(region), std::move(choice)};
}

MeasuredCall measure_call(const BenchCall& call, const BoundCall& bound, Context& context) {
  MeasuredCall measured =
      context.target() ? measure_on_device(call, bound, context) : measure_on_cpu(call, bound, context.pool());
  measured.work = bench_cost(bound.region, call.values);
  return measured;
}

Json json_of(const MeasuredCall& measured, const BoundCall& bound, const Context& context) {
  const ReplayTimes& times = measured.times;
  Json json{{"problem", bound.region.to_string()},
            {"kernel", bound.choice.kernel->name},
            {"config", bound.choice.config.to_string()}};
  if (context.target()) json["device"] = context.device().name();
  json["constants"] = constant_names(bound.region);
  if (context.target()) {
    json["copies"] = measured.copies;
    json["launches"] = times.launches;
    json["graphs"] = times.graphs;
    json["fallbacks"] = measured.fallbacks;
  } else {
    json["threads"] = context.pool().size();
    json["instruction_set"] = cpu::name_of(cpu::active_isa());
    json["copies"] = measured.copies;
    json["runs"] = times.graphs;
  }
  json["median_seconds"] = times.median_seconds;
  json["min_seconds"] = times.min_seconds;
  json["operations"] = measured.work.operations;
  json["bytes"] = measured.work.bytes;
  json["operations_per_second"] = measured.operations_per_second();
  json["bytes_per_second"] = measured.bytes_per_second();
  return json;
}

std::string text_of(const MeasuredCall& measured, const BoundCall& bound, const Context& context) {
  const ReplayTimes& times = measured.times;
  const std::string median = seconds_text(times.median_seconds);
  Table table;
  table.row({"kernel", fmt::format("{}, {}", bound.choice.kernel->name, bound.choice.config.to_string())});
  if (context.target()) {
    table.row({"device", std::string(context.device().name())});
    table.row({"median", fmt::format("{} a launch, over {} replays of {} launches on {} sets of operands", median,
                                     times.graphs, times.launches, measured.copies)});
  } else {
    table.row({"machine", fmt::format("{} threads, {}", context.pool().size(), cpu::name_of(cpu::active_isa()))});
    table.row(
        {"median", fmt::format("{} of {} runs over {} copies of the operands", median, times.graphs, measured.copies)});
  }
  table.row({"fastest", seconds_text(times.min_seconds)});
  if (measured.fallbacks > 0)
    table.row(
        {"fallbacks", fmt::format("{} launches that the kernel's own programs did not take: see `cermet explain op`",
                                  measured.fallbacks)});
  table.row({"moved", fmt::format("{:.2f} GB/s", measured.bytes_per_second() * 1e-9)});
  table.row({"computed", fmt::format("{:.2f} GOP/s", measured.operations_per_second() * 1e-9)});
  return table.to_string();
}

}  // namespace cermet::cli

#include "cli/bench/bench_call.hpp"

#include <algorithm>
#include <chrono>

#include "base/text.hpp"
#include "cli/bench/bench_op_device.hpp"
#include "cli/op_call.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/process.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"
#include "select/tune/job.hpp"

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

void add_rates(Json& json, const Cost& cost) {
  const double median = json["median_seconds"].get<double>();
  json["operations"] = cost.operations;
  json["bytes"] = cost.bytes;
  json["operations_per_second"] = cost.operations / median;
  json["bytes_per_second"] = cost.bytes / median;
}

Json measure_on_cpu(const BenchCall& call, const BoundCall& bound, ThreadPool& pool) {
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
  return {{"problem", region.to_string()},
          {"kernel", kernel->name},
          {"config", choice.config.to_string()},
          {"constants", constant_names(region)},
          {"threads", pool.size()},
          {"instruction_set", cpu::name_of(cpu::active_isa())},
          {"copies", copies.size()},
          {"runs", times.size()},
          {"median_seconds", times[times.size() / 2]},
          {"min_seconds", times.front()}};
}

Json measure_on_device(const BenchCall& call, const BoundCall& bound, Context& context) {
  const auto& [region, choice] = bound;
  const DeviceBench result =
      bench_on_device(region, choice, context.queue(), context.pool(), {call.values, call.cold, call.seconds});
  return {{"problem", region.to_string()},          {"kernel", choice.kernel->name},
          {"config", choice.config.to_string()},    {"device", context.device().name()},
          {"constants", constant_names(region)},    {"copies", result.copies},
          {"launches", result.times.launches},      {"graphs", result.times.graphs},
          {"fallbacks", result.fallbacks},          {"median_seconds", result.times.median_seconds},
          {"min_seconds", result.times.min_seconds}};
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

Json measure_call(const BenchCall& call, const BoundCall& bound, Context& context) {
  Json json = context.target() ? measure_on_device(call, bound, context) : measure_on_cpu(call, bound, context.pool());
  add_rates(json, bench_cost(bound.region, call.values));
  return json;
}

std::string measured_text(const Json& result) {
  const auto number = [&](const char* key) { return result[key].get<double>(); };
  const auto count = [&](const char* key) { return result[key].get<std::int64_t>(); };
  const bool device = result.contains("device");
  Table table;
  table.row(
      {"kernel", fmt::format("{}, {}", result["kernel"].get<std::string>(), result["config"].get<std::string>())});
  table.row(device ? std::vector<std::string>{"device", result["device"].get<std::string>()}
                   : std::vector<std::string>{"machine", fmt::format("{} threads, {}", count("threads"),
                                                                     result["instruction_set"].get<std::string>())});
  const std::string median = seconds_text(number("median_seconds"));
  table.row({"median", device ? fmt::format("{} a launch, over {} replays of {} launches on {} sets of operands",
                                            median, count("graphs"), count("launches"), count("copies"))
                              : fmt::format("{} of {} runs over {} copies of the operands", median, count("runs"),
                                            count("copies"))});
  table.row({"fastest", seconds_text(number("min_seconds"))});
  if (device && count("fallbacks") > 0)
    table.row(
        {"fallbacks", fmt::format("{} launches that the kernel's own programs did not take: see `cermet explain op`",
                                  count("fallbacks"))});
  table.row({"moved", fmt::format("{:.2f} GB/s", number("bytes_per_second") * 1e-9)});
  table.row({"computed", fmt::format("{:.2f} GOP/s", number("operations_per_second") * 1e-9)});
  return table.to_string();
}

}  // namespace cermet::cli

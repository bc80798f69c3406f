// Host half of the attention task that takes every problem.
#include "kernel/cuda/attention/attention_launch.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/attention/general_shape.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/wide_indices.hpp"

namespace cermet::cuda::attention_general_file {
namespace {

/// Rows of a warp: as many as the queries can fill and shared memory holds.
int warp_rows(const AttentionProblem& a, std::int64_t shared_bytes, const Config& config) {
  if (!config.empty()) return static_cast<int>(config.at("warp_rows"));
  const std::int64_t rows = std::min<std::int64_t>(a.tokens * a.group(), 1 << 20);
  int best = 1;
  for (int candidate : {2, 4})
    if (rows > best * attention::general_warps &&
        attention::general_shared_bytes(a.head_size, a.value_size, candidate) <= shared_bytes)
      best = candidate;
  return best;
}

Decline declines(const Problem& problem) {
  if (problem.input(0).rank() == 4) return "a batch of sequences of one length; taken: sequences one after the other";
  const AttentionProblem a(problem);
  if (a.paged && WideIndices::any(problem)) return "indices are int64";
  const std::int64_t bytes = attention::general_shared_bytes(a.head_size, a.value_size, 1);
  if (bytes > problem.target->shared_bytes)
    return fmt::format("head sizes {} and {} need {} bytes of shared memory", a.head_size, a.value_size, bytes);
  return std::nullopt;
}

std::vector<Config> configs(const Problem& problem) {
  const AttentionProblem a(problem);
  std::vector<Config> list(1);
  for (const int rows : {1, 2, 4})
    if (attention::general_shared_bytes(a.head_size, a.value_size, rows) <= problem.target->shared_bytes)
      list.push_back({{"warp_rows", rows}});
  return list;
}

/// Assumed, not measured: a quarter of the float32 rate, and what is alike for any number of rows, because nobody knows
/// which is faster.
double cost(const Problem& problem, const DeviceLimits& limits) {
  const AttentionProblem a(problem);
  const double operations = 2 * static_cast<double>(a.head_size + a.value_size);
  const double cycles =
      4 * operations * problem.target->multiprocessors * limits.clock_hz / limits.f32_operations_per_second;
  return attention_seconds(problem, warp_rows(a, problem.target->shared_bytes, {}) * attention::general_warps, cycles,
                           limits);
}

std::vector<Program> programs(const Problem& problem, const Config& config) {
  const AttentionProblem a(problem);
  const int rows = warp_rows(a, problem.target->shared_bytes, config);
  const attention::GeneralConfig device_config{.head_size = static_cast<int>(a.head_size),
                                               .value_size = static_cast<int>(a.value_size),
                                               .group = static_cast<int>(a.group()),
                                               .block = static_cast<int>(a.block),
                                               .q = a.q,
                                               .kv = a.kv,
                                               .out = a.out,
                                               .warp_rows = rows,
                                               .columns = a.columns};
  return {{.header = "kernel/cuda/device/attention/general.cuh",
           .task = fmt::format("cermet::attention::GeneralTask<cermet::attention::GeneralConfig{}>",
                               config_text(device_config)),
           .threads = 32 * attention::general_warps,
           .shared_bytes = attention::general_shared_bytes(a.head_size, a.value_size, rows)}};
}

Launcher bind(const Problem& problem, const Config& config) {
  return [run = bind_general_attention(problem, 0, config)](const LaunchArgs& args) { run(args, 0); };
}

}  // namespace

const Kernel attention_general_paged{
    .name = "attention.general_paged",
    .op = OpKind::incre_flash_attention,
    .summary = "any head size and element type, float32 throughout, a tile of rows for each thread block",
    .declines = declines,
    .bind = bind,
    .programs = programs,
    .configs = configs,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};
const Kernel attention_general_ragged{
    .name = "attention.general_ragged",
    .op = OpKind::flash_attention,
    .summary = "any head size and element type, float32 throughout, a tile of rows for each thread block",
    .declines = declines,
    .bind = bind,
    .programs = programs,
    .configs = configs,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_general_file

namespace cermet::cuda {

QueriesLauncher bind_general_attention(const Problem& problem, std::size_t program, const Config& config) {
  using namespace attention_general_file;
  const AttentionProblem a(problem);
  const std::int64_t rows = warp_rows(a, problem.target->shared_bytes, config) * attention::general_warps;
  return [launch = AttentionLaunch(problem), group = a.group(), rows, program](const LaunchArgs& args,
                                                                               std::int32_t least_queries) {
    const attention::Params params = launch.params(args, least_queries);
    const std::int64_t tiles = AttentionLaunch::most_tiles(params, group, rows);
    args.queue->run(program, tiles * params.kv_heads, params);
    if (tiles * params.kv_heads > 0) declare_operands(args);
  };
}

}  // namespace cermet::cuda

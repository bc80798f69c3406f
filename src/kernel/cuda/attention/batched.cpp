// Host half of attention over batches of sequences of one length, in float32 on the CUDA cores.
#include "kernel/cuda/attention/batched.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/attention/general_shape.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda::attention_batched_file {
namespace {

std::int64_t shared_bytes(const BatchedProblem& a, int warp_rows) {
  return attention::general_shared_bytes(a.head_size, a.value_size, warp_rows);
}

int warp_rows_of(const BatchedProblem& a, const Target& target, const Config& config) {
  if (!config.empty()) return static_cast<int>(config.at("warp_rows"));
  int best = 1;
  for (const int candidate : {2, 4})
    if (a.queries * a.group() > std::int64_t{best} * attention::general_warps &&
        shared_bytes(a, candidate) <= target.shared_bytes)
      best = candidate;
  return best;
}

Decline declines(const Problem& p) {
  if (!BatchedAttention::is(p)) return "sequences one after the other; taken: a batch of sequences of one length";
  const BatchedProblem a(p);
  if (shared_bytes(a, 1) > p.target->shared_bytes)
    return fmt::format("head sizes {} and {} need {} bytes of shared memory", a.head_size, a.value_size,
                       shared_bytes(a, 1));
  return std::nullopt;
}

std::vector<Config> configs(const Problem& p) {
  const BatchedProblem a(p);
  std::vector<Config> list(1);
  for (const int rows : {1, 2, 4})
    if (shared_bytes(a, rows) <= p.target->shared_bytes) list.push_back({{"warp_rows", rows}});
  return list;
}

/// An eighth of the float32 rate was measured on an H200 (32 sequences of 197, 12 heads of 64).
double cost(const Problem& p, const DeviceLimits& limits) {
  const BatchedProblem a(p);
  const double scores =
      static_cast<double>(a.sequences * a.heads) * static_cast<double>(a.queries) * static_cast<double>(a.keys);
  return 3500 / limits.clock_hz +
         8 * scores * 2 * static_cast<double>(a.head_size + a.value_size) / limits.f32_operations_per_second;
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  const int rows = warp_rows_of(a, *p.target, config);
  const attention::GeneralConfig device_config{.head_size = static_cast<int>(a.head_size),
                                               .value_size = static_cast<int>(a.value_size),
                                               .group = static_cast<int>(a.group()),
                                               .block = 0,
                                               .q = a.type,
                                               .kv = a.type,
                                               .out = a.out,
                                               .warp_rows = rows};
  return {{.header = "kernel/cuda/device/attention/batched.cuh",
           .task = fmt::format("cermet::attention::BatchedTask<cermet::attention::GeneralConfig{}, {}, {}>",
                               config_text(device_config), score_config(p), device_name(a.steps)),
           .threads = 32 * attention::general_warps,
           .shared_bytes = shared_bytes(a, rows)}};
}

Launcher bind(const Problem& p, const Config& config) { return bind_batched_general(p, 0, config); }

}  // namespace

const Kernel attention_batched_general{
    .name = "attention.batched_general",
    .op = OpKind::flash_attention,
    .summary = "batches of sequences of one length in any layout, with biases and masks, float32 throughout",
    .declines = declines,
    .bind = bind,
    .programs = programs,
    .configs = configs,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_batched_file

namespace cermet::cuda {

Launcher bind_batched_general(const Problem& p, std::size_t program, const Config& config) {
  const std::int64_t rows = std::int64_t{attention_batched_file::warp_rows_of(BatchedProblem(p), *p.target, config)} *
                            attention::general_warps;
  return [launch = BatchedLaunch(p), rows, program](const LaunchArgs& args) {
    const attention::BatchedParams params = launch.params(args, rows);
    args.queue->run(program, BatchedLaunch::items(args, params), params);
  };
}

}  // namespace cermet::cuda

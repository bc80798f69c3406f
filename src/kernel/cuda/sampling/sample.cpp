// Host half of sample.
#include "kernel/cuda/device/sampling/sample.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/sampling/rows.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/sample_parameters.hpp"

namespace cermet::cuda::sampling_sample_file {
namespace {

/// How a sequence's row is spread over threads.
struct Shares : RowShares {
  bool in_shared = true;
  std::int64_t shared_bytes = 0;
};

Shares shares_of(const Problem& p, const Config& config) {
  const std::int64_t vocabulary = p.size(sample_logits, 1);
  Shares shares;
  if (vocabulary > 4096) shares.threads = 1024;
  if (vocabulary > 8192 && p.target->compute_capability >= 90) shares.cluster = 8;
  static_cast<RowShares&>(shares) = row_shares(config, shares);
  const std::int64_t row = round_up(div_up(vocabulary, shares.cluster), 32) * 4;
  shares.in_shared = sample::fixed_shared_bytes + row <= p.target->shared_bytes;
  shares.shared_bytes = sample::fixed_shared_bytes + (shares.in_shared ? row : 0);
  return shares;
}

/// Logits are read once where shared memory keeps them, else each time that they are looked through, some twenty times.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const Shares shares = shares_of(p, config);
  return row_seconds(*p.target, limits, shares, static_cast<double>(p.size(sample_logits, 0)),
                     static_cast<double>(p.size(sample_logits, 1)) * 4, shares.in_shared ? 1 : 20);
}

void launch(const LaunchArgs& args, int cluster) {
  const TensorView& logits = args.inputs[sample_logits];
  const auto list = [&]<class T>(SampleOperand operand, T*) {
    return args.has(operand) ? args.inputs[operand].as<const T>() : nullptr;
  };
  constexpr float* f32 = nullptr;
  const bool repeats = args.has(sample_previous) && args.has(sample_penalty);
  const TensorView previous = repeats ? args.inputs[sample_previous] : TensorView();
  const sample::Params params{.logits = logits.data,
                              .temperature = list(sample_temperature, f32),
                              .top_k = list(sample_top_k, static_cast<std::int32_t*>(nullptr)),
                              .top_p = list(sample_top_p, f32),
                              .min_p = list(sample_min_p, f32),
                              .penalty = list(sample_penalty, f32),
                              .previous = previous.data,
                              .seeds = list(sample_seeds, static_cast<std::int64_t*>(nullptr)),
                              .steps = list(sample_steps, static_cast<std::int64_t*>(nullptr)),
                              .ids = args.outputs[0].as<std::int32_t>(),
                              .scratch = reinterpret_cast<float*>(args.workspace),
                              .logits_stride = logits.strides[0],
                              .previous_stride = repeats ? previous.strides[0] : 0,
                              .previous_count = repeats ? previous.shape[1] : 0,
                              .wide_previous = previous.dtype == DType::i64};
  args.queue->run(0, logits.shape[0] * cluster, params);
}

}  // namespace

extern const Kernel sampling_sample;
const Kernel sampling_sample{
    .name = "sampling.sample",
    .op = OpKind::sample,
    .summary =
        "selects rather than sorts; a block for each sequence, a cluster of 8 that keeps the row in shared memory "
        "where vocabularies are long",
    .bind = [](const Problem& p, const Config& config) -> Launcher {
      return [cluster = shares_of(p, config).cluster](const LaunchArgs& args) { launch(args, cluster); };
    },
    .workspace = [](const Problem& p, const Config& config, int) -> std::int64_t {
      return shares_of(p, config).in_shared ? 0 : p.size(sample_logits, 0) * p.size(sample_logits, 1) * 4;
    },
    .programs = [](const Problem& p, const Config& config) -> std::vector<Program> {
      const Shares shares = shares_of(p, config);
      const sample::Config device{.logits = p.input(sample_logits).dtype,
                                  .vocabulary = static_cast<int>(p.size(sample_logits, 1)),
                                  .threads = shares.threads,
                                  .cluster = shares.cluster,
                                  .in_shared = shares.in_shared};
      return {{.header = "kernel/cuda/device/sampling/sample.cuh",
               .task = fmt::format("cermet::sample::Task<cermet::sample::Config{}>", config_text(device)),
               .threads = shares.threads,
               .shared_bytes = shares.shared_bytes,
               .cluster = shares.cluster}};
    },
    .configs = [](const Problem& p) { return row_configs(*p.target, true); },
    .cost = cost};

}  // namespace cermet::cuda::sampling_sample_file

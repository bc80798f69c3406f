// Host half of topk_gating.
#include "kernel/cuda/mixture/gating.hpp"

#include "base/checked.hpp"
#include "base/device_limits.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {

gating::Config gating_config(const Problem& p, int threads) {
  const Attributes& a = p.attributes;
  return {.logits = p.input(0).dtype,
          .bias = p.has(1) ? p.input(1).dtype : DType::f32,
          .ids = p.outputs[1].dtype,
          .experts = static_cast<int>(p.size(0, 1)),
          .k = static_cast<int>(a.integer("k")),
          .groups = static_cast<int>(a.integer("groups")),
          .topk_groups = static_cast<int>(a.integer("topk_groups")),
          .softmax = a.text("score") == "softmax",
          .renormalize = a.flag("renormalize"),
          .top2 = a.text("group_score") == "top2",
          .has_bias = p.has(1),
          .threads = threads};
}

gating::Params gating_params(const TensorView& logits, const TensorView* bias, const TensorView& weights,
                             const TensorView* ids, float scale) {
  const bool vectors = is_aligned(logits.data, 16) && logits.strides[0] * byte_size(logits.dtype) % 16 == 0;
  return {.logits = logits.data,
          .bias = bias ? bias->data : nullptr,
          .weights = weights.as<float>(),
          .ids = ids ? ids->data : nullptr,
          .tokens = logits.shape[0],
          .logits_stride = logits.strides[0],
          .weights_stride = weights.strides[0],
          .ids_stride = ids ? ids->strides[0] : 0,
          .scale = scale,
          .vectors = vectors};
}

namespace mixture_gating_file {
namespace {

constexpr int warps = 4;  // tokens of a block

/// Shared memory of a token.
std::int64_t group_bytes(const Problem& p) {
  const std::int64_t groups = p.attributes.integer("groups");
  return groups > 1 ? 4 * (p.size(0, 1) + groups) : 0;
}

gating::Params params_of(const LaunchArgs& args, float scale) {
  return gating_params(args.inputs[0], args.has(1) ? &args.inputs[1] : nullptr, args.outputs[0], &args.outputs[1],
                       scale);
}

constexpr int block_threads = 256;

/// Assumed, not measured: a warp's pass over the experts in its registers takes 40 cycles, one over those in memory
/// 600, and there is one for each choice.
double cost(const Problem& p, const DeviceLimits& limits, std::int64_t tokens_each, double pass_cycles) {
  const std::int64_t blocks = div_up(p.size(0, 0), tokens_each);
  const double rounds =
      static_cast<double>(div_up(std::max<std::int64_t>(blocks, 1), std::int64_t{p.target->multiprocessors} * 8));
  return (3500 + rounds * static_cast<double>(p.attributes.integer("k")) * pass_cycles) / limits.clock_hz +
         cost_of(p).bytes / limits.read_bytes_per_second;
}

}  // namespace

extern const Kernel moe_gating_warp;
const Kernel moe_gating_warp{
    .name = "moe.gating_warp",
    .op = OpKind::topk_gating,
    .summary = "a warp for each token, its experts in registers",
    .declines = [](const Problem& p) -> Decline {
      if (p.size(0, 1) > gating::warp_experts) return fmt::format("more than {} experts", gating::warp_experts);
      if (p.attributes.integer("k") > 64) return "more than 64 experts per token";
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      return [scale = static_cast<float>(p.attributes.number("scale"))](const LaunchArgs& args) {
        const gating::Params params = params_of(args, scale);
        args.queue->run(0, div_up(params.tokens, warps), params);
        if (params.tokens > 0) declare_operands(args);
      };
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/mixture/gating.cuh",
               .task = fmt::format("cermet::gating::Task<cermet::gating::Config{}>",
                                   config_text(gating_config(p, warps * 32))),
               .threads = warps * 32,
               .shared_bytes = warps * group_bytes(p)}};
    },
    .cost = [](const Problem& p, const DeviceLimits& limits) { return cost(p, limits, warps, 40); }};

extern const Kernel moe_gating_block;
const Kernel moe_gating_block{
    .name = "moe.gating_block",
    .op = OpKind::topk_gating,
    .summary = "a block for each token and a pass over its logits for each choice: any number of experts",
    .declines = [](const Problem& p) -> Decline {
      if (p.attributes.integer("groups") > gating::block_groups)
        return fmt::format("more than {} groups", gating::block_groups);
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      return [scale = static_cast<float>(p.attributes.number("scale"))](const LaunchArgs& args) {
        const gating::Params params = params_of(args, scale);
        args.queue->run(0, params.tokens, params);
        if (params.tokens > 0) declare_operands(args);
      };
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/mixture/gating_block.cuh",
               .task = fmt::format("cermet::gating::BlockTask<cermet::gating::Config{}>",
                                   config_text(gating_config(p, block_threads))),
               .threads = block_threads,
               .shared_bytes = 1024 + 8 * p.attributes.integer("groups")}};
    },
    .cost = [](const Problem& p, const DeviceLimits& limits) { return cost(p, limits, 1, 600); }};

}  // namespace mixture_gating_file
}  // namespace cermet::cuda

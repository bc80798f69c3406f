// Host half of attention over batches of sequences of one length, in float32 on the CUDA cores.
#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/attention/attention.hpp"
#include "kernel/cuda/device/attention/batched.hpp"
#include "kernel/cuda/device/attention/general_shape.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "op/attention.hpp"
#include "op/attention_layout.hpp"

namespace cermet::cuda::attention_batched_file {
namespace {

using Call = BatchedAttention;

/// What a call says about shapes, at the symbols' maximum.
struct BatchedProblem {
  Call call;
  std::int64_t sequences, queries, keys, heads, kv_heads, head_size, value_size;

  explicit BatchedProblem(const Problem& p)
      : call(p.attributes),
        sequences(p.size(Call::q_operand, 0)),
        queries(p.size(Call::q_operand, call.q.tokens)),
        keys(p.size(Call::k_operand, call.k.tokens)),
        heads(p.size(Call::q_operand, call.q.heads)),
        kv_heads(p.size(Call::k_operand, call.k.heads)),
        head_size(p.size(Call::q_operand, call.q.size)),
        value_size(p.size(Call::v_operand, call.v.size)) {}

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t shared_bytes(int warp_rows) const { return attention::general_shared_bytes(head_size, value_size, warp_rows); }
  int warp_rows(const Target& target, const Config& config) const {
    if (!config.empty()) return static_cast<int>(config.at("warp_rows"));
    int best = 1;
    for (const int candidate : {2, 4})
      if (queries * group() > std::int64_t{best} * attention::general_warps && shared_bytes(candidate) <= target.shared_bytes) best = candidate;
    return best;
  }
};

Decline declines(const Problem& p) {
  if (!Call::is(p)) return "sequences one after the other; taken: a batch of sequences of one length";
  const BatchedProblem a(p);
  if (a.shared_bytes(1) > p.target->shared_bytes)
    return fmt::format("head sizes {} and {} need {} bytes of shared memory", a.head_size, a.value_size, a.shared_bytes(1));
  return std::nullopt;
}

std::vector<Config> configs(const Problem& p) {
  const BatchedProblem a(p);
  std::vector<Config> list(1);
  for (const int rows : {1, 2, 4})
    if (a.shared_bytes(rows) <= p.target->shared_bytes) list.push_back({{"warp_rows", rows}});
  return list;
}

/// Assumed, not measured: a quarter of the float32 rate, as for sequences one after the other.
double cost(const Problem& p, const DeviceLimits& limits) {
  const BatchedProblem a(p);
  const double scores = static_cast<double>(a.sequences * a.heads) * static_cast<double>(a.queries) * static_cast<double>(a.keys);
  return 3500 / limits.clock_hz + 4 * scores * 2 * static_cast<double>(a.head_size + a.value_size) / limits.f32_operations_per_second;
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  const int rows = a.warp_rows(*p.target, config);
  const bool has_bias = p.has(Call::bias), steps = a.call.q.size != 3 || a.call.k.size != 3 || a.call.v.size != 3;
  return {{.header = "kernel/cuda/device/attention/batched.cuh",
           .task = fmt::format("cermet::attention::BatchedTask<cermet::attention::BatchedConfig{{.general = {{.head_size = {}, .value_size = {}, .group = {}, "
                               ".block = 0, .q = {}, .kv = {}, .out = {}, .warp_rows = {}}}, .bias = {}, .has_bias = {}, .has_mask = {}, .steps = {}}}>",
                               a.head_size, a.value_size, a.group(), device_name(p.input(Call::q_operand).dtype), device_name(p.input(Call::k_operand).dtype),
                               device_name(p.outputs[0].dtype), rows, device_name(has_bias ? p.input(Call::bias).dtype : DType::f32), device_name(has_bias),
                               device_name(p.has(Call::mask)), device_name(steps)),
           .threads = 32 * attention::general_warps,
           .shared_bytes = a.shared_bytes(rows)}};
}

attention::ScoreOperand score_operand(const LaunchArgs& args, std::size_t operand) {
  if (!args.has(operand)) return {};
  const TensorView& view = args.inputs[operand];
  const auto stride = [&](int axis) -> std::int64_t {
    const int own = axis - (4 - view.shape.rank());
    return own < 0 || view.shape[own] == 1 ? 0 : view.strides[own];
  };
  return {view.data, stride(0), stride(1), stride(2), stride(3)};
}

attention::KeyList key_list(const TensorView& view, const AttentionAxes& axes) {
  return {view.data, 0, view.strides[axes.tokens], view.strides[axes.heads], nullptr, 0, 0, 0};
}

Launcher bind(const Problem& problem, const Config& config) {
  const BatchedProblem a(problem);
  const AttentionSettings settings(problem.attributes, a.head_size);
  const std::int64_t rows = std::int64_t{a.warp_rows(*problem.target, config)} * attention::general_warps;
  return [call = a.call, group = a.group(), rows, settings, masked_score = problem.attributes.number("masked_score")](const LaunchArgs& args) {
    const TensorView &q = args.inputs[Call::q_operand], &k = args.inputs[Call::k_operand], &v = args.inputs[Call::v_operand], &o = args.outputs[0];
    attention::BatchedParams p{};
    p.a.q = q.data;
    p.a.o = o.data;
    p.a.k = key_list(k, call.k);
    p.a.v = key_list(v, call.v);
    p.a.q_token_stride = q.strides[call.q.tokens];
    p.a.q_head_stride = q.strides[call.q.heads];
    p.a.o_token_stride = o.strides[call.o.tokens];
    p.a.o_head_stride = o.strides[call.o.heads];
    if (args.outputs.size() > 1) {
      p.a.lse = args.outputs[1].as<float>();
      p.a.lse_head_stride = args.outputs[1].strides[1];
      p.lse_batch_stride = args.outputs[1].strides[0];
    }
    if (args.has(Call::sinks)) p.a.sinks = args.inputs[Call::sinks].as<const float>();
    if (args.has(Call::alibi)) p.a.alibi = args.inputs[Call::alibi].as<const float>();
    p.a.tokens = narrow(q.shape[call.q.tokens], "attention", "queries");
    p.a.key_tokens = narrow(k.shape[call.k.tokens], "attention", "keys");
    p.a.kv_heads = narrow(k.shape[call.k.heads], "attention", "heads");
    p.a.sequences = 1;
    p.a.most_queries = std::numeric_limits<std::int32_t>::max();
    p.a.window = static_cast<std::int32_t>(std::min<std::int64_t>(settings.window, std::int64_t{1} << 30));
    p.a.scale = static_cast<float>(settings.scale);
    p.a.softcap = static_cast<float>(settings.softcap);
    p.a.causal = settings.causal;
    p.a.aligned = rows_aligned(q) && rows_aligned(k) && rows_aligned(v);
    p.bias = score_operand(args, Call::bias);
    p.mask = score_operand(args, Call::mask);
    p.q_batch_stride = q.strides[0];
    p.k_batch_stride = k.strides[0];
    p.v_batch_stride = v.strides[0];
    p.o_batch_stride = o.strides[0];
    p.q_step = q.strides[call.q.size];
    p.k_step = k.strides[call.k.size];
    p.v_step = v.strides[call.v.size];
    p.tiles = narrow(div_up(q.shape[call.q.tokens] * group, rows), "attention", "tiles");
    p.masked_score = static_cast<float>(masked_score);
    args.queue->run(0, q.shape[0] * p.tiles * p.a.kv_heads, p);
  };
}

}  // namespace

extern const Kernel attention_batched_general;
const Kernel attention_batched_general{.name = "attention.batched_general",
                                       .op = OpKind::flash_attention,
                                       .summary = "batches of sequences of one length in any layout, with biases and masks, float32 throughout",
                                       .declines = declines,
                                       .bind = bind,
                                       .programs = programs,
                                       .configs = configs,
                                       .cost = cost};

}  // namespace cermet::cuda::attention_batched_file

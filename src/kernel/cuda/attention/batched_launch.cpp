#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/attention/batched.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operands.hpp"

namespace cermet::cuda {
namespace {

using Call = BatchedAttention;

attention::ScoreOperand score_operand(const LaunchArgs& args, std::size_t operand, std::int64_t keys) {
  if (!args.has(operand)) return {};
  const TensorView& view = args.inputs[operand];
  const auto stride = [&](int axis) -> std::int64_t {
    const int own = axis - (4 - view.shape.rank());
    return own < 0 || view.shape[own] == 1 ? 0 : view.strides[own];
  };
  attention::ScoreOperand list{view.data, stride(0), stride(1), stride(2), stride(3), false};
  list.pairs = list.key_stride == 1 && (list.batch_stride | list.head_stride | list.token_stride | keys) % 2 == 0 &&
               reinterpret_cast<std::uintptr_t>(view.data) % (2 * size_of(view.dtype)) == 0;
  return list;
}

attention::KeyList key_list(const TensorView& view, const AttentionAxes& axes) {
  return {view.data, 0, view.strides[axes.tokens], view.strides[axes.heads], nullptr, 0, 0, 0};
}

}  // namespace

BatchedProblem::BatchedProblem(const Problem& p)
    : call(p.attributes),
      sequences(p.size(op::flash_attention::q, 0)),
      queries(p.size(op::flash_attention::q, call.q.tokens)),
      keys(p.size(op::flash_attention::k, call.k.tokens)),
      heads(p.size(op::flash_attention::q, call.q.heads)),
      kv_heads(p.size(op::flash_attention::k, call.k.heads)),
      head_size(p.size(op::flash_attention::q, call.q.size)),
      value_size(p.size(op::flash_attention::v, call.v.size)),
      type(p.input(op::flash_attention::q).dtype),
      out(p.outputs[0].dtype),
      steps(call.q.size != 3 || call.k.size != 3 || call.v.size != 3),
      plain(p.attributes.number("softcap") == 0 && !p.has(op::flash_attention::alibi)) {}

std::string score_config(const Problem& p) {
  const bool has_bias = p.has(op::flash_attention::bias);
  const attention::ScoreConfig config{.bias = has_bias ? p.input(op::flash_attention::bias).dtype : DType::f32,
                                      .has_bias = has_bias,
                                      .has_mask = p.has(op::flash_attention::mask)};
  return "cermet::attention::ScoreConfig" + config_text(config);
}

BatchedLaunch::BatchedLaunch(const Problem& p)
    : call_(p.attributes),
      settings_(p.attributes, p.size(op::flash_attention::q, call_.q.size)),
      group_(BatchedProblem(p).group()),
      masked_score_(static_cast<float>(p.attributes.number("masked_score"))),
      zero_rows_(p.attributes.text("empty_rows") == "zero") {}

attention::BatchedParams BatchedLaunch::params(const LaunchArgs& args, std::int64_t rows) const {
  const TensorView &q = args.inputs[op::flash_attention::q], &k = args.inputs[op::flash_attention::k],
                   &v = args.inputs[op::flash_attention::v], &o = args.outputs[0];
  attention::BatchedParams p{};
  p.a.q = q.data;
  p.a.o = o.data;
  p.a.k = key_list(k, call_.k);
  p.a.v = key_list(v, call_.v);
  p.a.q_token_stride = q.strides[call_.q.tokens];
  p.a.q_head_stride = q.strides[call_.q.heads];
  p.a.o_token_stride = o.strides[call_.o.tokens];
  p.a.o_head_stride = o.strides[call_.o.heads];
  if (args.outputs.size() > 1) {
    p.a.lse = args.outputs[1].as<float>();
    p.a.lse_head_stride = args.outputs[1].strides[1];
    p.lse_batch_stride = args.outputs[1].strides[0];
  }
  if (args.has(op::flash_attention::sinks)) p.a.sinks = args.inputs[op::flash_attention::sinks].as<const float>();
  if (args.has(op::flash_attention::alibi)) p.a.alibi = args.inputs[op::flash_attention::alibi].as<const float>();
  p.a.tokens = narrow(q.shape[call_.q.tokens], "attention", "queries");
  p.a.key_tokens = narrow(k.shape[call_.k.tokens], "attention", "keys");
  p.a.kv_heads = narrow(k.shape[call_.k.heads], "attention", "heads");
  p.a.sequences = 1;
  p.a.most_queries = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t widest_window = std::int64_t{1} << 30;
  p.a.window = static_cast<std::int32_t>(std::min(settings_.window, widest_window));
  p.a.window_after = static_cast<std::int32_t>(std::min(settings_.window_after, widest_window));
  p.a.scale = static_cast<float>(settings_.scale);
  p.a.softcap = static_cast<float>(settings_.softcap);
  p.a.causal = settings_.causal;
  p.a.zero_rows = zero_rows_;
  if (args.has(op::flash_attention::lengths)) {
    const TensorView& lengths = args.inputs[op::flash_attention::lengths];
    p.lengths = lengths.data;
    p.wide_lengths = lengths.dtype == DType::i64;
  }
  p.a.aligned = rows_aligned(q) && rows_aligned(k) && rows_aligned(v);
  p.a.aligned_out = rows_aligned(o);
  p.bias = score_operand(args, op::flash_attention::bias, p.a.key_tokens);
  p.mask = score_operand(args, op::flash_attention::mask, p.a.key_tokens);
  p.q_batch_stride = q.strides[0];
  p.k_batch_stride = k.strides[0];
  p.v_batch_stride = v.strides[0];
  p.o_batch_stride = o.strides[0];
  p.q_step = q.strides[call_.q.size];
  p.k_step = k.strides[call_.k.size];
  p.v_step = v.strides[call_.v.size];
  p.tiles = narrow(div_up(p.a.tokens * group_, rows), "attention", "tiles");
  p.masked_score = masked_score_;
  return p;
}

std::int64_t BatchedLaunch::items(const LaunchArgs& args, const attention::BatchedParams& p) {
  return args.inputs[op::flash_attention::q].shape[0] * p.tiles * p.a.kv_heads;
}

}  // namespace cermet::cuda

// Attention of sequences of one length: the same tasks as for ragged batches, with steps from the layouts.
#include "kernel/cpu/attention/pairs.hpp"
#include "kernel/cpu/attention/tile_attention.hpp"
#include "kernel/kernel.hpp"
#include "op/attention_layout.hpp"
#include "op/operands.hpp"

namespace cermet::cpu {
namespace {

using Call = BatchedAttention;

/// Bytes between elements of a row; 0 where they are side by side.
std::int64_t element_step(const TensorView& view, const AttentionAxes& axes) {
  return axes.size == 3 ? 0 : view.strides[axes.size] * byte_size(view.dtype);
}

KeyRows rows_of(const TensorView& view, const AttentionAxes& axes, std::int64_t batch, std::int64_t head) {
  KeyRows rows;
  rows.element_bytes = byte_size(view.dtype);
  rows.data =
      view.as<const std::byte>() + (batch * view.strides[0] + head * view.strides[axes.heads]) * byte_size(view.dtype);
  rows.row_step = view.strides[axes.tokens] * byte_size(view.dtype);
  rows.element_step = element_step(view, axes);
  return rows;
}

/// An operand that broadcasts to [B, Hq, S, T], from a sequence, head and token on.
ScoreOperand score_operand(const LaunchArgs& args, std::size_t operand, std::int64_t batch, std::int64_t head,
                           std::int64_t token) {
  if (!args.has(operand)) return {};
  const TensorView& view = args.inputs[operand];
  const auto step = [&](int axis) -> std::int64_t {
    const int own = axis - (4 - view.shape.rank());
    return own < 0 || view.shape[own] == 1 ? 0 : view.strides[own] * byte_size(view.dtype);
  };
  return {view.as<const std::byte>() + batch * step(0) + head * step(1) + token * step(2), step(2), step(1), step(3)};
}

/// What attributes say beside AttentionSettings.
struct Rows {
  double masked_score;
  bool zero;  ///< where all scores are -inf
  explicit Rows(const Attributes& attributes)
      : masked_score(attributes.number("masked_score")), zero(attributes.text("empty_rows") == "zero") {}
};

std::int64_t keys_of(const LaunchArgs& args, const Call& a, std::int64_t batch) {
  const TensorView* lengths =
      args.has(op::flash_attention::lengths) ? &args.inputs[op::flash_attention::lengths] : nullptr;
  return attention_length(lengths, batch, args.inputs[op::flash_attention::k].shape[a.k.tokens]);
}

AttentionShape shape_of(const LaunchArgs& args, const Call& a, const Rows& rows, const PairAttention* pairs) {
  const TensorView &q = args.inputs[op::flash_attention::q], &k = args.inputs[op::flash_attention::k],
                   &v = args.inputs[op::flash_attention::v], &o = args.outputs[0];
  AttentionShape shape{.head_size = q.shape[a.q.size],
                       .value_size = o.shape[a.o.size],
                       .group = q.shape[a.q.heads] / k.shape[a.k.heads],
                       .q_token_step = q.strides[a.q.tokens] * byte_size(q.dtype),
                       .q_head_step = q.strides[a.q.heads] * byte_size(q.dtype),
                       .o_token_step = o.strides[a.o.tokens] * byte_size(o.dtype),
                       .o_head_step = o.strides[a.o.heads] * byte_size(o.dtype),
                       .lse_head_step = args.outputs.size() > 1 ? args.outputs[1].strides[1] : 0,
                       .q_to_float = real_converter(q.dtype, DType::f32),
                       .k_to_float = real_converter(k.dtype, DType::f32),
                       .v_to_float = real_converter(v.dtype, DType::f32),
                       .o_from_float = real_converter(DType::f32, o.dtype),
                       .k_dtype = k.dtype,
                       .v_dtype = v.dtype,
                       .pairs = pairs};
  shape.q_element_step = element_step(q, a.q);
  if (shape.q_element_step != 0) shape.pairs = nullptr;
  shape.masked_score = static_cast<float>(rows.masked_score);
  shape.zero_rows = rows.zero;
  shape.floats_by_token = q.dtype == DType::f32 && o.dtype == DType::f32 && shape.q_element_step == 0 &&
                          element_step(o, a.o) == 0 && shape.group == 1;
  if (!args.has(op::flash_attention::bias)) return shape;
  const TensorView& bias = args.inputs[op::flash_attention::bias];
  shape.bias_to_float = real_converter(bias.dtype, DType::f32);
  shape.bias_bytes = byte_size(bias.dtype);
  return shape;
}

void launch(const LaunchArgs& args, const Call& a, const AttentionSettings& settings, const Rows& rows,
            const PairAttention* pairs) {
  const TensorView &q = args.inputs[op::flash_attention::q], &k = args.inputs[op::flash_attention::k],
                   &o = args.outputs[0];
  if (o.elements() == 0) return;
  const AttentionShape shape = shape_of(args, a, rows, pairs);
  const std::int64_t heads = k.shape[a.k.heads], tokens = q.shape[a.q.tokens],
                     most = attention_tile_tokens(shape.group), tiles = div_up(tokens, most);
  const auto task = [&](std::int64_t index) {
    const std::int64_t batch = index / (heads * tiles), head = index / tiles % heads, first = index % tiles * most,
                       first_head = head * shape.group;
    AttentionTask t;
    t.q = q.as<std::byte>() + batch * q.strides[0] * byte_size(q.dtype) + first * shape.q_token_step +
          first_head * shape.q_head_step;
    t.o = o.as<std::byte>() + batch * o.strides[0] * byte_size(o.dtype) + first * shape.o_token_step +
          first_head * shape.o_head_step;
    if (args.outputs.size() > 1)
      t.lse =
          args.outputs[1].as<float>() + batch * args.outputs[1].strides[0] + first_head * shape.lse_head_step + first;
    if (args.has(op::flash_attention::sinks))
      t.sinks = args.inputs[op::flash_attention::sinks].as<const float>() + first_head;
    if (args.has(op::flash_attention::alibi))
      t.alibi = args.inputs[op::flash_attention::alibi].as<const float>() + first_head;
    t.tokens = std::min(most, tokens - first);
    t.keys = keys_of(args, a, batch);
    t.position = t.keys - (tokens - first);
    t.k = rows_of(k, a.k, batch, head);
    t.v = rows_of(args.inputs[op::flash_attention::v], a.v, batch, head);
    t.bias = score_operand(args, op::flash_attention::bias, batch, first_head, first);
    t.mask = score_operand(args, op::flash_attention::mask, batch, first_head, first);
    return t;
  };
  UnlikeLengths lengths;
  for (std::int64_t b = 0; b < q.shape[0]; ++b) lengths.add(keys_of(args, a, b));  // before threads start: it may throw
  run_attention(settings, shape, q.shape[0] * heads * tiles, task, args.workspace, *args.pool, lengths.found());
}

}  // namespace

extern const Kernel attention_batched{
    .name = "attention.batched",
    .op = OpKind::flash_attention,
    .summary =
        "batches of sequences of one length in any layout, with biases and masks: tiles of queries against tiles of "
        "keys, float32 online softmax",
    .declines = [](const Problem& p) -> Decline {
      if (!Call::is(p)) return "sequences one after the other; taken: a batch of sequences of one length";
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      const Call a(p.attributes);
      return [a, settings = AttentionSettings(p.attributes, p.size(op::flash_attention::q, a.q.size)),
              rows = Rows(p.attributes), pairs = pairs_for(p.input(op::flash_attention::q).dtype)](
                 const LaunchArgs& args) { launch(args, a, settings, rows, pairs); };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const Call a(p.attributes);
      const std::int64_t group = p.size(op::flash_attention::q, a.q.heads) / p.size(op::flash_attention::k, a.k.heads);
      return attention_workspace(attention_tile_tokens(group), group, p.size(op::flash_attention::q, a.q.size),
                                 p.size(op::flash_attention::v, a.v.size), threads);
    },
};

}  // namespace cermet::cpu

#include "kernel/cpu/attention/pairs.hpp"
#include "kernel/cpu/attention/tile_attention.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cpu {
namespace {

using enum op::flash_attention::Operand;

/// Bounds of the sequences in a list of tokens.
class Bounds {
 public:
  Bounds(const LaunchArgs& args, std::size_t operand, std::int64_t tokens) : tokens_(tokens) {
    if (!args.has(operand)) return;
    list_ = args.inputs[operand];
    for (std::int64_t b = 0; b <= sequences(); ++b) {
      const std::int64_t bound = (*this)[b], before = b > 0 ? (*this)[b - 1] : 0;
      const bool fits =
          bound >= before && bound <= tokens && (b > 0 || bound == 0) && (b < sequences() || bound == tokens);
      require(fits, "flash_attention: operand {} ({}): expected values that rise from 0 to {}, found {} in place {}",
              operand, operand == cu_seqlens ? "cu_seqlens" : "cu_seqlens_k", tokens, bound, b);
    }
  }
  std::int64_t sequences() const { return list_.present ? list_.shape[0] - 1 : 1; }
  std::int64_t operator[](std::int64_t b) const {
    if (!list_.present) return b == 0 ? 0 : tokens_;
    return list_.dtype == DType::i64 ? list_.as<const std::int64_t>()[b] : list_.as<const std::int32_t>()[b];
  }

 private:
  TensorView list_;
  std::int64_t tokens_;
};

/// Tokens from `first` on, seen by key-value head `head`.
KeyRows rows_of(const TensorView& list, std::int64_t first, std::int64_t head) {
  KeyRows rows;
  rows.element_bytes = byte_size(list.dtype);
  rows.data = list.as<const std::byte>() + (first * list.strides[0] + head * list.strides[1]) * byte_size(list.dtype);
  rows.row_step = list.strides[0] * byte_size(list.dtype);
  return rows;
}

AttentionShape shape_of(const LaunchArgs& args, const PairAttention* pairs) {
  const TensorView &query = args.inputs[q], &o = args.outputs[0];
  return {.head_size = query.shape[2],
          .value_size = o.shape[2],
          .group = query.shape[1] / args.inputs[k].shape[1],
          .q_token_step = query.strides[0] * byte_size(query.dtype),
          .q_head_step = query.strides[1] * byte_size(query.dtype),
          .o_token_step = o.strides[0] * byte_size(o.dtype),
          .o_head_step = o.strides[1] * byte_size(o.dtype),
          .lse_head_step = args.outputs.size() > 1 ? args.outputs[1].strides[0] : 0,
          .q_to_float = real_converter(query.dtype, DType::f32),
          .k_to_float = real_converter(args.inputs[k].dtype, DType::f32),
          .v_to_float = real_converter(args.inputs[v].dtype, DType::f32),
          .o_from_float = real_converter(DType::f32, o.dtype),
          .k_dtype = args.inputs[k].dtype,
          .v_dtype = args.inputs[v].dtype,
          .pairs = pairs};
}

void launch(const LaunchArgs& args, const AttentionSettings& settings, const PairAttention* pairs) {
  const AttentionShape shape = shape_of(args, pairs);
  const std::int64_t heads = args.inputs[k].shape[1], tile_tokens = attention_tile_tokens(shape.group);
  const Bounds queries(args, cu_seqlens, args.inputs[q].shape[0]);
  const Bounds keys(args, args.has(cu_seqlens_k) ? cu_seqlens_k : cu_seqlens, args.inputs[k].shape[0]);
  QueryTiles tiles(reinterpret_cast<std::int64_t*>(args.workspace), queries.sequences(), tile_tokens);
  UnlikeLengths lengths;
  for (std::int64_t b = 0; b < queries.sequences(); ++b) {
    tiles.set(b, queries[b + 1] - queries[b]);
    lengths.add(keys[b + 1] - keys[b]);
  }
  const auto task = [&](std::int64_t index) {
    const QueryTiles::Tile tile = tiles[index / heads];
    const std::int64_t b = tile.sequence, head = index % heads, first = queries[b] + tile.first,
                       first_head = head * shape.group;
    AttentionTask t;
    t.q = args.inputs[q].as<std::byte>() + first * shape.q_token_step + first_head * shape.q_head_step;
    t.o = args.outputs[0].as<std::byte>() + first * shape.o_token_step + first_head * shape.o_head_step;
    if (args.outputs.size() > 1) t.lse = args.outputs[1].as<float>() + first_head * shape.lse_head_step + first;
    if (args.has(sinks)) t.sinks = args.inputs[sinks].as<const float>() + first_head;
    if (args.has(alibi)) t.alibi = args.inputs[alibi].as<const float>() + first_head;
    t.tokens = std::min(tile_tokens, queries[b + 1] - first);
    t.keys = keys[b + 1] - keys[b];
    t.position = t.keys - (queries[b + 1] - first);
    t.k = rows_of(args.inputs[k], keys[b], head);
    t.v = rows_of(args.inputs[v], keys[b], head);
    return t;
  };
  run_attention(settings, shape, tiles.count() * heads, task, args.workspace + QueryTiles::bytes(queries.sequences()),
                *args.pool, lengths.found());
}

}  // namespace

extern const Kernel attention_flash_attention{
    .name = "attention.ragged",
    .op = OpKind::flash_attention,
    .summary =
        "tiles of queries against tiles of keys, float32 online softmax; few queries with many keys are split by key "
        "range",
    .declines = [](const Problem& p) -> Decline {
      if (p.input(q).rank() == 4) return "a batch of sequences of one length; taken: sequences one after the other";
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      return [settings = AttentionSettings(p.attributes, p.size(q, 2)),
              pairs = pairs_for(p.input(q).dtype)](const LaunchArgs& args) { launch(args, settings, pairs); };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const std::int64_t group = p.size(q, 1) / p.size(k, 1),
                         sequences = p.has(cu_seqlens) ? p.size(cu_seqlens, 0) - 1 : 1;
      return QueryTiles::bytes(sequences) +
             attention_workspace(attention_tile_tokens(group), group, p.size(q, 2), p.size(v, 2), threads);
    },
};

}  // namespace cermet::cpu

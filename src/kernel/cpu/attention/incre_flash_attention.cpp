#include "base/checked.hpp"
#include "kernel/cpu/attention/key_cuts.hpp"
#include "kernel/cpu/attention/pairs.hpp"
#include "kernel/cpu/attention/tile_attention.hpp"
#include "kernel/cpu/attention/value_rows.hpp"
#include "kernel/kernel.hpp"
#include "kernel/wide_indices.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

using enum op::incre_flash_attention::Operand;
constexpr std::string_view name = "incre_flash_attention";

/// The checked operands of a launch, and its tiles of queries.
class Batch {
 public:
  Batch(const LaunchArgs& args, const AttentionSettings& settings, const KvCacheAxes& axes, const PairAttention* pairs)
      : args_(args),
        axes_(axes),
        pairs_(pairs),
        heads_(args.inputs[k_cache].shape[axes.heads]),
        block_(args.inputs[k_cache].shape[axes.block]),
        group_(args.inputs[q].shape[1] / heads_),
        sequences_(args.inputs[context_lens].shape[0]),
        tiles_(reinterpret_cast<std::int64_t*>(args.workspace), sequences_, attention_tile_tokens(group_)),
        value_rows_(args, args.workspace + QueryTiles::bytes(sequences_)) {
    for (std::int64_t b = 0; b < sequences_; ++b) {
      check_sequence(settings, b);
      tiles_.set(b, queries_end(b) - queries_begin(b));
      lengths_.add(contexts()[b]);
    }
    value_rows_.fill();
  }

  std::int64_t tasks() const { return tiles_.count() * heads_; }
  bool unlike() const { return lengths_.found(); }

  AttentionShape shape() const {
    const TensorView &query = args_.inputs[q], &o = args_.outputs[0];
    const auto bytes = [](const TensorView& view) { return byte_size(view.dtype); };
    return {.head_size = query.shape[2],
            .value_size = o.shape[2],
            .group = group_,
            .q_token_step = query.strides[0] * bytes(query),
            .q_head_step = query.strides[1] * bytes(query),
            .o_token_step = o.strides[0] * bytes(o),
            .o_head_step = o.strides[1] * bytes(o),
            .lse_head_step = args_.outputs.size() > 1 ? args_.outputs[1].strides[0] : 0,
            .q_to_float = key_converter(query.dtype),
            .k_to_float = key_converter(args_.inputs[k_cache].dtype),
            .v_to_float = key_converter(args_.inputs[v_cache].dtype),
            .o_from_float = real_converter(DType::f32, o.dtype),
            .k_dtype = args_.inputs[k_cache].dtype,
            .v_dtype = args_.inputs[v_cache].dtype,
            .pairs = pairs_,
            .k_to_bf16 = bf16_converter(args_.inputs[k_cache].dtype),
            .v_to_bf16 = bf16_converter(args_.inputs[v_cache].dtype)};
  }

  AttentionTask task(std::int64_t index, const AttentionShape& s) const {
    const QueryTiles::Tile tile = tiles_[index / heads_];
    const std::int64_t head = index % heads_, b = tile.sequence, first = queries_begin(b) + tile.first;
    const std::int64_t context = contexts()[b], end = queries_end(b);
    AttentionTask t;
    t.q = args_.inputs[q].as<std::byte>() + first * s.q_token_step + head * group_ * s.q_head_step;
    t.o = args_.outputs[0].as<std::byte>() + first * s.o_token_step + head * group_ * s.o_head_step;
    if (args_.outputs.size() > 1) t.lse = args_.outputs[1].as<float>() + head * group_ * s.lse_head_step + first;
    if (args_.has(sinks)) t.sinks = args_.inputs[sinks].as<const float>() + head * group_;
    if (args_.has(alibi)) t.alibi = args_.inputs[alibi].as<const float>() + head * group_;
    t.tokens = std::min(attention_tile_tokens(group_), end - first);
    t.position = context - end + first;
    t.keys = context;
    t.k = rows(k_cache, b, head);
    t.v = value_rows_.any() ? value_rows_.of(b, head) : rows(v_cache, b, head);
    return t;
  }

 private:
  const std::int32_t* contexts() const { return args_.inputs[context_lens].as<const std::int32_t>(); }
  std::int64_t queries_begin(std::int64_t b) const {
    return args_.has(query_starts) ? args_.inputs[query_starts].as<const std::int32_t>()[b] : b;
  }
  std::int64_t queries_end(std::int64_t b) const { return queries_begin(b + 1); }
  const std::int32_t* table(std::int64_t b) const {
    return args_.inputs[block_tables].as<const std::int32_t>() + b * args_.inputs[block_tables].strides[0];
  }

  /// Pages that a window has left may be gone.
  void check_sequence(const AttentionSettings& settings, std::int64_t b) const {
    const TensorView& tables = args_.inputs[block_tables];
    const std::int64_t context = contexts()[b], capacity = tables.shape[1] * block_, tokens = args_.inputs[q].shape[0];
    require(context >= 0 && context <= capacity,
            "{}: operand {} (context_lens): expected 0 to {} tokens, found {} for sequence {}", name,
            static_cast<int>(context_lens), capacity, context, b);
    const std::int64_t begin = queries_begin(b), end = queries_end(b);
    const bool fits = begin <= end && end <= tokens && (b > 0 || begin == 0) && (b + 1 < sequences_ || end == tokens);
    require(fits,
            "{}: operand {} (query_starts): expected values that rise from 0 to {}, found {} to {} for sequence {}",
            name, static_cast<int>(query_starts), tokens, begin, end, b);
    require(context == 0 || end - begin <= context,
            "{}: operand {} (context_lens): expected at least the {} queries of sequence {}, found {}", name,
            static_cast<int>(context_lens), end - begin, b, context);
    const std::int64_t first = visible_keys(settings, context - (end - begin), context).begin;
    for (std::int64_t page = first / block_; page * block_ < context; ++page)
      check_index(name, "3 (block_tables)", table(b)[page], args_.inputs[k_cache].shape[0]);
  }

  KeyRows rows(std::size_t which, std::int64_t b, std::int64_t head) const {
    const TensorView& cache = args_.inputs[which];
    KeyRows r;
    r.element_bytes = byte_size(cache.dtype);
    r.data = cache.as<const std::byte>() + head * cache.strides[axes_.heads] * r.element_bytes;
    r.page_step = cache.strides[0] * r.element_bytes;
    r.row_step = cache.strides[axes_.block] * r.element_bytes;
    r.table = table(b);
    r.block = block_;
    const std::size_t scale_operand = which - k_cache + k_scale;
    if (!args_.has(scale_operand)) return r;
    const TensorView& scale = args_.inputs[scale_operand];
    const bool per_token = scale.shape.rank() == 3;
    r.scale = scale.as<const float>() + head * (per_token ? scale.strides[axes_.heads] : head_scale_step(scale));
    if (per_token) {
      r.scale_page_step = scale.strides[0];
      r.scale_row_step = scale.strides[axes_.block];
    }
    return r;
  }

  const LaunchArgs& args_;
  KvCacheAxes axes_;
  const PairAttention* pairs_;
  std::int64_t heads_, block_, group_, sequences_;
  QueryTiles tiles_;
  ValueRows value_rows_;
  UnlikeLengths lengths_;
};

void launch(const LaunchArgs& args, const AttentionSettings& settings, const KvCacheAxes& axes,
            const PairAttention* pairs, std::int64_t value_bytes) {
  const Batch batch(args, settings, axes, pairs);
  const AttentionShape shape = batch.shape();
  run_attention(
      settings, shape, batch.tasks(), [&](std::int64_t index) { return batch.task(index, shape); },
      args.workspace + QueryTiles::bytes(args.inputs[context_lens].shape[0]) + value_bytes, *args.pool, batch.unlike());
}

}  // namespace

extern const Kernel attention_incre_flash_attention{
    .name = "attention.paged",
    .op = OpKind::incre_flash_attention,
    .summary =
        "tiles of queries against pages read in place, float32 online softmax; long contexts of few sequences are "
        "split by key range",
    .declines = [](const Problem& p) -> Decline {
      if (WideIndices::any(p)) return "indices are int64";
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      return [settings = AttentionSettings(p.attributes, p.size(q, 2)), axes = KvCacheAxes(p.attributes.text("layout")),
              pairs = pairs_for(p.input(q).dtype), value_bytes = ValueRows::bytes(p)](const LaunchArgs& args) {
        launch(args, settings, axes, pairs, value_bytes);
      };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const KvCacheAxes axes(p.attributes.text("layout"));
      const std::int64_t group = p.size(q, 1) / p.size(k_cache, axes.heads);
      return QueryTiles::bytes(p.size(context_lens, 0)) + ValueRows::bytes(p) +
             attention_workspace(attention_tile_tokens(group), group, p.size(q, 2), p.size(v_cache, 3), threads);
    },
};

}  // namespace cermet::cpu

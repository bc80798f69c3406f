#include "kernel/cuda/attention/attention_launch.hpp"

#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "op/attention.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"

namespace cermet::cuda {
namespace {

/// Operands of the two operators.
namespace paged = op::incre_flash_attention;
namespace ragged = op::flash_attention;

/// A window wider than this is as good as none.
constexpr std::int64_t widest_window = std::int64_t{1} << 30;

template <class T>
const T* optional_data(const LaunchArgs& args, std::size_t operand) {
  return args.has(operand) ? args.inputs[operand].as<const T>() : nullptr;
}

attention::KeyList key_list(const LaunchArgs& args, std::size_t operand, const KvCacheAxes& axes) {
  const TensorView& cache = args.inputs[operand];
  attention::KeyList list{
      cache.data, cache.strides[0], cache.strides[axes.block], cache.strides[axes.heads], nullptr, 0, 0, 0};
  if (cache.shape.rank() == 5) list.column_stride = cache.strides[3];
  const std::size_t scale = operand - paged::k_cache + paged::k_scale;
  if (!args.has(scale)) return list;
  const TensorView& scales = args.inputs[scale];
  list.scale = scales.as<const float>();
  if (scales.shape.rank() < 3) {
    list.scale_head_stride = head_scale_step(scales);
  } else {
    list.scale_page_stride = scales.strides[0];
    list.scale_row_stride = scales.strides[axes.block];
    list.scale_head_stride = scales.strides[axes.heads];
  }
  return list;
}

}  // namespace

AttentionTiles attention_tiles(const Problem& problem, std::int64_t rows) {
  const AttentionProblem a(problem);
  const std::int64_t sequences = std::max<std::int64_t>(1, a.sequences), queries = div_up(a.tokens, sequences);
  const double shared = static_cast<double>(problem.size(1, 0)) / static_cast<double>(sequences) *
                        (problem.attributes.flag("causal") ? 0.5 : 1);
  return {div_up(std::max<std::int64_t>(1, queries * a.group()), rows) * sequences * a.kv_heads,
          a.paged ? static_cast<double>(a.keys) : shared};
}

double attention_seconds(const Problem& problem, std::int64_t rows, double cycles_per_score,
                         const DeviceLimits& limits) {
  const AttentionProblem a(problem);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const AttentionTiles tiles = attention_tiles(problem, rows);
  const double share = std::max(
      1.0, number(tiles.count) /
               problem.target->multiprocessors);  // of an SM; blocks of two tiles share it where there are more
  const double scores = share * number(rows) * tiles.keys * cycles_per_score;
  const double cache =
      2 * number(std::max<std::int64_t>(1, a.sequences) * a.kv_heads * (a.head_size + a.value_size)) * tiles.keys;
  return attention_cycles / limits.clock_hz + std::max(scores / limits.clock_hz, cache / limits.read_bytes_per_second);
}

bool rows_aligned(const TensorView& view) {
  const auto bytes = byte_size(view.dtype);
  bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  for (int axis = 0; axis + 1 < view.shape.rank(); ++axis) aligned &= view.strides[axis] * bytes % 16 == 0;
  return aligned;
}

TokenSlabs::TokenSlabs(std::initializer_list<const TensorView*> views, int axes) : outer_axes_(axes) {
  const Shape& shape = (*views.begin())->shape;
  for (int axis = 0; axis < axes; ++axis) tokens_ *= shape[axis];
  for (int axis = axes - 1; axis >= 0; --axis) {
    const bool even = std::all_of(views.begin(), views.end(), [&](const TensorView* v) {
      return inner_ < 0 || v->strides[axis] == slab_ * step(*v);
    });
    if (shape[axis] != 1 && !even) break;
    outer_axes_ = axis;
    if (shape[axis] == 1) continue;
    if (inner_ < 0) inner_ = axis;
    slab_ *= shape[axis];
  }
}

std::byte* TokenSlabs::address(const TensorView& view, std::int64_t token) const {
  std::int64_t offset = 0, index = token / slab_;
  for (int axis = outer_axes_ - 1; axis >= 0; --axis) {
    offset += index % view.shape[axis] * view.strides[axis];
    index /= view.shape[axis];
  }
  return view.as<std::byte>() + offset * byte_size(view.dtype);
}

AttentionProblem::AttentionProblem(const Problem& p)
    : paged(p.op->kind == OpKind::incre_flash_attention),
      tokens(p.size(0, 0)),
      heads(p.size(0, 1)),
      kv_heads(p.size(1, paged ? KvCacheAxes(p.attributes.text("layout")).heads : 1)),
      head_size(p.size(0, 2)),
      value_size(p.size(2, paged ? 3 : -1)),
      sequences(1),
      q(p.input(0).dtype),
      kv(p.input(1).dtype),
      out(p.outputs[0].dtype),
      has_scales(paged && p.has(paged::k_scale)),
      columns(paged && in_columns(p.input(paged::v_cache))),
      token_scales(has_scales && (has_token_scales(p, paged::k_scale) || has_token_scales(p, paged::v_scale))),
      has_bounds(p.has(paged ? std::size_t{paged::query_starts} : std::size_t{ragged::cu_seqlens})),
      plain(p.attributes.number("softcap") == 0 &&
            !p.has(paged ? std::size_t{paged::alibi} : std::size_t{ragged::alibi})) {
  if (paged) {
    sequences = p.size(paged::block_tables, 0);
    pages = p.size(paged::block_tables, 1);
    block = p.size(1, KvCacheAxes(p.attributes.text("layout")).block);
    keys = pages * block;
  } else {
    if (has_bounds) sequences = p.size(ragged::cu_seqlens, 0) - 1;
    keys = p.size(1, 0);
  }
}

AttentionLaunch::AttentionLaunch(const Problem& p) : paged_(p.op->kind == OpKind::incre_flash_attention) {
  const AttentionSettings settings(p.attributes, p.size(0, 2));
  heads_first_ = paged_ && p.attributes.text("layout") == "hnd";
  causal_ = settings.causal;
  scale_ = static_cast<float>(settings.scale);
  softcap_ = static_cast<float>(settings.softcap);
  window_ = static_cast<std::int32_t>(std::min(settings.window, widest_window));
  window_after_ = static_cast<std::int32_t>(std::min(settings.window_after, widest_window));
}

attention::Params AttentionLaunch::params(const LaunchArgs& args, std::int32_t least_queries) const {
  const TensorView &q = args.inputs[0], &k = args.inputs[1], &v = args.inputs[2], &o = args.outputs[0];
  attention::Params p{};
  p.q = q.data;
  p.o = o.data;
  p.q_token_stride = q.strides[0];
  p.q_head_stride = q.strides[1];
  p.o_token_stride = o.strides[0];
  p.o_head_stride = o.strides[1];
  if (args.outputs.size() > 1) {
    p.lse = args.outputs[1].as<float>();
    p.lse_head_stride = args.outputs[1].strides[0];
  }
  p.tokens = narrow(q.shape[0], "attention", "queries");
  p.sequences = 1;
  p.least_queries = least_queries;
  p.most_queries = std::numeric_limits<std::int32_t>::max();
  p.scale = scale_;
  p.softcap = softcap_;
  p.window = window_;
  p.window_after = window_after_;
  p.causal = causal_;
  p.aligned = rows_aligned(q) && rows_aligned(k) && rows_aligned(v);
  p.aligned_out = rows_aligned(o);
  p.partials = args.workspace;
  if (paged_) {
    const KvCacheAxes axes(heads_first_ ? "hnd" : "nhd");
    const TensorView& tables = args.inputs[paged::block_tables];
    p.k = key_list(args, paged::k_cache, axes);
    p.v = key_list(args, paged::v_cache, axes);
    p.block_tables = tables.as<const std::int32_t>();
    p.context_lens = args.inputs[paged::context_lens].as<const std::int32_t>();
    p.query_starts = optional_data<std::int32_t>(args, paged::query_starts);
    p.sinks = optional_data<float>(args, paged::sinks);
    p.alibi = optional_data<float>(args, paged::alibi);
    p.table_stride = tables.strides[0];
    p.sequences = narrow(tables.shape[0], "attention", "sequences");
    p.pages = narrow(tables.shape[1], "attention", "pages of a sequence");
    p.blocks = narrow(k.shape[0], "attention", "blocks");
    p.kv_heads = narrow(k.shape[axes.heads], "attention", "heads");
    require(tables.shape[1] * k.shape[axes.block] < widest_window,
            "attention: expected tables of fewer than 2^30 tokens, found {} pages of {}", p.pages, k.shape[axes.block]);
  } else {
    p.k = {k.data, 0, k.strides[0], k.strides[1], nullptr, 0, 0, 0};
    p.v = {v.data, 0, v.strides[0], v.strides[1], nullptr, 0, 0, 0};
    p.sinks = optional_data<float>(args, ragged::sinks);
    p.alibi = optional_data<float>(args, ragged::alibi);
    p.kv_heads = narrow(k.shape[1], "attention", "heads");
    p.key_tokens = narrow(k.shape[0], "attention", "keys");
    require(p.key_tokens < widest_window, "attention: expected fewer than 2^30 keys, found {}", p.key_tokens);
    if (args.has(ragged::cu_seqlens)) {
      p.query_starts = args.inputs[ragged::cu_seqlens].data;
      const TensorView& keys = args.inputs[args.has(ragged::cu_seqlens_k) ? ragged::cu_seqlens_k : ragged::cu_seqlens];
      p.key_starts = keys.data;
      p.wide_queries = args.inputs[ragged::cu_seqlens].dtype == DType::i64;
      p.wide_keys = keys.dtype == DType::i64;
      p.sequences = narrow(args.inputs[ragged::cu_seqlens].shape[0] - 1, "attention", "sequences");
    }
  }
  return p;
}

bool has_values_in_keys(const attention::Params& p) {
  return p.k.data == p.v.data && p.k.page_stride == p.v.page_stride && p.k.row_stride == p.v.row_stride &&
         p.k.head_stride == p.v.head_stride;
}

std::int64_t AttentionLaunch::most_tiles(const attention::Params& p, std::int64_t group, std::int64_t rows) {
  if (p.tokens == 0 || p.sequences == 0) return 0;
  if (!p.query_starts) return p.sequences * div_up(p.tokens / p.sequences * group, rows);
  // A sequence with x rows has 1 + (x - 1) / rows tiles, which is most when as many sequences as possible have queries;
  // and no more than its queries alone.
  const std::int64_t with_queries = std::min<std::int64_t>(p.sequences, p.tokens);
  return std::min(with_queries + (p.tokens * group - with_queries) / rows, p.tokens * div_up(group, rows));
}

}  // namespace cermet::cuda

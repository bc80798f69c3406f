// One query of a few heads against keys: elements of a head lie in the lanes, where the rows of a tile would leave most
// lanes empty. Keys and values are read once, where they are, so that decoding keeps the pace of the memory. Include
// after <hwy/foreach_target.h>.
#if defined(CERMET_FEW_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_FEW_ROWS_INL
#undef CERMET_FEW_ROWS_INL
#else
#define CERMET_FEW_ROWS_INL
#endif

#include <algorithm>
#include <limits>
#include <utility>

#include "kernel/cpu/attention/few_products-inl.hpp"
#include "kernel/cpu/attention/key_rows-inl.hpp"
#include "kernel/cpu/attention/pairs.hpp"
#include "kernel/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// A row's scores become weights exp(s - maximum); its maximum, sum and output are brought to the new maximum.
inline void weigh_row(float* scores, std::int64_t count, float& maximum, float& sum, float* output,
                      std::int64_t value_size) {
  const auto keys = static_cast<std::size_t>(count);
  auto most = hn::Set(FloatTag(), maximum);
  for_vectors(keys, [&](std::size_t j, std::size_t n) HWY_ATTR {
    most = hn::Max(most, load_n(scores + j, n, std::numeric_limits<float>::lowest()));
  });
  const auto before = std::exchange(maximum, max_lanes(most));
  const auto top = hn::Set(FloatTag(), maximum);
  auto added = hn::Zero(FloatTag());
  for_vectors(keys, [&](std::size_t j, std::size_t n) HWY_ATTR {
    const auto weight = exp_of_negative(hn::Sub(load_n(scores + j, n, -std::numeric_limits<float>::infinity()), top)).v;
    store_n(weight, scores + j, n);
    added = hn::Add(added, n == lanes() ? weight : hn::IfThenElseZero(hn::FirstN(FloatTag(), n), weight));
  });
  const auto correction = exp_of_negative(hn::Set(FloatTag(), before - maximum)).v;
  const float factor = hn::GetLane(correction);
  sum = sum * factor + sum_lanes(added);
  if (factor == 1.0f) return;
  for_vectors(static_cast<std::size_t>(value_size), [&](std::size_t d, std::size_t n) HWY_ATTR {
    store_n(hn::Mul(load_n(output + d, n), correction), output + d, n);
  });
}

/// What multiplies up to few_block rows with keys and values of one element type; element r - 1 of a table takes r
/// rows.
struct FewProducts {
  ScoreFew score[few_block];
  AddFew add[few_block];
  std::int64_t (*place)(std::int64_t d, std::int64_t length);  ///< of an element in queries and outputs
};

template <class T>
inline constexpr FewProducts few_products = {{score_few<T, 1>, score_few<T, 2>, score_few<T, 3>, score_few<T, 4>},
                                             {add_few<T, 1>, add_few<T, 2>, add_few<T, 3>, add_few<T, 4>},
                                             place_of<T>};

/// Products for rows that are read where they are; null: they are widened in a tile first.
inline const FewProducts* products_in_place(DType dtype, std::int64_t length) {
  if (dtype == DType::f32) return &few_products<float>;
  if (length % static_cast<std::int64_t>(lanes()) != 0) return nullptr;
  if (dtype == DType::bf16) return &few_products<format::bf16>;
  if (dtype == DType::i8) return &few_products<std::int8_t>;
  if (dtype == DType::f8_e4m3) return &few_products<format::e4m3>;
  if (dtype == DType::f8_e5m2) return &few_products<format::e5m2>;
  return &few_products<format::f16>;
}

/// Keys or values of a task in tiles, one after the other.
class TileStream {
 public:
  TileStream(const KeyRows& rows, DType dtype, RunConverter convert, std::int64_t length, float factor, float* tile)
      : rows_(rows),
        stream_(rows, factor),
        convert_(convert),
        length_(length),
        factor_(factor),
        tile_(tile),
        in_place_(products_in_place(dtype, length)) {}

  const FewProducts& products() const { return in_place_ ? *in_place_ : few_products<float>; }
  bool in_place() const { return in_place_; }

  void begin(std::int64_t begin, std::int64_t end) {
    stream_.begin(begin, end);
    prefetch_rows(rows_, length_, begin, end);
  }
  /// Rows begin .. end, and the rows to prefetch meanwhile, which end before `next_end`.
  RowStream::Step take(std::int64_t begin, std::int64_t end, std::int64_t next_end) {
    const RowStream::Step step = stream_.take(end, next_end);
    if (in_place_) return step;
    load_rows(rows_, convert_, length_, begin, end, tile_);
    widened_.find_dense(reinterpret_cast<const std::byte*>(tile_), 4 * length_, end - begin, factor_);
    return {widened_, step.ahead};
  }

 private:
  const KeyRows& rows_;
  RowStream stream_;
  RunConverter convert_;
  std::int64_t length_;
  float factor_;
  float* tile_;
  const FewProducts* in_place_;
  TileRows widened_;
};

/// Attends to keys begin .. end, of which there are some, of a task with `rows` rows, whose state is cleared.
HWY_NOINLINE void attend_few(const AttentionSettings& settings, const AttentionShape& shape, const AttentionTask& task,
                             const RowState& state, std::int64_t begin, std::int64_t end, int rows) {
  const std::int64_t head_size = shape.head_size, value_size = shape.value_size;
  TileStream keys(task.k, shape.k_dtype, shape.k_to_float, head_size, static_cast<float>(settings.scale), state.keys),
      values(task.v, shape.v_dtype, shape.v_to_float, value_size, 1.0f, state.values);
  const bool in_pairs = shape.pairs && shape.k_dtype == DType::bf16 && head_size % few_pairs_multiple == 0;
  const ScoreFew* const score = in_pairs ? shape.pairs->score_few : keys.products().score;
  const std::int64_t query_bytes = head_size * (in_pairs ? 2 : 4);
  auto* const query = reinterpret_cast<std::byte*>(state.few);
  float* const output = state.few + few_rows * head_size;
  for (int r = 0; r < rows; ++r) {
    const std::byte* const q = task.q + r * shape.q_head_step;
    std::byte* const to = query + r * query_bytes;
    if (in_pairs) {
      std::copy_n(q, query_bytes, to);
      continue;
    }
    load_query(shape, q, state.row);
    for (std::int64_t d = 0; d < head_size; ++d)
      reinterpret_cast<float*>(to)[keys.products().place(d, head_size)] = state.row[d];
  }
  std::fill_n(output, rows * value_size, 0.0f);
  std::fill_n(state.maximum, rows, std::numeric_limits<float>::lowest());
  std::fill_n(state.sum, rows, 0.0f);
  keys.begin(begin, std::min(end, begin + key_tile));
  values.begin(begin, std::min(end, begin + key_tile));
  for (std::int64_t tile = begin; tile < end; tile += key_tile) {
    const std::int64_t count = std::min(key_tile, end - tile), next = tile + count,
                       next_end = std::min(end, next + key_tile);
    const auto for_blocks = [&](auto&& body) HWY_ATTR {
      for (int r = 0; r < rows; r += few_block) body(r, std::min(few_block, rows - r) - 1);
    };
    const auto [k, k_ahead] = keys.take(tile, next, next_end);
    for_blocks([&](int r, int table) HWY_ATTR {
      score[table](query + r * query_bytes, k, count, head_size, r == 0 ? k_ahead : nullptr,
                   state.scores + r * key_tile);
    });
    const auto [v, v_ahead] = values.take(tile, next, next_end);
    for (int r = 0; r < rows; ++r) {
      float* const scores = state.scores + r * key_tile;
      if (settings.softcap > 0)
        cap_scores(scores, static_cast<std::size_t>(count), static_cast<float>(settings.softcap));
      weigh_row(scores, count, state.maximum[r], state.sum[r], output + r * value_size, value_size);
      for (std::int64_t j = 0; task.v.scale && values.in_place() && j < count; ++j) scores[j] *= v.factor[j];
    }
    for_blocks([&](int r, int table) HWY_ATTR {
      values.products().add[table](state.scores + r * key_tile, v, count, value_size, r == 0 ? v_ahead : nullptr,
                                   output + r * value_size);
    });
  }
  for (int r = 0; r < rows; ++r)
    for (std::int64_t d = 0; d < value_size; ++d)
      state.output[d * state.rows + r] = output[r * value_size + values.products().place(d, value_size)];
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

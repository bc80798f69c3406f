#include "kernel/cpu/attention/attend.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/attention/attend.cpp"
#include <hwy/foreach_target.h>

#include <limits>

#include "kernel/cpu/attention/few_rows-inl.hpp"
#include "kernel/cpu/attention/pairs.hpp"
#include "kernel/cpu/attention/product-inl.hpp"
#include "kernel/cpu/attention/scores-inl.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/math-inl.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Key `begin + j` at row j of s[count][rows]: subtracts slope * distance.
void add_alibi(float* s, const RowState& state, std::int64_t begin, std::int64_t count) {
  const hn::RebindToSigned<FloatTag> ints;
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t r = 0; r < state.rows; r += static_cast<std::int64_t>(lanes())) {
      const auto distance =
          hn::Abs(hn::Sub(hn::LoadU(ints, state.position + r), hn::Set(ints, static_cast<std::int32_t>(begin + j))));
      float* score = s + j * state.rows + r;
      store(hn::NegMulAdd(load(state.slope + r), hn::ConvertTo(FloatTag(), distance), load(score)), score);
    }
}

/// Mask of the lanes from row r that see key j.
HWY_INLINE auto visible(const RowState& state, std::int64_t r, std::int64_t j) {
  const hn::RebindToSigned<FloatTag> ints;
  const auto key = hn::Set(ints, static_cast<std::int32_t>(j));
  return hn::RebindMask(FloatTag(), hn::AndNot(hn::Lt(key, hn::LoadU(ints, state.first + r)),
                                               hn::Lt(key, hn::LoadU(ints, state.last + r))));
}

/// Scores of keys that a row does not see become -infinity.
void mask_scores(float* s, const RowState& state, std::int64_t begin, std::int64_t count) {
  const auto nothing = hn::Set(FloatTag(), -std::numeric_limits<float>::infinity());
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t r = 0; r < state.rows; r += static_cast<std::int64_t>(lanes())) {
      float* score = s + j * state.rows + r;
      store(hn::IfThenElse(visible(state, r, begin + j), load(score), nothing), score);
    }
}

/// Turns scores s[count][rows] into weights exp(s - maximum), with the running maxima, sums and outputs rescaled to the
/// new maxima.
void update_softmax(float* s, const RowState& state, std::int64_t count, std::int64_t value_size) {
  for (std::int64_t r = 0; r < state.rows; r += static_cast<std::int64_t>(lanes())) {
    const auto before = load(state.maximum + r);
    auto maximum = before;
    for (std::int64_t j = 0; j < count; ++j) maximum = hn::Max(maximum, load(s + j * state.rows + r));
    auto sum = hn::Zero(FloatTag());
    for (std::int64_t j = 0; j < count; ++j) {
      const auto weight = exp_of_negative(hn::Sub(load(s + j * state.rows + r), maximum)).v;
      store(weight, s + j * state.rows + r);
      sum = hn::Add(sum, weight);
    }
    const auto correction = exp_of_negative(hn::Sub(before, maximum)).v;
    store(hn::MulAdd(load(state.sum + r), correction, sum), state.sum + r);
    store(maximum, state.maximum + r);
    if (hn::AllTrue(FloatTag(), hn::Eq(correction, hn::Set(FloatTag(), 1.0f)))) continue;
    for (std::int64_t d = 0; d < value_size; ++d)
      store(hn::Mul(load(state.output + d * state.rows + r), correction), state.output + d * state.rows + r);
  }
}

bool all_finite(const float* x, std::size_t count) {
  auto poison = hn::Zero(FloatTag());
  for_vectors(count, [&](std::size_t i, std::size_t n)
                         HWY_ATTR { poison = hn::MulAdd(hn::Zero(FloatTag()), load_n(x + i, n), poison); });
  return sum_lanes(poison) == 0;
}

/// Of `count` keys.
bool all_finite(const Broadcast& values, std::int64_t value_size, std::int64_t keys) {
  if (values.m_step == 1) {
    for (std::int64_t d = 0; d < value_size; ++d)
      if (!all_finite(values.data + d * values.k_step, static_cast<std::size_t>(keys))) return false;
    return true;
  }
  for (std::int64_t j = 0; j < keys; ++j)
    if (!all_finite(values.data + j * values.m_step, static_cast<std::size_t>(value_size))) return false;
  return true;
}

/// output += weights * values, skipping values that a row does not see instead of multiplying them by zero: they may be
/// NaN or infinite. With `by_weight`, what has a weight of 0 is not seen.
void accumulate_visible(const float* weights, const Broadcast& values, const RowState& state, std::int64_t begin,
                        std::int64_t count, std::int64_t value_size, bool by_weight) {
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t r = 0; r < state.rows; r += static_cast<std::int64_t>(lanes())) {
      const auto weight = load(weights + j * state.rows + r);
      auto mask = visible(state, r, begin + j);
      if (by_weight) mask = hn::And(mask, hn::Ne(weight, hn::Zero(FloatTag())));
      for (std::int64_t d = 0; d < value_size; ++d) {
        float* out = state.output + d * state.rows + r;
        const auto value = hn::Set(FloatTag(), values.data[j * values.m_step + d * values.k_step]);
        store(hn::IfThenElse(mask, hn::MulAdd(weight, value, load(out)), load(out)), out);
      }
    }
}

/// weights[j][row] *= the factor of value j.
void scale_weights(float* weights, std::int64_t rows, const TileRows& values, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t r = 0; r < rows; r += static_cast<std::int64_t>(lanes())) {
      float* weight = weights + j * rows + r;
      store(hn::Mul(load(weight), hn::Set(FloatTag(), values.factor[j])), weight);
    }
}

/// Attends to keys begin .. end of a task whose rows are in `state`.
void attend_keys(const AttentionSettings& settings, const AttentionShape& shape, const AttentionTask& task,
                 const RowState& state, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  if (const int few = few_rows_of(shape, task)) return attend_few(settings, shape, task, state, begin, end, few);
  const std::int64_t rows = state.rows, head_size = shape.head_size, value_size = shape.value_size;
  const bool k_pairs = scores_in_pairs(shape, task), v_pairs = values_in_pairs(shape, task);
  PairStream k_stream(task.k, shape.k_to_bf16, head_size, static_cast<float>(settings.scale), state.keys),
      v_stream(task.v, shape.v_to_bf16, value_size, 1.0f, state.values);
  if (k_pairs) k_stream.begin(begin, std::min(end, begin + key_tile));
  if (v_pairs) v_stream.begin(begin, std::min(end, begin + key_tile));
  for (std::int64_t j = begin; j < end; j += key_tile) {
    const std::int64_t count = std::min(key_tile, end - j), next = j + count, next_end = std::min(end, next + key_tile);
    if (k_pairs) {
      const auto [tile, ahead] = k_stream.take(count, next, next_end);
      shape.pairs->score_tile(reinterpret_cast<const std::byte*>(state.query), rows, tile, count, head_size, ahead,
                              state.scores);
    } else {
      prefetch_rows(task.k, head_size, next, next_end);
      const Broadcast keys = keys_of(task.k, shape.k_to_float, head_size, j, next, state.keys);
      product(keys, state.query, state.scores, {count, rows, head_size}, false);
    }
    if (settings.softcap > 0)
      cap_scores(state.scores, static_cast<std::size_t>(count * rows), static_cast<float>(settings.softcap));
    if (task.alibi) add_alibi(state.scores, state, j, count);
    if (task.bias.data) add_bias(state.scores, shape, task, state, j, count);
    if (task.mask.data) mask_by_operand(state.scores, shape, task, state, j, count);
    const bool by_weight = task.bias.data || task.mask.data, masked = state.last_first > j || state.first_last < next;
    if (masked) mask_scores(state.scores, state, j, count);
    update_softmax(state.scores, state, count, value_size);
    if (v_pairs) {
      const auto [tile, ahead] = v_stream.take(count, next, next_end);
      if (!(masked || by_weight) ||
          (all_finite(tile.factor, key_tile) && shape.pairs->all_finite(tile, count, value_size))) {
        if (task.v.scale) scale_weights(state.scores, rows, tile, count);
        shape.pairs->add_values(state.scores, rows, tile, count, value_size, ahead, state.output);
        continue;
      }
    }
    prefetch_rows(task.v, value_size, next, next_end);
    const Broadcast values = keys_of(task.v, shape.v_to_float, value_size, j, next, state.values);
    if ((masked || by_weight) && !all_finite(values, value_size, count)) {
      accumulate_visible(state.scores, values, state, j, count, value_size, by_weight);
    } else {
      product({values.data, values.k_step, values.m_step}, state.scores, state.output, {value_size, rows, count}, true);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Four vectors of four as the columns of their matrix.
template <class D, class V>
HWY_INLINE void transpose(D d, V (&x)[4]) {
  const V ac = hn::InterleaveLower(d, x[0], x[2]), bd = hn::InterleaveLower(d, x[1], x[3]);
  const V upper_ac = hn::InterleaveUpper(d, x[0], x[2]), upper_bd = hn::InterleaveUpper(d, x[1], x[3]);
  x[0] = hn::InterleaveLower(d, ac, bd), x[1] = hn::InterleaveUpper(d, ac, bd);
  x[2] = hn::InterleaveLower(d, upper_ac, upper_bd), x[3] = hn::InterleaveUpper(d, upper_ac, upper_bd);
}
#endif

/// to[c][r] = from[r][c] * scale(c), 4 x 4 elements at a time.
template <class Vectors, class Scalars>
HWY_INLINE void transpose_scaled(const float* from, std::int64_t from_step, std::int64_t rows, std::int64_t columns,
                                 float* to, std::int64_t to_step, [[maybe_unused]] const Vectors& scale_row,
                                 const Scalars& scale) {
  std::int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  whole_rows = rows & ~std::int64_t{3}, whole_columns = columns & ~std::int64_t{3};
  for (std::int64_t r = 0; r < whole_rows; r += 4)
    for (std::int64_t c = 0; c < whole_columns; c += 4) {
      hn::Vec<decltype(d)> x[4];
      for (int i = 0; i < 4; ++i) x[i] = scale_row(d, hn::LoadU(d, from + (r + i) * from_step + c), c);
      transpose(d, x);
      for (int i = 0; i < 4; ++i) hn::StoreU(x[i], d, to + (c + i) * to_step + r);
    }
#endif
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
      to[c * to_step + r] = from[r * from_step + c] * scale(c);
}

void lay_query_rows(const float* q, std::int64_t step, std::int64_t count, std::int64_t head_size, float scale,
                    const RowState& state) {
  transpose_scaled(
      q, step, count, head_size, state.query, state.rows,
      [&](auto d, auto x, std::int64_t) HWY_ATTR { return hn::Mul(x, hn::Set(d, scale)); },
      [&](std::int64_t) { return scale; });
}

void store_output_rows(const RowState& state, const float* share, std::int64_t count, std::int64_t value_size, float* o,
                       std::int64_t step) {
  transpose_scaled(
      state.output, state.rows, value_size, count, o, step,
      [&](auto d, auto x, std::int64_t r) HWY_ATTR { return hn::Mul(x, hn::LoadU(d, share + r)); },
      [&](std::int64_t r) { return share[r]; });
}

RunConverter find_key_converter(DType dtype) {
  if (dtype == DType::i8) return widen_run<std::int8_t>;
  if (dtype == DType::f8_e4m3) return widen_run<format::e4m3>;
  if (dtype == DType::f8_e5m2) return widen_run<format::e5m2>;
  return real_converter(dtype, DType::f32);
}

RunConverter find_bf16_converter(DType dtype) {
  if (dtype == DType::i8) return widen_run_to_bf16<std::int8_t>;
  if (dtype == DType::f8_e4m3) return widen_run_to_bf16<format::e4m3>;
  if (dtype == DType::f8_e5m2) return widen_run_to_bf16<format::e5m2>;
  return nullptr;
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(attend_keys);
HWY_EXPORT(find_bf16_converter);
HWY_EXPORT(find_key_converter);
HWY_EXPORT(lay_query_rows);
HWY_EXPORT(store_output_rows);

void attend(const AttentionSettings& settings, const AttentionShape& shape, const AttentionTask& task,
            const RowState& state, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(attend_keys)(settings, shape, task, state, begin, end);
}

void lay_queries(const float* q, std::int64_t step, std::int64_t count, std::int64_t head_size, float scale,
                 const RowState& state) {
  HWY_DYNAMIC_DISPATCH(lay_query_rows)(q, step, count, head_size, scale, state);
}

void store_outputs(const RowState& state, const float* share, std::int64_t count, std::int64_t value_size, float* o,
                   std::int64_t step) {
  HWY_DYNAMIC_DISPATCH(store_output_rows)(state, share, count, value_size, o, step);
}

RunConverter key_converter(DType dtype) { return HWY_DYNAMIC_DISPATCH(find_key_converter)(dtype); }
RunConverter bf16_converter(DType dtype) { return HWY_DYNAMIC_DISPATCH(find_bf16_converter)(dtype); }

}  // namespace cermet::cpu
#endif

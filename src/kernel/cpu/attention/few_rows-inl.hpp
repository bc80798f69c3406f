// One query of a few heads against keys: elements of a head lie in the lanes, where the rows of a tile would leave most
// lanes empty. Include after <hwy/foreach_target.h>.
#if defined(CERMET_FEW_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_FEW_ROWS_INL
#undef CERMET_FEW_ROWS_INL
#else
#define CERMET_FEW_ROWS_INL
#endif

#include <algorithm>
#include <limits>
#include <utility>

#include "kernel/cpu/attention/key_rows-inl.hpp"
#include "kernel/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Rows of a task that is taken this way; 0 for others. One query sees all keys of its range, so no key is masked by
/// its place.
inline int few_rows_of(const AttentionShape& shape, const AttentionTask& task) {
  const bool plain =
      !task.alibi && !task.bias.data && !task.mask.data && task.k.element_step == 0 && task.v.element_step == 0;
  return plain && task.tokens == 1 && shape.group <= few_rows ? static_cast<int>(shape.group) : 0;
}

/// scores[r][j] = query[r] . key j, for K keys from `keys` on.
template <int R, int K>
HWY_INLINE void score_keys(const float* query, const float* keys, std::int64_t step, std::int64_t head_size,
                           float* scores) {
  Floats dot[R][K];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < K; ++j) dot[r][j] = hn::Zero(FloatTag());
  for_vectors(static_cast<std::size_t>(head_size), [&](std::size_t d, std::size_t n) HWY_ATTR {
    Floats key[K];
    for (int j = 0; j < K; ++j) key[j] = load_n(keys + j * step + d, n);
    for (int r = 0; r < R; ++r) {
      const Floats q = load_n(query + r * head_size + d, n);
      for (int j = 0; j < K; ++j) dot[r][j] = hn::MulAdd(q, key[j], dot[r][j]);
    }
  });
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < K; ++j) scores[r * key_tile + j] = sum_lanes(dot[r][j]);
}

/// output[r][d] += sum over keys of weights[r][key] * value[key][d], for V vectors of elements, the last of which has
/// n.
template <int R, int V>
HWY_INLINE void add_values(const float* weights, const float* values, std::int64_t step, std::int64_t count,
                           std::size_t n, std::int64_t value_size, float* output) {
  const auto at = [](int v) { return static_cast<std::size_t>(v) * lanes(); };
  const auto length = [&](int v) { return v + 1 == V ? n : lanes(); };
  Floats sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = load_n(output + r * value_size + at(v), length(v));
  for (std::int64_t j = 0; j < count; ++j) {
    Floats value[V];
    for (int v = 0; v < V; ++v) value[v] = load_n(values + j * step + at(v), length(v));
    for (int r = 0; r < R; ++r) {
      const Floats weight = hn::Set(FloatTag(), weights[r * key_tile + j]);
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store_n(sum[r][v], output + r * value_size + at(v), length(v));
}

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

template <int R>
HWY_NOINLINE void attend_rows(const AttentionSettings& settings, const AttentionShape& shape, const AttentionTask& task,
                              const RowState& state, std::int64_t begin, std::int64_t end) {
  const std::int64_t head_size = shape.head_size, value_size = shape.value_size,
                     step = static_cast<std::int64_t>(lanes());
  float *const query = state.few, *const output = query + R * head_size;
  const std::int64_t first_end = std::min(end, begin + key_tile);
  prefetch_rows(task.k, head_size, begin, first_end);
  prefetch_rows(task.v, value_size, begin, first_end);
  float maximum[R], sum[R] = {};
  for (int r = 0; r < R; ++r) {
    maximum[r] = std::numeric_limits<float>::lowest();
    for (std::int64_t d = 0; d < head_size; ++d) query[r * head_size + d] = state.query[d * state.rows + r];
  }
  std::fill_n(output, R * value_size, 0.0f);
  for (std::int64_t tile = begin; tile < end; tile += key_tile) {
    const std::int64_t count = std::min(key_tile, end - tile), next = tile + count,
                       next_end = std::min(end, next + key_tile);
    const Broadcast keys = keys_of(task.k, shape.k_to_float, head_size, tile, next, state.keys);
    prefetch_rows(task.k, head_size, next, next_end);
    std::int64_t j = 0;
    for (; j + 4 <= count; j += 4)
      score_keys<R, 4>(query, keys.data + j * keys.m_step, keys.m_step, head_size, state.scores + j);
    for (; j < count; ++j)
      score_keys<R, 1>(query, keys.data + j * keys.m_step, keys.m_step, head_size, state.scores + j);
    for (int r = 0; r < R; ++r) {
      float* const scores = state.scores + r * key_tile;
      if (settings.softcap > 0)
        cap_scores(scores, static_cast<std::size_t>(count), static_cast<float>(settings.softcap));
      weigh_row(scores, count, maximum[r], sum[r], output + r * value_size, value_size);
    }
    const Broadcast values = keys_of(task.v, shape.v_to_float, value_size, tile, next, state.values);
    prefetch_rows(task.v, value_size, next, next_end);
    std::int64_t d = 0;
    for (; d + 4 * step <= value_size; d += 4 * step)
      add_values<R, 4>(state.scores, values.data + d, values.m_step, count, lanes(), value_size, output + d);
    for (; d < value_size; d += step)
      add_values<R, 1>(state.scores, values.data + d, values.m_step, count,
                       static_cast<std::size_t>(std::min(step, value_size - d)), value_size, output + d);
  }
  for (int r = 0; r < R; ++r) {
    state.maximum[r] = maximum[r];
    state.sum[r] = sum[r];
    for (std::int64_t d = 0; d < value_size; ++d) state.output[d * state.rows + r] = output[r * value_size + d];
  }
}

/// Attends to keys begin .. end of a task with `rows` rows, whose state is cleared.
inline void attend_few(const AttentionSettings& settings, const AttentionShape& shape, const AttentionTask& task,
                       const RowState& state, std::int64_t begin, std::int64_t end, int rows) {
  if (begin >= end) return;
  switch (rows) {
    case 1: return attend_rows<1>(settings, shape, task, state, begin, end);
    case 2: return attend_rows<2>(settings, shape, task, state, begin, end);
    case 3: return attend_rows<3>(settings, shape, task, state, begin, end);
    default: return attend_rows<few_rows>(settings, shape, task, state, begin, end);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/image/resize_blend.cpp"
#include <hwy/foreach_target.h>

#include <limits>

#include "kernel/cpu/image/resize.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;

template <class T>
HWY_INLINE Floats load_number(const T* p, std::size_t count) {
  if constexpr (sizeof(T) == 2 || std::is_same_v<T, float>) {
    return load_n(p, count);
  } else {
    if (HWY_LIKELY(count == lanes())) {
      if constexpr (sizeof(T) == 4) return hn::ConvertTo(FloatTag(), hn::LoadU(IntTag(), p));
      else return hn::ConvertTo(FloatTag(), hn::PromoteTo(IntTag(), hn::LoadU(hn::Rebind<T, FloatTag>(), p)));
    }
    HWY_ALIGN float buffer[hn::MaxLanes(FloatTag())] = {};
    for (std::size_t i = 0; i < count; ++i) buffer[i] = static_cast<float>(p[i]);
    return hn::Load(FloatTag(), buffer);
  }
}

/// Integers are rounded to even, and saturate.
template <class T>
HWY_INLINE void store_number(Floats v, T* p, std::size_t count) {
  if constexpr (sizeof(T) == 2 || std::is_same_v<T, float>) {
    store_n(v, p, count);
  } else {
    constexpr float low = static_cast<float>(std::numeric_limits<T>::lowest()),
                    high = static_cast<float>(std::numeric_limits<T>::max());
    const auto saturates = hn::Ge(v, hn::Set(FloatTag(), high));
    const auto inside = hn::IfThenElse(saturates, hn::Zero(FloatTag()), hn::Max(v, hn::Set(FloatTag(), low)));
    const auto rounded = hn::NearestInt(inside);
    HWY_ALIGN std::int32_t buffer[hn::MaxLanes(FloatTag())];
    hn::Store(hn::IfThenElse(hn::RebindMask(IntTag(), saturates),
                             hn::Set(IntTag(), static_cast<std::int32_t>(std::numeric_limits<T>::max())), rounded),
              IntTag(), buffer);
    for (std::size_t i = 0; i < count; ++i) p[i] = static_cast<T>(buffer[i]);
  }
}

/// total[i] (+)= sum of weight[r] * rows[r][i].
template <class T>
void blend_rows(const T* const* rows, const float* weights, std::int64_t count, std::int64_t length, bool fresh,
                float* total) {
  if (fresh && (count == 2 || count == 4)) {  // linear along one axis and along two
    const bool four = count == 4;
    const T *a = rows[0], *b = rows[1], *c = rows[four ? 2 : 0], *d = rows[four ? 3 : 0];
    const auto at_a = hn::Set(FloatTag(), weights[0]), at_b = hn::Set(FloatTag(), weights[1]);
    const auto at_c = hn::Set(FloatTag(), weights[four ? 2 : 0]), at_d = hn::Set(FloatTag(), weights[four ? 3 : 0]);
    for_vectors(static_cast<std::size_t>(length), [&](std::size_t i, std::size_t n) HWY_ATTR {
      auto sum = hn::MulAdd(at_b, load_number(b + i, n), hn::Mul(at_a, load_number(a + i, n)));
      if (four) sum = hn::Add(sum, hn::MulAdd(at_d, load_number(d + i, n), hn::Mul(at_c, load_number(c + i, n))));
      store_n(sum, total + i, n);
    });
    return;
  }
  for_vectors(static_cast<std::size_t>(length), [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto sum = fresh ? hn::Zero(FloatTag()) : load_n(total + i, n);
    for (std::int64_t r = 0; r < count; ++r)
      sum = hn::MulAdd(hn::Set(FloatTag(), weights[r]), load_number(rows[r] + i, n), sum);
    store_n(sum, total + i, n);
  });
}

/// to[i] = sum over k of weight[k][i] * row[place[k][i]].
void blend_along(const ResizeTable& table, const float* row, float* to, std::int64_t length) {
  const auto step = static_cast<std::int64_t>(lanes());
  for (std::int64_t i = 0; i < length; i += step) {
    auto sum = hn::Zero(FloatTag());
    for (int k = 0; k < table.taps; ++k) {
      const std::int32_t* place = table.place + k * table.pitch + i;
      const auto at = hn::LoadU(IntTag(), place);
      const std::int64_t last = HWY_MIN(step, length - i) - 1, span = place[last] - place[0];
      Floats values;
      if (HWY_LIKELY(span >= 0 && span < step)) {  // all in one vector; places beyond the row's end are 0
        const auto inside = hn::Max(hn::Sub(at, hn::Set(IntTag(), place[0])), hn::Zero(IntTag()));
        values = hn::TableLookupLanes(hn::LoadU(FloatTag(), row + place[0]), hn::IndicesFromVec(FloatTag(), inside));
      } else {
        values = hn::GatherIndex(FloatTag(), row, at);
      }
      sum = hn::MulAdd(hn::LoadU(FloatTag(), table.weight + k * table.pitch + i), values, sum);
    }
    store_n(sum, to + i, static_cast<std::size_t>(HWY_MIN(step, length - i)));
  }
}

template <class T>
void blend(const LaunchArgs& args, const ResizeRun& run) {
  constexpr std::int64_t list = 32;
  const bool resized = run.is_resized(run.last),
             crops = run.plan.rule.coordinates == resize::Coordinates::tf_crop_and_resize;
  const std::int64_t length = run.length(), width = run.last >= 0 ? run.x.shape[run.last] : 1, rows = run.rows(),
                     lines = run.combinations();
  const int taps = run.is_resized(run.last - 1) ? run.table(run.last - 1).taps : 1;
  const ResizeTable& table = run.table(run.last);
  const auto extrapolation = static_cast<float>(run.plan.extrapolation);
  const std::int64_t scratch = round_up((width + length + 2 * resize_slack) * 4, std::int64_t{64});
  const auto rows_of = [&](int thread, std::int64_t begin, std::int64_t end) HWY_ATTR {
    float* row = reinterpret_cast<float*>(run.row_memory + thread * scratch);  // [width], then slack
    float* total = row + width + resize_slack;                                 // [length]
    for (std::int64_t i = 0; i < resize_slack; ++i) row[width + i] = 0;
    Shape at;
    std::int64_t line_offset[list], line = -1, to = 0;
    float line_weight[list];
    bool outside = false;
    for (std::int64_t r = begin; r < end; ++r) {
      if (r == begin || r % rows == 0) {
        line = r / rows;
        outside = run.locate(line, at, to);
        for (std::int64_t t = 0; t < HWY_MIN(lines, list); ++t) line_offset[t] = run.from(at, t, line_weight[t]);
      }
      const std::int64_t j = r - line * rows;
      T* y = run.y.as<T>() + to + run.row_to(j);
      float* sums = resized ? row : total;
      if constexpr (std::is_same_v<T, float>)
        if (!resized) sums = y;
      const T* from[list];
      float weights[list];
      std::int64_t count = 0;
      bool fresh = true;
      for (std::int64_t t = 0; t < lines; ++t) {
        float weight = t < list ? line_weight[t] : 0;
        const std::int64_t offset = t < list ? line_offset[t] : run.from(at, t, weight);
        for (int k = 0; k < taps; ++k) {
          float inner;
          from[count] = run.x.as<const T>() + offset + run.row(j, k, inner);
          weights[count++] = weight * inner;
          if (count < list && !(t + 1 == lines && k + 1 == taps)) continue;
          blend_rows(from, weights, count, width, fresh, sums);
          fresh = false;
          count = 0;
        }
      }
      if constexpr (std::is_same_v<T, float>) {
        if (resized) blend_along(table, row, y, length);
      } else {
        if (resized) blend_along(table, row, total, length);
        for_vectors(static_cast<std::size_t>(length),
                    [&](std::size_t i, std::size_t n) HWY_ATTR { store_number(load_n(total + i, n), y + i, n); });
      }
      if (!crops) continue;
      const bool all = outside || run.row_is_outside(j);
      for (std::int64_t i = 0; i < length; ++i)
        if (all || (resized && table.outside[i])) store_number(hn::Set(FloatTag(), extrapolation), y + i, 1);
    }
  };
  const std::int64_t threads = args.pool->size(), all_rows = run.lines * rows;
  if (all_rows * (width * lines * taps + length) < 32768) return rows_of(0, 0, all_rows);
  args.pool->run([&](int thread) { rows_of(thread, all_rows * thread / threads, all_rows * (thread + 1) / threads); });
}

void resize_any(const LaunchArgs& args, const ResizeAttributes& attributes) {
  const ResizeRun run(args, attributes);
  switch (run.x.dtype) {
    case DType::f32: return blend<float>(args, run);
    case DType::bf16: return blend<format::bf16>(args, run);
    case DType::f16: return blend<format::f16>(args, run);
    case DType::u8: return blend<std::uint8_t>(args, run);
    case DType::i8: return blend<std::int8_t>(args, run);
    default: return blend<std::int32_t>(args, run);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(resize_any);

void resize_weighted(const LaunchArgs& args, const ResizeAttributes& attributes) {
  HWY_DYNAMIC_DISPATCH(resize_any)(args, attributes);
}

}  // namespace cermet::cpu
#endif

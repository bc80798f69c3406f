// Tiles of keys and values as float32, wherever they lie: include after <hwy/foreach_target.h>.
#if defined(CERMET_KEY_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_KEY_ROWS_INL
#undef CERMET_KEY_ROWS_INL
#else
#define CERMET_KEY_ROWS_INL
#endif

#include <hwy/cache_control.h>

#include "kernel/cpu/attention/product-inl.hpp"
#include "kernel/cpu/attention/tile_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Loads keys begin .. end as float32 rows of `length`.
inline void load_rows(const KeyRows& rows, RunConverter convert, std::int64_t length, std::int64_t begin,
                      std::int64_t end, float* out) {
  for_runs(rows, begin, end,
           [&](std::int64_t first, std::int64_t count, const std::byte* data, const float* scale) HWY_ATTR {
             float* to = out + first * length;
             const bool dense = rows.row_step == length * rows.element_bytes;
             if (dense) convert(data, reinterpret_cast<std::byte*>(to), count * length);
             for (std::int64_t i = 0; i < count && (!dense || scale); ++i, to += length) {
               if (!dense) convert(data + i * rows.row_step, reinterpret_cast<std::byte*>(to), length);
               if (!scale) continue;
               const auto factor = hn::Set(FloatTag(), scale[i * rows.scale_row_step]);
               for_vectors(static_cast<std::size_t>(length), [&](std::size_t d, std::size_t n) HWY_ATTR {
                 store_n(hn::Mul(load_n(to + d, n), factor), to + d, n);
               });
             }
           });
}

/// Keys (or values) begin .. end as float32, in `out` unless they can be read where they are: m counts keys, k
/// elements.
inline Broadcast keys_of(const KeyRows& rows, RunConverter convert, std::int64_t length, std::int64_t begin,
                         std::int64_t end, float* out) {
  if (rows.element_step == 0 && rows.element_bytes == 4 && !rows.table && !rows.scale && rows.row_step % 4 == 0)
    return {reinterpret_cast<const float*>(rows.data + begin * rows.row_step), rows.row_step / 4, 1};
  if (rows.element_step == 0) {
    load_rows(rows, convert, length, begin, end, out);
    return {out, length, 1};
  }
  for (std::int64_t d = 0; d < length; ++d)
    convert(rows.data + begin * rows.row_step + d * rows.element_step, reinterpret_cast<std::byte*>(out + d * key_tile),
            end - begin);
  return {out, 1, key_tile};
}

/// Prefetches keys begin .. end: pages are too short for the hardware prefetcher to detect a pattern.
inline void prefetch_rows(const KeyRows& rows, std::int64_t length, std::int64_t begin, std::int64_t end) {
  if (rows.element_step != 0) return;
  for_runs(rows, begin, end, [&](std::int64_t, std::int64_t count, const std::byte* data, const float*) {
    for (std::int64_t i = 0; i < count; ++i, data += rows.row_step)
      for (std::int64_t byte = 0; byte < length * rows.element_bytes; byte += 64) __builtin_prefetch(data + byte, 0, 2);
  });
}

/// s = softcap * tanh(s / softcap) over `count` scores, of which the last vector may hold less.
inline void cap_scores(float* s, std::size_t count, float softcap) {
  const FloatTag f;
  const auto cap = hn::Set(f, softcap);
  for (std::size_t i = 0; i < count; i += lanes()) {
    const auto x = hn::Div(load(s + i), cap);
    store(hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(cap, hn::Tanh(f, x))), s + i);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#include "kernel/cpu/pool/pool.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/pool/pool.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "kernel/cpu/pool/combine-inl.hpp"

#ifndef CERMET_POOL_ONCE
#define CERMET_POOL_ONCE
namespace cermet::cpu {

/// Floats past the end of every run, so that whole vectors may be read and written: the widest vector of any
/// instruction set.
inline constexpr std::int64_t pool_slack = 64;
/// Channels that are combined at a time.
inline constexpr std::int64_t channel_tile = 1024;
/// Rows of results that go through each step together.
inline constexpr std::int64_t rows_at_once = 4;

struct PoolRun {
  Pooling pooling;
  SpatialView x, y;
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t padded = 0;  ///< elements along the last axis that windows cover, a multiple of its stride

  explicit PoolRun(const LaunchArgs& args, const Pooling& p)
      : pooling(p),
        x(spatial_view(args.inputs[0], p.window.channels_last)),
        y(spatial_view(args.outputs[0], p.window.channels_last)),
        from(args.inputs[0].data),
        to(args.outputs[0].data) {
    pooling.window = p.window.over(x.size);
    const PoolWindow& w = pooling.window;
    padded = round_up((y.size[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1, w.stride[2]);
    padded = round_up(HWY_MAX(padded, w.before[2] + x.size[2]), w.stride[2]);
  }
  /// Floats of a row with its padding, and of the same taken apart by stride.
  std::int64_t row_scratch() const { return 2 * padded + (2 + pooling.window.stride[2]) * pool_slack; }
  /// Those of all rows that go together, of a row of results and of its divisors.
  std::int64_t scratch() const {
    return rows_at_once * row_scratch() + 2 * (round_up(y.size[2], pool_slack) + pool_slack);
  }
};

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Every `step`-th element of a row, from each of the first `step`: lane k of the result is row[k * step + phase], at
/// out + phase * pitch.
void split_phases(const float* row, std::int64_t length, std::int64_t step, float* out, std::int64_t pitch) {
  const std::int64_t each = length / step;
  if (step == 2) {
    for (std::int64_t i = 0; i < each; i += static_cast<std::int64_t>(lanes())) {
      Floats even, odd;
      hn::LoadInterleaved2(FloatTag(), row + 2 * i, even, odd);
      hn::StoreU(even, FloatTag(), out + i);
      hn::StoreU(odd, FloatTag(), out + pitch + i);
    }
    return;
  }
  for (std::int64_t phase = 0; phase < step; ++phase)
    for (std::int64_t i = 0; i < each; ++i) out[phase * pitch + i] = row[i * step + phase];
}

/// Where a row of results lies; counted without divisions.
struct RowCoord {
  const SpatialView& y;
  std::int64_t n, c, i, j;

  RowCoord(const SpatialView& view, std::int64_t row)
      : y(view), n(row / (y.size[0] * y.size[1]) / y.channels), c(row / (y.size[0] * y.size[1]) % y.channels) {
    i = row / y.size[1] % y.size[0];
    j = row % y.size[1];
  }
  void next() {
    if (++j < y.size[1]) return;
    j = 0;
    if (++i < y.size[0]) return;
    i = 0;
    if (++c < y.channels) return;
    c = 0;
    ++n;
  }
};

/// Combines the rows of x behind a row of results.
template <class Op, class T>
void combine_window_rows(const PoolRun& run, const Op& op, const RowCoord& at, float* row) {
  const PoolWindow& w = run.pooling.window;
  const TapRange outer = taps_inside(w, 0, at.i, run.x.size[0]), inner = taps_inside(w, 1, at.j, run.x.size[1]);
  RowList<Op, T> rows{op, run.x.size[2], row, {}};
  for (std::int64_t a = outer.first; a < outer.last; ++a)
    for (std::int64_t b = inner.first; b < inner.last; ++b)
      rows.add(static_cast<const T*>(run.from) +
               run.x.offset(at.n, at.c, {outer.start + a * w.dilation[0], inner.start + b * w.dilation[1], 0}));
  rows.flush();
}

/// Combines the taps of the windows along a row whose phases are `pitch` apart.
template <class Op>
void combine_along(const PoolWindow& w, const Op& op, const float* phases, std::int64_t pitch, float* total,
                   std::int64_t columns) {
  const std::int64_t step = w.stride[2], far = w.dilation[2] / step, near = w.dilation[2] % step;
  for (std::int64_t o = 0; o < columns; o += static_cast<std::int64_t>(lanes())) {
    auto state = op.start(hn::Set(FloatTag(), Op::identity));
    for (std::int64_t k = 0, phase = 0, at = o; k < w.kernel[2]; ++k) {
      op.add(state, hn::LoadU(FloatTag(), phases + phase * pitch + at));
      phase += near;
      at += far;
      if (phase < step) continue;
      phase -= step;
      ++at;
    }
    hn::StoreU(op.result(state), FloatTag(), total + o);
  }
}

/// [N, C, spatial..]: rows [begin, end) of results, a row of the last axis each.
template <class Op, class T>
void pool_rows(const PoolRun& run, const Op& op, float* scratch, std::int64_t begin, std::int64_t end) {
  const PoolWindow& w = run.pooling.window;
  const std::int64_t columns = run.y.size[2], step = w.stride[2],
                     pitch = step == 1 ? 0 : run.padded / step + pool_slack;
  const std::int64_t one = run.row_scratch();
  float* total = scratch + rows_at_once * one;  // [columns], then slack
  float* counts = total + round_up(columns, pool_slack) + pool_slack;
  for (std::int64_t q = 0; q < rows_at_once; ++q)
    for (std::int64_t i = 0; i < run.padded + pool_slack; ++i) scratch[q * one + i] = Op::identity;
  const bool average = run.pooling.kind == PoolKind::average, padding = run.pooling.count_padding;
  for (std::int64_t i = 0; average && i < columns; ++i)
    counts[i] = divisor_of(counted_taps(w, 2, i, run.x.size[2], padding));
  RowCoord read(run.y, begin), write(run.y, begin);
  // Each step over several rows, so that what a step wrote has left the store buffer when the next one reads it at
  // other addresses.
  for (std::int64_t r = begin; r < end; r += rows_at_once) {
    const std::int64_t rows = HWY_MIN(rows_at_once, end - r);
    for (std::int64_t q = 0; q < rows; ++q, read.next())
      combine_window_rows<Op, T>(run, op, read, scratch + q * one + w.before[2]);
    for (std::int64_t q = 0; step > 1 && q < rows; ++q)
      split_phases(scratch + q * one, run.padded, step, scratch + q * one + run.padded + pool_slack, pitch);
    for (std::int64_t q = 0; q < rows; ++q, write.next()) {
      combine_along(w, op, scratch + q * one + (step > 1 ? run.padded + pool_slack : 0), pitch, total, columns);
      float counted = 1;
      if (average)
        counted = divisor_of(counted_taps(w, 0, write.i, run.x.size[0], padding) *
                             counted_taps(w, 1, write.j, run.x.size[1], padding));
      T* y = static_cast<T*>(run.to) + run.y.offset(write.n, write.c, {write.i, write.j, 0});
      finish_row(run.pooling, total, average ? counts : nullptr, counted, y, columns);
    }
  }
}

/// A window that is all of a dense plane: planes [begin, end) of results.
template <class Op, class T>
void pool_planes(const PoolRun& run, const Op& op, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t results_at_once = 64;
  const std::int64_t length = run.x.positions();
  HWY_ALIGN float results[results_at_once];
  std::int64_t count = 0;
  RowCoord read(run.y, begin), write(run.y, begin);
  for (std::int64_t plane = begin; plane < end; ++plane, read.next()) {
    const T* x = static_cast<const T*>(run.from) + run.x.offset(read.n, read.c, {0, 0, 0});
    auto total = op.start(hn::Set(FloatTag(), Op::identity)), other = total;
    const auto step = static_cast<std::int64_t>(lanes());
    std::int64_t i = 0;
    for (; i + 2 * step <= length; i += 2 * step) {
      op.add(total, op.lift(load_elements(x + i, lanes(), 0)));
      op.add(other, op.lift(load_elements(x + i + step, lanes(), 0)));
    }
    if (i + step <= length) {
      op.add(total, op.lift(load_elements(x + i, lanes(), 0)));
      i += step;
    }
    if (i < length && length >= step) {  // the last whole vector, without what it shares with the one before
      const auto shared = hn::FirstN(FloatTag(), static_cast<std::size_t>(i - (length - step)));
      op.add(other, hn::IfThenElse(shared, hn::Set(FloatTag(), Op::identity),
                                   op.lift(load_elements(x + length - step, lanes(), 0))));
    } else if (i < length) {
      const auto tail = hn::FirstN(FloatTag(), static_cast<std::size_t>(length - i));
      const auto values = op.lift(load_elements(x + i, static_cast<std::size_t>(length - i), 0));
      op.add(other, hn::IfThenElse(tail, values, hn::Set(FloatTag(), Op::identity)));
    }
    op.add(total, op.result(other));
    results[count++] = op.reduce(op.result(total));
    if (count < results_at_once && plane + 1 < end) continue;
    HWY_ALIGN T finished[results_at_once];
    finish_row(run.pooling, results, nullptr, divisor_of(length), finished, count);
    for (std::int64_t k = 0; k < count; ++k, write.next())
      static_cast<T*>(run.to)[run.y.offset(write.n, write.c, {0, 0, 0})] = finished[k];
    count = 0;
  }
}

/// [N, spatial.., C]: positions [begin, end) of results, a row of channels each.
template <class Op, class T>
void pool_channels(const PoolRun& run, const Op& op, std::int64_t begin, std::int64_t end) {
  const PoolWindow& w = run.pooling.window;
  HWY_ALIGN float total[channel_tile];
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t n = r / run.y.positions();
    const Spatial at = position_of(run.y.size, r % run.y.positions());
    TapRange taps[3];
    std::int64_t counted = 1;
    for (int a = 0; a < 3; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      taps[a] = taps_inside(w, a, at[axis], run.x.size[axis]);
      counted *= counted_taps(w, a, at[axis], run.x.size[axis], run.pooling.count_padding);
    }
    for (std::int64_t first = 0; first < run.y.channels; first += channel_tile) {
      const std::int64_t length = HWY_MIN(channel_tile, run.y.channels - first);
      RowList<Op, T> rows{op, length, total, {}};
      for (std::int64_t i = taps[0].first; i < taps[0].last; ++i)
        for (std::int64_t j = taps[1].first; j < taps[1].last; ++j)
          for (std::int64_t k = taps[2].first; k < taps[2].last; ++k) {
            const Spatial from{taps[0].start + i * w.dilation[0], taps[1].start + j * w.dilation[1],
                               taps[2].start + k * w.dilation[2]};
            rows.add(static_cast<const T*>(run.from) + run.x.offset(n, first, from));
          }
      rows.flush();
      finish_row(run.pooling, total, nullptr, divisor_of(counted), static_cast<T*>(run.to) + run.y.offset(n, first, at),
                 length);
    }
  }
}

template <class Op, class T>
void pool_with(const LaunchArgs& args, const PoolRun& run, const Op& op) {
  const SpatialView &x = run.x, &y = run.y;
  const PoolWindow& w = run.pooling.window;
  const bool dense = x.stride[1] == x.size[2] && (x.size[0] == 1 || x.stride[0] == x.size[1] * x.size[2]);
  const bool whole = y.positions() == 1 && w.kernel == x.size && w.before == Spatial{0, 0, 0};
  const std::int64_t work = w.kernel[0] * w.kernel[1] * w.kernel[2];
  if (w.channels_last) {
    const std::int64_t grain = 1 + 65536 / (work * y.channels + 1);
    args.pool->parallel_for(y.batch * y.positions(), grain,
                            [&](std::int64_t begin, std::int64_t end) { pool_channels<Op, T>(run, op, begin, end); });
  } else if (whole && dense) {
    args.pool->parallel_for(y.batch * y.channels, 1 + 8192 / (work + 1),
                            [&](std::int64_t begin, std::int64_t end) { pool_planes<Op, T>(run, op, begin, end); });
  } else {
    const std::int64_t rows = y.batch * y.channels * y.size[0] * y.size[1], threads = args.pool->size();
    if (rows * x.size[2] * w.kernel[1] < 65536)
      return pool_rows<Op, T>(run, op, reinterpret_cast<float*>(args.workspace), 0, rows);
    args.pool->run([&](int thread) {
      pool_rows<Op, T>(run, op, reinterpret_cast<float*>(args.workspace) + thread * run.scratch(),
                       rows * thread / threads, rows * (thread + 1) / threads);
    });
  }
}

template <class Op>
void pool_reals(const LaunchArgs& args, const PoolRun& run, const Op& op) {
  switch (args.inputs[0].dtype) {
    case DType::f32: return pool_with<Op, float>(args, run, op);
    case DType::bf16: return pool_with<Op, format::bf16>(args, run, op);
    default: return pool_with<Op, format::f16>(args, run, op);
  }
}

void pool_any(const LaunchArgs& args, const PoolRun& run) {
  if (run.pooling.kind == PoolKind::average) return pool_reals(args, run, PoolSum());
  if (run.pooling.kind == PoolKind::norm) return pool_reals(args, run, PoolPowers(run.pooling.power));
  if (args.inputs[0].dtype == DType::i8) return pool_with<PoolMax, std::int8_t>(args, run, PoolMax());
  if (args.inputs[0].dtype == DType::u8) return pool_with<PoolMax, std::uint8_t>(args, run, PoolMax());
  pool_reals(args, run, PoolMax());
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(pool_any);

std::int64_t pool_workspace(const Problem& p, int threads) {
  if (is_channels_last(p.attributes)) return 0;
  const PoolWindow window = pool_window(p.attributes, p.input(0).rank());
  const std::int64_t size = p.size(0, -1), kernel = window.whole ? size : window.kernel[2];
  const Dim columns = p.outputs[0].dims.back();
  // As PoolRun counts them, with every sum rounded up.
  const std::int64_t covered = columns.value(p.maximum) * window.stride[2] + kernel * window.dilation[2] +
                               window.before[2] + size + 2 * window.stride[2];
  const std::int64_t row = 2 * covered + (2 + window.stride[2]) * pool_slack;
  const std::int64_t floats = rows_at_once * row + 2 * (columns.value(p.maximum) + 2 * pool_slack);
  return threads * floats * static_cast<std::int64_t>(sizeof(float));
}

void pool(const LaunchArgs& args, const Pooling& pooling) {
  if (args.outputs[0].elements() > 0) HWY_DYNAMIC_DISPATCH(pool_any)(args, PoolRun(args, pooling));
}

}  // namespace cermet::cpu
#endif

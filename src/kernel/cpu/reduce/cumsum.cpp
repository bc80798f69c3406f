#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/reduce/cumsum.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/movement/axes.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/reduction.hpp"
#include "op/schema/axes.hpp"

#ifndef CERMET_CUMSUM_ONCE
#define CERMET_CUMSUM_ONCE
namespace cermet::cpu {

struct Cumsum {
  int axis;
  bool exclusive, reverse, wraps;  ///< wraps: sums of integers

  /// Position of step i of `count`.
  std::int64_t at(std::int64_t i, std::int64_t count) const { return reverse ? count - 1 - i : i; }
};

/// The axes that are neither scanned nor the last, with the strides of x and y.
inline StridedAxes<2> other_axes(const TensorView& x, const TensorView& y, int axis) {
  StridedAxes<2> axes;
  for (int a = 0; a + 1 < x.shape.rank(); ++a)
    if (a != axis) axes.append(x.shape[a], {x.strides[a], y.strides[a]});
  return axes;
}

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

HWY_INLINE std::byte* element(const TensorView& view, std::int64_t offset) {
  return view.as<std::byte>() + offset * byte_size(view.dtype);
}

/// The scanned axis is the last: one number after another.
void scan_row(const RowIn& x, const RowOut& y, std::int64_t length, const Cumsum& scan) {
  const auto tile = static_cast<std::int64_t>(tile_size), tiles = (length + tile - 1) / tile;
  TileBuffer x_buffer, y_buffer;
  float sum = 0;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t first = scan.at(t, tiles) * tile, count = HWY_MIN(tile, length - first);
    const float* from = x.read(static_cast<std::size_t>(first), static_cast<std::size_t>(count), x_buffer);
    float* to = y.tile(static_cast<std::size_t>(first), y_buffer);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = scan.at(i, count);
      const float before = sum;
      sum += from[at];
      to[at] = scan.exclusive ? before : sum;
    }
    y.commit(static_cast<std::size_t>(first), static_cast<std::size_t>(count), y_buffer);
  }
}

/// Another axis is scanned: a tile of columns at a time, row after row.
void scan_columns(const TensorView& x, const TensorView& y, std::int64_t x_offset, std::int64_t y_offset,
                  std::size_t first, std::size_t count, const Cumsum& scan) {
  TileBuffer sum, in, out;
  for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR { store_n(hn::Zero(FloatTag()), sum.data + i, n); });
  const std::int64_t steps = x.shape[scan.axis];
  for (std::int64_t s = 0; s < steps; ++s) {
    const std::int64_t at = scan.at(s, steps);
    const float* from = RowIn{element(x, x_offset + at * x.strides[scan.axis]), x.dtype}.read(first, count, in);
    const RowOut row{element(y, y_offset + at * y.strides[scan.axis]), y.dtype};
    float* to = row.tile(first, out);
    for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR {
      const auto before = load_n(sum.data + i, n), after = hn::Add(before, load_n(from + i, n));
      store_n(after, sum.data + i, n);
      store_n(scan.exclusive ? before : after, to + i, n);
    });
    row.commit(first, count, out);
  }
}

void scan_reals(const LaunchArgs& args, const Cumsum& scan) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const StridedAxes<2> outer = other_axes(x, y, scan.axis);
  const std::int64_t length = x.shape.back(), tile = static_cast<std::int64_t>(tile_size);
  const bool along_row = scan.axis == x.shape.rank() - 1;
  const std::int64_t tiles = along_row ? 1 : (length + tile - 1) / tile;
  args.pool->parallel_for(outer.shape.elements() * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    Walk<2> walk(outer, begin / tiles);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const auto [x_offset, y_offset] = walk.offset;
      const std::int64_t first = unit % tiles * tile;
      if (along_row) scan_row({element(x, x_offset), x.dtype}, {element(y, y_offset), y.dtype}, length, scan);
      else
        scan_columns(x, y, x_offset, y_offset, static_cast<std::size_t>(first),
                     static_cast<std::size_t>(HWY_MIN(tile, length - first)), scan);
      if ((unit + 1) % tiles == 0) walk.next();
    }
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(scan_reals);

namespace {

/// What a line of numbers that no vector holds is added up in.
struct DoubleSum {
  double value = 0;
  void add(double x) { value += x; }
  double result() const { return value; }
};

template <class T>
auto make_sum(DType dtype, bool wraps) {
  if constexpr (std::is_same_v<T, double>) return DoubleSum{};
  else return integer_reducer(Reduction::sum, dtype, wraps);
}

template <class T>
void scan_numbers(const LaunchArgs& args, const Cumsum& scan) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const StridedAxes<2> outer = other_axes(x, y, scan.axis);
  const std::int64_t steps = x.shape[scan.axis], columns = scan.axis == x.shape.rank() - 1 ? 1 : x.shape.back();
  const std::int64_t x_step = x.strides[scan.axis], y_step = y.strides[scan.axis];
  args.pool->parallel_for(outer.shape.elements() * columns, 64, [&](std::int64_t begin, std::int64_t end) {
    Walk<2> walk(outer, begin / columns);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      auto sum = make_sum<T>(x.dtype, scan.wraps);
      const T* from = x.as<const T>() + walk.offset[0] + unit % columns;
      T* to = y.as<T>() + walk.offset[1] + unit % columns;
      for (std::int64_t s = 0; s < steps; ++s) {
        const std::int64_t at = scan.at(s, steps);
        const auto before = sum.result();
        sum.add(from[at * x_step]);
        to[at * y_step] = static_cast<T>(scan.exclusive ? before : sum.result());
      }
      if ((unit + 1) % columns == 0) walk.next();
    }
  });
}

void cumsum(const LaunchArgs& args, const Cumsum& scan) {
  const TensorView& x = args.inputs[0];
  if (x.elements() == 0) return;
  if (x.dtype == DType::i32) return scan_numbers<std::int32_t>(args, scan);
  if (x.dtype == DType::i64) return scan_numbers<std::int64_t>(args, scan);
  if (x.dtype == DType::f64) return scan_numbers<double>(args, scan);
  HWY_DYNAMIC_DISPATCH(scan_reals)(args, scan);
}

}  // namespace

extern const Kernel scan_cumsum{
    .name = "scan.cumsum",
    .op = OpKind::cumsum,
    .summary =
        "number after number along a row, vectors of columns along other axes; rows or tiles of columns spread over "
        "threads",
    .bind = [](const Problem& p) -> Launcher {
      const Cumsum scan{wrap_axis(p.attributes.integer("axis"), p.input(0).rank()), p.attributes.flag("exclusive"),
                        p.attributes.flag("reverse"), p.attributes.text("overflow") == "wrap"};
      return [scan](const LaunchArgs& args) { cumsum(args, scan); };
    },
};

}  // namespace cermet::cpu
#endif

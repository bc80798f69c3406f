#include "kernel/cpu/strided_copy.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "kernel/cpu/by_size.hpp"

namespace cermet::cpu {
namespace {

/// Axes of a copy, outermost first.
struct Axes {
  Shape shape, from, to;  ///< dimension, and stride in elements on either side

  void push_back(std::int64_t dim, std::int64_t from_stride, std::int64_t to_stride) {
    shape.push_back(dim);
    from.push_back(from_stride);
    to.push_back(to_stride);
  }
  int rank() const { return shape.rank(); }
};

/// Drops axes of one element and merges neighbours that are one run on both sides. At least one axis is left.
Axes simplified(const Shape& shape, const Shape& from, const Shape& to) {
  Axes axes;
  for (int a = 0; a < shape.rank(); ++a) {
    if (shape[a] == 1) continue;
    const int last = axes.rank() - 1;
    if (last >= 0 && axes.from[last] == shape[a] * from[a] && axes.to[last] == shape[a] * to[a]) {
      axes.shape[last] *= shape[a];
      axes.from[last] = from[a];
      axes.to[last] = to[a];
    } else {
      axes.push_back(shape[a], from[a], to[a]);
    }
  }
  if (axes.rank() == 0) axes.push_back(1, 1, 1);
  return axes;
}

/// Offsets on both sides while the outer axes are walked in order.
class Walk {
 public:
  Walk(const Axes& axes, std::int64_t position) : axes_(axes), at_(axes.shape) {
    for (int a = axes.rank() - 1; a >= 0; --a) {
      at_[a] = position % axes.shape[a];
      position /= axes.shape[a];
      from += at_[a] * axes.from[a];
      to += at_[a] * axes.to[a];
    }
  }
  void next() {
    for (int a = axes_.rank() - 1; a >= 0; --a) {
      from += axes_.from[a];
      to += axes_.to[a];
      if (++at_[a] < axes_.shape[a]) return;
      from -= axes_.shape[a] * axes_.from[a];
      to -= axes_.shape[a] * axes_.to[a];
      at_[a] = 0;
    }
  }
  std::int64_t from = 0, to = 0;

 private:
  const Axes& axes_;
  Shape at_;
};

template <class T>
void copy_run(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

/// Work is cut into (position of the outer axes, piece of the inner one) and handed to threads in order.
template <class Body>
void for_pieces(const Axes& outer, std::int64_t pieces, std::int64_t piece_bytes, ThreadPool& pool, Body&& body) {
  pool.parallel_for(outer.shape.elements() * pieces, rows_per_thread(piece_bytes), [&](std::int64_t begin, std::int64_t end) {
    Walk walk(outer, begin / pieces);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      body(walk.from, walk.to, unit % pieces);
      if ((unit + 1) % pieces == 0) walk.next();
    }
  });
}

template <class T>
void copy_rows(const Axes& outer, std::int64_t length, std::int64_t from_stride, std::int64_t to_stride, const T* from, T* to, ThreadPool& pool) {
  const std::int64_t piece = std::min<std::int64_t>(length, 1 << 16);
  for_pieces(outer, div_up(length, piece), piece * static_cast<std::int64_t>(sizeof(T)), pool, [&](std::int64_t from_at, std::int64_t to_at, std::int64_t p) {
    const std::int64_t begin = p * piece, count = std::min(piece, length - begin);
    copy_run(from + from_at + begin * from_stride, from_stride, to + to_at + begin * to_stride, to_stride, count);
  });
}

/// One axis of a plane that is transposed: its length and strides on either side.
struct PlaneAxis {
  std::int64_t length, from, to;
};

/// `across` is dense in the source, `along` is the last axis of the result.
template <class T>
void copy_tiles(const Axes& outer, PlaneAxis across, PlaneAxis along, const T* from, T* to, ThreadPool& pool) {
  constexpr std::int64_t tile = 64 / static_cast<std::int64_t>(sizeof(T)) * 2;  // two cache lines of the source; 16 to 128 rows
  for_pieces(outer, div_up(across.length, tile), tile * along.length * static_cast<std::int64_t>(sizeof(T)), pool,
             [&](std::int64_t from_at, std::int64_t to_at, std::int64_t p) {
               const std::int64_t first = p * tile, last = std::min(first + tile, across.length);
               for (std::int64_t j = 0; j < along.length; j += tile) {
                 const std::int64_t width = std::min(tile, along.length - j);
                 for (std::int64_t i = first; i < last; ++i)
                   copy_run(from + from_at + i * across.from + j * along.from, along.from, to + to_at + i * across.to + j * along.to, along.to, width);
               }
             });
}

/// The axis, other than the last, along which the source is dense; -1 where there is none.
int dense_source_axis(const Axes& axes) {
  for (int a = axes.rank() - 2; a >= 0; --a)
    if (axes.from[a] == 1) return a;
  return -1;
}

template <class T>
void copy(const Axes& axes, const T* from, T* to, ThreadPool& pool) {
  const int last = axes.rank() - 1;
  const int across = axes.from[last] > 1 ? dense_source_axis(axes) : -1;
  Axes outer;
  for (int a = 0; a < last; ++a)
    if (a != across) outer.push_back(axes.shape[a], axes.from[a], axes.to[a]);
  if (across < 0) return copy_rows(outer, axes.shape[last], axes.from[last], axes.to[last], from, to, pool);
  copy_tiles(outer, {axes.shape[across], axes.from[across], axes.to[across]}, {axes.shape[last], axes.from[last], axes.to[last]}, from, to, pool);
}

}  // namespace

void strided_copy(const Shape& shape, const void* from, const Shape& from_strides, void* to, const Shape& to_strides, std::size_t element_bytes,
                  ThreadPool& pool) {
  if (shape.elements() == 0) return;
  const Axes axes = simplified(shape, from_strides, to_strides);
  by_element_size(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    copy<T>(axes, static_cast<const T*>(from), static_cast<T*>(to), pool);
  });
}

}  // namespace cermet::cpu

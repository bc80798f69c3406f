#include "kernel/cpu/reduce/reduce.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/reduce/reduce.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "kernel/cpu/reduce/lanes-inl.hpp"
#include "kernel/cpu/rowwise/row_kernel.hpp"
#include "kernel/cpu/shared_items.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/moved_view.hpp"
#include "op/schema/axes.hpp"

#ifndef CERMET_REDUCE_ONCE
#define CERMET_REDUCE_ONCE
namespace cermet::cpu {

/// A reduction by axes. The last axis of x is separate, with `length` dense elements; `kept` and `reduced` are the
/// others.
struct ReducePlan {
  Reduction kind;
  TensorView x, y;
  StridedAxes<2> kept;     ///< strides of x and y
  StridedAxes<1> reduced;  ///< strides of x
  std::int64_t length = 1;
  bool last_is_reduced = true;
  bool wraps = false;  ///< sums of integers

  std::int64_t terms() const { return reduced.shape.elements() * (last_is_reduced ? length : 1); }
};

}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

HWY_INLINE RowIn row_at(const TensorView& view, std::int64_t offset) {
  return {view.as<std::byte>() + offset * byte_size(view.dtype), view.dtype};
}

/// The last axis is reduced: one result after another, each over four vectors of lanes.
template <class Op>
float reduce_to_one(const ReducePlan& plan, std::int64_t x_offset) {
  Real total[4] = {Op::identity, Op::identity, Op::identity, Op::identity};
  Walk<1> walk(plan.reduced);
  TileBuffer buffer;
  for (std::int64_t r = 0; r < plan.reduced.shape.elements(); ++r, walk.next()) {
    const RowIn row = row_at(plan.x, x_offset + walk.offset[0]);
    for_tiles(static_cast<std::size_t>(plan.length), [&](std::size_t first, std::size_t count) HWY_ATTR {
      combine_tile<Op>(row.read(first, count, buffer), count, total);
    });
  }
  return combine_all<Op>(total);
}

/// Terms [first, end) of every column.
struct Terms {
  std::int64_t first, end;
};

/// Totals of neighbouring columns of float32, V vectors of them, the last of which is `last` wide.
template <class Op, int V>
HWY_INLINE void reduce_vectors(const ReducePlan& plan, const Terms& terms, const float* x, std::size_t last,
                               float* total) {
  Floats sums[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) sums[v] = Real(Op::identity).v;
  Walk<1> walk(plan.reduced, terms.first);
  for (std::int64_t r = terms.first; r < terms.end; ++r, walk.next()) {
    const float* const row = x + walk.offset[0];
#pragma GCC unroll 8
    for (int v = 0; v + 1 < V; ++v) sums[v] = Op::combine(sums[v], load(row + static_cast<std::size_t>(v) * lanes())).v;
    sums[V - 1] = Op::combine(sums[V - 1], load_n(row + (V - 1) * lanes(), last)).v;
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v)
    store_n(sums[v], total + static_cast<std::size_t>(v) * lanes(), v + 1 < V ? lanes() : last);
}

template <class Op>
void reduce_in_registers(const ReducePlan& plan, const Terms& terms, const float* x, std::size_t count, float* total) {
  constexpr int most = 8;
  std::size_t i = 0;
  for (; i + most * lanes() <= count; i += most * lanes())
    reduce_vectors<Op, most>(plan, terms, x + i, lanes(), total + i);
  for (; i + 2 * lanes() <= count; i += 2 * lanes()) reduce_vectors<Op, 2>(plan, terms, x + i, lanes(), total + i);
  for (; i < count; i += lanes()) reduce_vectors<Op, 1>(plan, terms, x + i, HWY_MIN(lanes(), count - i), total + i);
}

/// The last axis is kept: a tile of results at a time, terms in index order.
template <class Op>
void reduce_columns(const ReducePlan& plan, std::int64_t x_offset, std::int64_t y_offset, std::size_t first,
                    std::size_t count) {
  TileBuffer in, out;
  const RowIn y_row = row_at(plan.y, y_offset);
  const RowOut y{const_cast<std::byte*>(y_row.data), plan.y.dtype};
  float* total = y.tile(first, out);
  const Real divisor(plan.kind == Reduction::mean ? static_cast<double>(plan.terms()) : 1.0);
  if (plan.x.dtype == DType::f32) {
    reduce_in_registers<Op>(plan, {0, plan.reduced.shape.elements()}, plan.x.as<const float>() + x_offset + first,
                            count, total);
  } else {
    for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR { store_n(Real(Op::identity).v, total + i, n); });
    Walk<1> walk(plan.reduced);
    for (std::int64_t r = 0; r < plan.reduced.shape.elements(); ++r, walk.next()) {
      const float* x = row_at(plan.x, x_offset + walk.offset[0]).read(first, count, in);
      for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR {
        store_n(Op::combine(load_n(total + i, n), load_n(x + i, n)).v, total + i, n);
      });
    }
  }
  if (plan.kind == Reduction::mean)
    for_vectors(count, [&](std::size_t i, std::size_t n)
                           HWY_ATTR { store_n((Real(load_n(total + i, n)) / divisor).v, total + i, n); });
  y.commit(first, count, out);
}

/// Columns of a tile, where there are to be as many tiles as threads.
std::int64_t columns_of(std::int64_t length, int threads) {
  constexpr std::int64_t most = tile_size, line = 16;
  return std::max(line,
                  round_up(div_up(length, std::max<std::int64_t>(1, round_up(div_up(length, most), threads))), line));
}

/// Slices of the terms of an image, whatever the number of threads: a thread reads the rows that it wrote in the launch
/// before.
constexpr std::int64_t slices = 8, sliced_terms = 512, sliced_columns = tile_size;

bool is_sliced(const ReducePlan& plan) {
  return !plan.last_is_reduced && plan.x.dtype == DType::f32 && plan.kept.shape.elements() == 1 &&
         plan.reduced.shape.elements() >= sliced_terms && plan.length <= sliced_columns;
}

template <class Op>
void reduce_slices(const ReducePlan& plan, ThreadPool& pool) {
  TileBuffer totals[slices], out;
  const std::int64_t terms = plan.reduced.shape.elements();
  const auto columns = static_cast<std::size_t>(plan.length);
  SharedItems shared(slices, pool.size());
  pool.run([&](int thread) {
    for (std::int64_t s = shared.take(thread); s >= 0; s = shared.take(thread))
      reduce_in_registers<Op>(plan, {terms * s / slices, terms * (s + 1) / slices}, plan.x.as<const float>(), columns,
                              totals[s].data);
  });
  const RowOut y{plan.y.as<std::byte>(), plan.y.dtype};
  const Real divisor(plan.kind == Reduction::mean ? static_cast<double>(terms) : 1.0);
  for_vectors(columns, [&](std::size_t i, std::size_t n) HWY_ATTR {
    Real total = load_n(totals[0].data + i, n);
    for (std::int64_t s = 1; s < slices; ++s) total = Op::combine(total, load_n(totals[s].data + i, n));
    store_n(plan.kind == Reduction::mean ? (total / divisor).v : total.v, y.tile(0, out) + i, n);
  });
  y.commit(0, columns, out);
}

template <class Op>
void reduce_with(const ReducePlan& plan, ThreadPool& pool) {
  if (is_sliced(plan)) return reduce_slices<Op>(plan, pool);
  const std::int64_t columns = columns_of(plan.length, plan.kept.shape.elements() == 1 ? pool.size() : 1);
  const std::int64_t tiles = plan.last_is_reduced ? 1 : div_up(plan.length, columns);
  const std::int64_t work =
      plan.reduced.shape.elements() * (plan.last_is_reduced ? plan.length : std::min(plan.length, columns));
  pool.parallel_for(
      plan.kept.shape.elements() * tiles, rows_per_thread(work * 4), [&](std::int64_t begin, std::int64_t end) {
        Walk<2> walk(plan.kept, begin / tiles);
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const auto [x_offset, y_offset] = walk.offset;
          if (plan.last_is_reduced) {
            TileBuffer buffer;
            const RowOut y{const_cast<std::byte*>(row_at(plan.y, y_offset).data), plan.y.dtype};
            const float total = reduce_to_one<Op>(plan, x_offset);
            y.tile(0, buffer)[0] = plan.kind == Reduction::mean ? total / static_cast<float>(plan.terms()) : total;
            y.commit(0, 1, buffer);
          } else {
            const std::int64_t first = unit % tiles * columns;
            reduce_columns<Op>(plan, x_offset, y_offset, static_cast<std::size_t>(first),
                               static_cast<std::size_t>(std::min(columns, plan.length - first)));
          }
          if ((unit + 1) % tiles == 0) walk.next();
        }
      });
}

void reduce_reals(const ReducePlan& plan, ThreadPool& pool) {
  switch (plan.kind) {
    case Reduction::sum:
    case Reduction::mean: return reduce_with<Sum>(plan, pool);
    case Reduction::prod: return reduce_with<Product>(plan, pool);
    case Reduction::max: return reduce_with<Maximum>(plan, pool);
    case Reduction::min: return reduce_with<Minimum>(plan, pool);
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(reduce_reals);

namespace {

ReducePlan make_plan(Reduction kind, const TensorView& x, std::uint32_t reduced, const TensorView& y) {
  ReducePlan plan{kind, x, y, {}, {}};
  const int last = x.shape.rank() - 1;
  int kept = 0;
  for (int a = 0; a < last; ++a) {
    if (reduced >> a & 1u) plan.reduced.append(x.shape[a], {x.strides[a]});
    else plan.kept.append(x.shape[a], {x.strides[a], y.strides[kept++]});
  }
  if (last < 0) return plan;
  plan.length = x.shape[last];
  plan.last_is_reduced = reduced >> last & 1u;
  return plan;
}

/// Scalar, with a reducer of its own for each result: integer sums need more than 64 bits, and neither they nor f64 are
/// on a model's critical path.
template <class T, class Reducer>
void reduce_plain(const ReducePlan& plan, const Reducer& nothing, ThreadPool& pool) {
  const std::int64_t columns = plan.last_is_reduced ? 1 : plan.length, run = plan.last_is_reduced ? plan.length : 1;
  pool.parallel_for(plan.kept.shape.elements() * columns, rows_per_thread(plan.terms() * 8),
                    [&](std::int64_t begin, std::int64_t end) {
                      Walk<2> kept(plan.kept, begin / columns);
                      for (std::int64_t unit = begin; unit < end; ++unit) {
                        Reducer reducer = nothing;
                        Walk<1> walk(plan.reduced);
                        for (std::int64_t r = 0; r < plan.reduced.shape.elements(); ++r, walk.next())
                          for (std::int64_t i = 0; i < run; ++i)
                            reducer.add(plan.x.as<const T>()[kept.offset[0] + walk.offset[0] + unit % columns + i]);
                        plan.y.as<T>()[kept.offset[1] + unit % columns] = static_cast<T>(reducer.result());
                        if ((unit + 1) % columns == 0) kept.next();
                      }
                    });
}

template <class T>
void reduce_integers(const ReducePlan& plan, ThreadPool& pool) {
  reduce_plain<T>(plan, integer_reducer(plan.kind, plan.x.dtype, plan.wraps), pool);
}

template <Reduction kind>
Launcher bind(const Problem& p) {
  const int rank = p.input(0).rank();
  std::uint32_t reduced = 0;
  for (const int axis : wrap_axes(p.attributes.integers("axes"), rank)) reduced |= 1u << axis;
  const bool wraps = kind == Reduction::sum && p.attributes.text("overflow") == "wrap";
  return [reduced, wraps, keepdims = p.attributes.flag("keepdims")](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const TensorView without = without_axes(y, reduced, keepdims, x.shape.rank());
    reduce_axes(kind, x, reduced, without, *args.pool, wraps);
  };
}

constexpr const char* const summary =
    "vectors along the last axis, or tiles of columns in index order where it is kept, of one large image in slices; "
    "results spread over threads";

}  // namespace

void reduce_axes(Reduction kind, const TensorView& x, std::uint32_t reduced, const TensorView& y, ThreadPool& pool,
                 bool wraps) {
  if (y.elements() == 0) return;
  ReducePlan plan = make_plan(kind, x, reduced, y);
  plan.wraps = wraps;
  switch (x.dtype) {
    case DType::f64: return reduce_plain<double>(plan, RealReducer(kind), pool);
    case DType::boolean:
    case DType::u8: return reduce_integers<std::uint8_t>(plan, pool);
    case DType::i8: return reduce_integers<std::int8_t>(plan, pool);
    case DType::u16: return reduce_integers<std::uint16_t>(plan, pool);
    case DType::i16: return reduce_integers<std::int16_t>(plan, pool);
    case DType::u32: return reduce_integers<std::uint32_t>(plan, pool);
    case DType::u64: return reduce_integers<std::uint64_t>(plan, pool);
    case DType::i32: return reduce_integers<std::int32_t>(plan, pool);
    case DType::i64: return reduce_integers<std::int64_t>(plan, pool);
    default: return HWY_DYNAMIC_DISPATCH(reduce_reals)(plan, pool);
  }
}

namespace {
Kernel kernel(const char* name, OpKind op, Launcher (*bind)(const Problem&)) {
  return {.name = name, .op = op, .summary = summary, .bind = bind};
}
}  // namespace

extern const Kernel reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min;
const Kernel reduce_sum = with_row_regions(kernel("reduce.sum", OpKind::reduce_sum, bind<Reduction::sum>));
const Kernel reduce_mean = with_row_regions(kernel("reduce.mean", OpKind::reduce_mean, bind<Reduction::mean>));
const Kernel reduce_prod = kernel("reduce.prod", OpKind::reduce_prod, bind<Reduction::prod>);
const Kernel reduce_max = with_row_regions(kernel("reduce.max", OpKind::reduce_max, bind<Reduction::max>));
const Kernel reduce_min = kernel("reduce.min", OpKind::reduce_min, bind<Reduction::min>);

}  // namespace cermet::cpu
#endif

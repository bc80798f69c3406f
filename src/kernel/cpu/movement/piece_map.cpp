#include "kernel/cpu/movement/piece_map.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "kernel/cpu/movement/axis_order.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/reference.hpp"
#include "op/slice_range.hpp"

namespace cermet::cpu {
namespace {

std::int64_t product(const Dims& dims, std::size_t first) {
  std::int64_t total = 1;
  for (std::size_t a = first; a < dims.size(); ++a) total *= dims[a].constant();
  return total;
}

/// The largest length of runs that begin at its multiples in the result and are runs of operands that do so, too; 0
/// where elements move one by one.
std::int64_t whole_run(const Problem& p) {
  const Dims &x = p.input(0).dims, &y = p.outputs[0].dims;
  const std::size_t rank = y.size();
  switch (p.op->kind) {
    case OpKind::reshape: return product(y, 0);
    case OpKind::transpose: {
      const Ints order = order_of_axes(p);
      std::size_t kept = rank;
      while (kept > 0 && order[kept - 1] == static_cast<std::int64_t>(kept - 1)) --kept;
      return product(y, kept);
    }
    case OpKind::slice: {
      const PerAxis<SliceRange> ranges =
          slice_ranges(slice_bounds(p.attributes, static_cast<int>(rank)), bind(x, {}), bind(y, {}));
      for (std::size_t a = rank; a-- > 0;) {
        if (x[a] == y[a] && ranges[a].step == 1) continue;
        const std::int64_t inner = product(y, a + 1);
        return ranges[a].step == 1
                   ? std::gcd(ranges[a].first * inner, std::gcd(x[a].constant(), y[a].constant()) * inner)
                   : inner;
      }
      return product(y, 0);
    }
    case OpKind::concat: {
      const auto axis = static_cast<std::size_t>(wrap_axis(p.attributes.integer("axis"), static_cast<int>(rank)));
      std::int64_t run = 0;
      for (std::size_t i = 0; i < p.inputs.size(); ++i) run = std::gcd(run, product(p.input(i).dims, axis));
      return run;
    }
    default: {
      std::size_t kept = 0;
      while (kept < x.size() && x[x.size() - 1 - kept] == y[rank - 1 - kept]) ++kept;
      return product(y, rank - kept);
    }
  }
}

/// Where element `index` of a node's result is: the operand of the node, and the element of it.
std::pair<std::size_t, std::int64_t> step_back(const Problem& p, std::int64_t index) {
  if (p.op->kind == OpKind::reshape) return {0, index};
  const Shape x = bind(p.input(0).dims, {}), y = bind(p.outputs[0].dims, {});
  const Shape at = coordinates(y, index);
  Shape from = x;
  switch (p.op->kind) {
    case OpKind::transpose: {
      const Ints order = order_of_axes(p);
      for (int a = 0; a < y.rank(); ++a) from[static_cast<int>(order[static_cast<std::size_t>(a)])] = at[a];
      return {0, dense_index(x, from)};
    }
    case OpKind::slice: {
      const PerAxis<SliceRange> ranges = slice_ranges(slice_bounds(p.attributes, x.rank()), x, y);
      for (int a = 0; a < x.rank(); ++a)
        from[a] = ranges[static_cast<std::size_t>(a)].first + at[a] * ranges[static_cast<std::size_t>(a)].step;
      return {0, dense_index(x, from)};
    }
    case OpKind::concat: {
      const int axis = wrap_axis(p.attributes.integer("axis"), y.rank());
      std::size_t operand = 0;
      from = at;
      for (; from[axis] >= p.input(operand).dims[static_cast<std::size_t>(axis)].constant(); ++operand)
        from[axis] -= p.input(operand).dims[static_cast<std::size_t>(axis)].constant();
      return {operand, dense_index(bind(p.input(operand).dims, {}), from)};
    }
    default: {
      const int lead = y.rank() - x.rank();
      for (int a = 0; a < x.rank(); ++a) from[a] = x[a] == 1 ? 0 : at[a + lead];
      return {0, dense_index(x, from)};
    }
  }
}

bool is_constant(const TensorType& type) {
  return std::ranges::all_of(type.dims, [](const Dim& dim) { return dim.is_constant(); });
}

/// Elements of a piece that all of the nodes keep whole.
std::int64_t piece_of(const Region& region, std::size_t count, const RegionPlace& place, std::int64_t length) {
  std::int64_t piece =
      std::gcd(length, product(region.nodes[static_cast<std::size_t>(place.node)].problem.outputs[0].dims, 0));
  for (std::size_t n = 0; n < count; ++n) piece = std::gcd(piece, whole_run(region.nodes[n].problem));
  return piece;
}

}  // namespace

bool PieceMap::knows(OpKind op) {
  return op == OpKind::reshape || op == OpKind::transpose || op == OpKind::slice || op == OpKind::concat ||
         op == OpKind::expand;
}

Decline PieceMap::declines(const Region& region, std::size_t count, const RegionPlace& place, std::int64_t length) {
  for (std::size_t n = 0; n < count; ++n) {
    const Problem& p = region.nodes[n].problem;
    if (!knows(p.op->kind)) return fmt::format("{} does more than move elements", p.op->name);
    if (!is_constant(p.outputs[0])) return fmt::format("the size of what {} moves is open", p.op->name);
    for (std::size_t i = 0; i < p.inputs.size(); ++i)
      if (!is_constant(p.input(i)) || bytes_of(p.input(i), {}) > std::numeric_limits<std::uint32_t>::max())
        return fmt::format("the size of what {} reads is open, or beyond 32 bits", p.op->name);
  }
  const TensorType& type = region.nodes[static_cast<std::size_t>(place.node)].problem.outputs[0];
  if (product(type.dims, 0) == 0) return "nothing is moved";
  const std::int64_t bytes = piece_of(region, count, place, length) * byte_size(type.dtype);
  if (bytes < least_piece_bytes)
    return fmt::format("runs of {} bytes stay together, and {} are worth a copy of their own", bytes,
                       least_piece_bytes);
  return std::nullopt;
}

PieceMap::PieceMap(const Region& region, std::size_t count, const RegionPlace& place, std::int64_t length)
    : piece_(piece_of(region, count, place, length)) {
  const std::int64_t total =
      product(region.nodes[static_cast<std::size_t>(place.node)].problem.outputs[0].dims, 0) / piece_;
  from_.reserve(static_cast<std::size_t>(total));
  for (std::int64_t piece = 0; piece < total; ++piece) {
    auto node = static_cast<std::size_t>(place.node);
    std::int64_t index = piece * piece_;
    for (;;) {
      const auto [operand, at] = step_back(region.nodes[node].problem, index);
      index = at;
      const RegionInput& input = region.nodes[node].inputs[operand];
      node = static_cast<std::size_t>(input.index);
      if (!input.is_inside()) break;
    }
    from_.push_back({static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(index / piece_)});
  }
}

void PieceMap::copy(const LaunchArgs& args, std::int64_t first, std::int64_t last, std::byte* to) const {
  std::optional<Rows> rows;
  std::uint32_t operand = 0;
  std::int64_t bytes = 0;
  while (first < last) {
    const Source& from = from_[static_cast<std::size_t>(first / piece_)];
    if (!rows || operand != from.operand) {
      const TensorView& view = args.inputs[from.operand];
      operand = from.operand, bytes = byte_size(view.dtype);
      // Dense memory is one row.
      rows.emplace(view.is_dense() ? TensorView(view.data, view.dtype, {view.elements()}) : view);
    }
    const std::int64_t at = from.piece * piece_ + first % piece_, row = at / rows->length(),
                       column = at % rows->length();
    const std::int64_t run = std::min({last - first, piece_ - first % piece_, rows->length() - column});
    std::memcpy(to, rows->row(row) + column * bytes, static_cast<std::size_t>(run * bytes));
    to += run * bytes, first += run;
  }
}

}  // namespace cermet::cpu

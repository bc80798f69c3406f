// Operators that make or pick elements: what they give depends on elements, not only on sizes.
#include <cmath>
#include <limits>
#include <numeric>

#include "onnx/lowering.hpp"
#include "onnx/sizes.hpp"

namespace cermet::onnx {
namespace {

/// 0, 1, .. along one axis of a tensor of this rank, i64.
Operand counting(Lowering& l, const Dim& count, int rank, int axis) {
  Dims dims(static_cast<std::size_t>(rank), 1);
  dims[static_cast<std::size_t>(axis)] = count;
  return l.reshape(l.counting(count), dims);
}

/// Coordinates [R, C] of the C elements that are not 0; ends the part, because C must be known.
Operand nonzero_coordinates(Lowering& l, Operand x) {
  const std::vector<Operand> found = l.ops(OpKind::nonzero, {x});
  return l.slice(found[0], 1, 0, l.integer_in(found[1]));
}

std::int64_t whole_number(Lowering& l, Operand x) { return l.integer_in(l.cast(x, DType::i64)); }

}  // namespace

namespace {

/// A range whose bounds are whole numbers some of which depend on sizes.
std::optional<Progression> range_of_sizes(Lowering& l) {
  if (!l.depends_on_sizes(l.in(0)) && !l.depends_on_sizes(l.in(1))) return {};
  const auto is_whole = [&](Operand x) {
    return l.depends_on_sizes(x) || l.number_in(x) == std::floor(l.number_in(x));
  };
  if (l.depends_on_sizes(l.in(2)) || !is_whole(l.in(0)) || !is_whole(l.in(1)) || !is_whole(l.in(2))) return {};
  const auto whole = [&](Operand x) { return l.depends_on_sizes(x) ? l.dims_in(x).at(0) : Dim(whole_number(l, x)); };
  const Dim first = whole(l.in(0)), limit = whole(l.in(1));
  const std::int64_t step = whole_number(l, l.in(2));
  l.expect(step != 0 && step != std::numeric_limits<std::int64_t>::min(),
           "delta: expected another number than 0 and -2^63, found {}", step);
  const Dim distance = step > 0 ? limit - first : first - limit;
  return Progression{first, greatest_of(ceil_div(distance, step > 0 ? step : -step), 0, l.ranges()), step};
}

}  // namespace

void lower_nonzero(Lowering& l) { l.set(0, nonzero_coordinates(l, l.in(0))); }

void lower_compress(Lowering& l) {
  Operand x = l.in(0);
  if (!l.has_attribute("axis")) x = l.reshape(x, {product(l.dims(x))});
  const int axis = l.axis(l.integer("axis", 0), l.rank(x));
  l.expect(l.rank(l.in(1)) == 1, "condition: expected one dimension, found {}", l.type(l.in(1)).to_string());
  const Operand picked = nonzero_coordinates(l, l.in(1));  // [1, C]
  l.set(0, l.op(OpKind::gather, {x, l.squeeze(picked, {0})}, {{"axis", std::int64_t{axis}}}));
}

/// The operator's results have the operand's size; its last one is the number of groups.
void lower_unique(Lowering& l) {
  const Operand x = l.in(0);
  const bool along = l.has_attribute("axis");
  const int axis = along ? l.axis(l.integer("axis", 0), l.rank(x)) : 0;
  const std::vector<Operand> found =
      l.ops(OpKind::unique, {x}, {{"axis", along ? Ints{axis} : Ints{}}, {"sorted", l.integer("sorted", 1) != 0}});
  const std::int64_t count = l.ints_in(found[4]).at(0);
  l.set(0, l.slice(found[0], axis, 0, count));
  l.set(1, l.slice(found[1], 0, 0, count));
  l.set(2, found[2]);
  l.set(3, l.slice(found[3], 0, 0, count));
}

void lower_range(Lowering& l) {
  const DType t = l.dtype(l.in(0));
  if (const std::optional<Progression> by_sizes = range_of_sizes(l))
    return l.set(0, l.cast(l.counting(by_sizes->count, by_sizes->first, by_sizes->step), t));
  if (is_integer(t)) {
    const std::int64_t start = whole_number(l, l.in(0)), limit = whole_number(l, l.in(1)),
                       step = whole_number(l, l.in(2));
    l.expect(step != 0, "delta: expected another number than 0, found 0");
    const bool any = step > 0 ? start < limit : start > limit;
    // The distance may not fit 64 bits with a sign.
    const std::uint64_t from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(limit),
                        width = static_cast<std::uint64_t>(step);
    const std::uint64_t count = !any ? 0 : step > 0 ? (to - from - 1) / width + 1 : (from - to - 1) / (0 - width) + 1;
    Ints values(l.listed(count > std::numeric_limits<std::int64_t>::max() ? std::numeric_limits<std::int64_t>::max()
                                                                          : static_cast<std::int64_t>(count)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(from + i * width);
    return l.set(0, l.cast(l.ints(values), t));
  }
  const double start = l.number_in(l.in(0)), limit = l.number_in(l.in(1)), step = l.number_in(l.in(2));
  const double count = std::ceil((limit - start) / step);
  l.expect(step != 0 && count < 0x1p31, "expected a finite number of elements, found {} to {} in steps of {}", start,
           limit, step);
  Floats values(l.listed(static_cast<std::int64_t>(std::max(0.0, count))));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * step;
  if (values.empty()) return l.set(0, l.filled({0}, t, 0));
  l.set(0, l.vector(t, values));
}

void lower_constant_of_shape(Lowering& l) {
  const Tensor* value = l.tensor("value");
  const Operand one = value ? l.reshape(l.constant(value->data()), {}) : l.scalar(DType::f32, 0);
  l.set(0, l.expand(one, l.dims_in(l.in(0))));
}

void lower_eye_like(Lowering& l) {
  const Operand x = l.in(0);
  l.expect(l.rank(x) == 2, "expected 2 dimensions, found {}", l.type(x).to_string());
  const Operand rows = l.binary(OpKind::add, counting(l, l.dim(x, 0), 2, 0), static_cast<double>(l.integer("k", 0)));
  const DType t = l.has_attribute("dtype") ? l.dtype_of_code(l.integer("dtype", 0)) : l.dtype(x);
  l.set(0, l.cast(l.binary(OpKind::equal, rows, counting(l, l.dim(x, 1), 2, 1)), t));
}

void lower_one_hot(Lowering& l) {
  const Operand given = l.in(1);
  const Dim depth = l.depends_on_sizes(given) ? l.dims_in(given).at(0) : Dim(whole_number(l, given));
  l.expect(!depth.is_constant() || depth.constant() >= 0, "depth: expected 0 or more, found {}", depth.to_string());
  Operand at = l.cast(l.in(0), DType::i64);
  const int rank = l.rank(at) + 1, axis = l.axis(l.integer("axis", -1), rank);
  at = l.op(OpKind::where,
            {l.binary(OpKind::less, at, 0.0), l.binary(OpKind::add, at, l.shape_value({depth}, true)), at});
  const Operand is_on = l.binary(OpKind::equal, l.unsqueeze(at, {axis}), counting(l, depth, rank, axis));
  l.expect(l.dims(l.in(2)) == Dims{2}, "values: expected [2], found {}", l.type(l.in(2)).to_string());
  l.set(0, l.op(OpKind::where, {is_on, l.slice(l.in(2), 0, 1, 2), l.slice(l.in(2), 0, 0, 1)}));
}

void lower_trilu(Lowering& l) {
  const Operand x = l.in(0);
  const int rank = l.rank(x);
  l.expect(rank >= 2, "expected at least 2 dimensions, found {}", l.type(x).to_string());
  Operand rows = counting(l, l.dim(x, -2), 2, 0);
  if (l.has(1)) rows = l.binary(OpKind::add, rows, l.reshape(l.in(1), {}));
  const Operand columns = counting(l, l.dim(x, -1), 2, 1);
  const Operand kept = l.binary(l.integer("upper", 1) != 0 ? OpKind::greater_equal : OpKind::less_equal, columns, rows);
  l.set(0, l.op(OpKind::where, {kept, x, l.scalar(l.dtype(x), 0)}));
}

void lower_reverse_sequence(Lowering& l) {
  const int batch = l.axis(l.integer("batch_axis", 1), l.rank(l.in(0))),
            time = l.axis(l.integer("time_axis", 0), l.rank(l.in(0)));
  l.expect(batch + time == 1, "attributes batch_axis and time_axis: expected 0 and 1 in either order, found {} and {}",
           batch, time);
  const Operand x = l.move_axis(l.in(0), batch, 0);  // [B, T, ..]
  const Operand at = counting(l, l.dim(x, 1), 2, 1), length = l.unsqueeze(l.cast(l.in(1), DType::i64), {1});
  const Operand mirrored = l.binary(OpKind::sub, l.binary(OpKind::sub, length, 1.0), at);
  const Operand from = l.op(OpKind::where, {l.binary(OpKind::less, at, length), mirrored, at});  // [B, T]
  const Operand y = l.op(OpKind::gather_nd, {x, l.unsqueeze(from, {2})}, {{"batch_dims", std::int64_t{1}}});
  l.set(0, l.move_axis(y, 0, batch));
}

void lower_bitcast(Lowering& l) {
  l.set(0,
        l.op(OpKind::bitcast, {l.in(0)}, {{"out_dtype", std::string(name_of(l.dtype_of_code(l.integer("to", 0))))}}));
}

/// Nothing is dropped when a model is used.
void lower_dropout(Lowering& l) {
  const Operand x = l.in(0);
  if (l.version() >= 12 && l.has(2) && l.number_in(l.in(2)) != 0 && (!l.has(1) || l.number_in(l.in(1)) != 0))
    l.unsupported("training mode is not supported");
  l.set(0, x);
  if (l.wants(1)) l.set(1, l.filled(l.dims(x), l.version() < 10 ? l.dtype(x) : DType::boolean, 1));
}

}  // namespace cermet::onnx

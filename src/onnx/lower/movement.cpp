// Operators that move elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/lowering.hpp"

namespace cermet::onnx {

void lower_transpose(Lowering& l) {
  const Operand x = l.in(0);
  Ints permutation(static_cast<std::size_t>(l.rank(x)));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  permutation = l.integers("perm", permutation);
  l.expect(permutation.size() == static_cast<std::size_t>(l.rank(x)), "attribute perm: expected {} axes, found {}", l.rank(x), permutation.size());
  l.set(0, l.transpose(x, permutation));
}

void lower_concat(Lowering& l) {
  std::vector<Operand> xs;
  for (std::size_t i = 0; i < l.inputs(); ++i) xs.push_back(l.in(i));
  l.expect(l.has_attribute("axis"), "attribute axis: expected one, found none");
  l.set(0, l.concat(xs, l.axis(l.integer("axis", 0), l.rank(xs.at(0)))));
}

void lower_slice(Lowering& l) {
  const Operand x = l.in(0);
  const bool old = l.version() < 10;
  const Ints starts = old ? l.integers("starts") : l.ints_in(l.in(1));
  Dims ends;
  if (old)
    for (const std::int64_t end : l.integers("ends")) ends.emplace_back(end);
  else ends = l.dims_in(l.in(2));
  Ints axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (old) axes = l.integers("axes", axes);
  else if (l.has(3)) axes = l.ints_in(l.in(3));
  const Ints steps = !old && l.has(4) ? l.ints_in(l.in(4)) : Ints(starts.size(), 1);
  l.expect(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
           "expected as many ends, axes and steps as the {} starts, found {}, {} and {}", starts.size(), ends.size(), axes.size(), steps.size());
  Ints numbers;
  Ints kept_starts, kept_axes, kept_steps;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = l.axis(axes[i], l.rank(x));
    const Dim size = l.dim(x, axis);
    l.expect(steps[i] != 0, "steps: expected other than 0, found 0");
    const bool whole =
        steps[i] == 1 && starts[i] == 0 && (ends[i] == size || (ends[i].is_constant() && ends[i].constant() >= std::numeric_limits<std::int32_t>::max()));
    if (whole) continue;  // a symbolic axis that stays whole needs no number
    static_cast<void>(l.constant(size));
    kept_starts.push_back(starts[i]);
    numbers.push_back(l.constant(ends[i]));
    kept_axes.push_back(axis);
    kept_steps.push_back(steps[i]);
  }
  if (kept_axes.empty()) return l.set(0, x);
  l.set(0, l.op(OpKind::slice, {x}, {{"starts", kept_starts}, {"ends", numbers}, {"axes", kept_axes}, {"steps", kept_steps}}));
}

void lower_split(Lowering& l) {
  const Operand x = l.in(0);
  const int axis = l.axis(l.integer("axis", 0), l.rank(x));
  Ints sizes;
  if (l.version() >= 13 && l.has(1)) sizes = l.ints_in(l.in(1));
  else if (l.version() < 13) sizes = l.integers("split");
  if (sizes.empty()) {
    const auto parts = static_cast<std::int64_t>(l.outputs());
    const std::int64_t stated = l.integer("num_outputs", parts), size = l.size(x, axis), piece = stated > 0 ? (size + stated - 1) / stated : 0;
    l.expect(stated == parts, "attribute num_outputs: expected {}, one for each result, found {}", parts, stated);
    for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp(size - i * piece, std::int64_t{0}, piece));
  }
  l.expect(sizes.size() == l.outputs(), "split: expected {} sizes, one for each result, found {}", l.outputs(), sizes.size());
  if (sizes.size() <= static_cast<std::size_t>(max_variadic)) {
    const std::vector<Operand> pieces = l.ops(OpKind::split, {x}, {{"axis", std::int64_t{axis}}, {"sizes", sizes}});
    for (std::size_t i = 0; i < pieces.size(); ++i) l.set(i, pieces[i]);
    return;
  }
  std::int64_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); at += sizes[i++]) l.set(i, l.slice(x, axis, at, at + sizes[i]));
}

namespace {

/// Our operators take indices of 32 and 64 bits.
Operand indices(Lowering& l, std::size_t i) {
  const Operand x = l.in(i);
  return dtypes::index.contains(l.dtype(x)) ? x : l.cast(x, DType::i64);
}

Attributes axis_attribute(Lowering& l, Operand x) { return {{"axis", std::int64_t{l.axis(l.integer("axis", 0), l.rank(x))}}}; }

/// Whether a gather takes every slice, in order: masks of tokens are exported so. A single one is left alone: it may be a size.
bool takes_all_in_order(Lowering& l, Operand x, Operand at) {
  const Dim size = l.dim(x, l.axis(l.integer("axis", 0), l.rank(x)));
  if (l.is_known(x) || !l.is_known(at) || !size.is_constant() || size.constant() < 2 || l.elements(at) != size.constant()) return false;
  const Ints list = l.ints_in(at);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

void scatter(Lowering& l, OpKind kind) {
  const Operand x = l.in(0);
  std::string reduction = l.text("reduction", "none");
  if (reduction == "add") reduction = "sum";
  if (reduction == "mul") reduction = "prod";
  Attributes attributes{{"reduction", reduction}};
  if (kind == OpKind::scatter) attributes.set("axis", std::int64_t{l.axis(l.integer("axis", 0), l.rank(x))});
  l.set(0, l.op(kind, {x, indices(l, 1), l.in(2)}, attributes));
}

}  // namespace

void lower_gather(Lowering& l) {
  const Operand x = l.in(0), at = indices(l, 1);
  if (takes_all_in_order(l, x, at)) {
    const int axis = l.axis(l.integer("axis", 0), l.rank(x));
    Dims dims(l.dims(x).begin(), l.dims(x).begin() + axis);
    dims.insert(dims.end(), l.dims(at).begin(), l.dims(at).end());
    dims.insert(dims.end(), l.dims(x).begin() + axis + 1, l.dims(x).end());
    return l.set(0, l.reshape(x, dims));
  }
  l.set(0, l.op(OpKind::gather, {x, at}, axis_attribute(l, x)));
}
void lower_gather_elements(Lowering& l) { l.set(0, l.op(OpKind::gather_elements, {l.in(0), indices(l, 1)}, axis_attribute(l, l.in(0)))); }
void lower_gather_nd(Lowering& l) { l.set(0, l.op(OpKind::gather_nd, {l.in(0), indices(l, 1)}, {{"batch_dims", l.integer("batch_dims", 0)}})); }
void lower_scatter_elements(Lowering& l) { scatter(l, OpKind::scatter); }
void lower_scatter_nd(Lowering& l) { scatter(l, OpKind::scatter_nd); }

/// [a, b] repeated r, s times is [1, a, 1, b] expanded to [r, a, s, b]; axes that are not repeated stay one.
void lower_tile(Lowering& l) {
  Operand x = l.in(0);
  const Ints repeats = l.ints_in(l.in(1));
  const Dims from = l.dims(x);
  l.expect(repeats.size() == from.size(), "repeats: expected {}, found {}", from.size(), repeats.size());
  for (std::size_t a = 0; a < from.size(); ++a) {
    l.expect(repeats[a] >= 0, "repeats: expected non-negative numbers, found {}", repeats[a]);
    if (repeats[a] == 1) continue;
    Dims dims = l.dims(x),
         apart{product({dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(a)}), 1, product({dims.begin() + static_cast<std::ptrdiff_t>(a), dims.end()})};
    Dims repeated = apart;
    repeated[1] = repeats[a];
    dims[a] = dims[a] * repeats[a];
    x = l.reshape(l.expand(l.reshape(x, apart), repeated), dims);
  }
  l.set(0, x);
}

namespace {

/// Pads up to 2^40 either way, so that no sum of them overflows.
void check_pads(Lowering& l, const Ints& pads) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (const std::int64_t p : pads) l.expect(p >= -most && p <= most, "pads: expected numbers up to {}, found {}", most, p);
}

}  // namespace

void lower_pad(Lowering& l) {
  Operand x = l.in(0);
  const int rank = l.rank(x);
  const bool old = l.version() < 11;
  const Ints given = old ? l.integers("pads") : l.ints_in(l.in(1));
  Ints axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (!old && l.has(3)) axes = l.ints_in(l.in(3));
  l.expect(given.size() == 2 * axes.size(), "pads: expected {} entries, two for each axis, found {}", 2 * axes.size(), given.size());
  Ints pads(2 * static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(l.axis(axes[i], rank));
    pads[a] = given[i];
    pads[a + static_cast<std::size_t>(rank)] = given[i + axes.size()];
  }
  check_pads(l, pads);
  const std::string mode = l.text("mode", "constant");
  const double value = old ? l.number("value", 0) : l.has(2) ? l.number_in(l.in(2)) : 0;
  if (mode == "wrap") {
    for (int a = 0; a < rank; ++a) {
      const std::int64_t before = pads[static_cast<std::size_t>(a)], after = pads[static_cast<std::size_t>(a + rank)], size = l.size(x, a);
      if (before == 0 && after == 0) continue;
      l.expect(size > 0, "pads: expected elements to repeat along axis {}, found none", a);
      Ints positions(l.listed(std::max<std::int64_t>(before + size + after, 0)));
      for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = (((static_cast<std::int64_t>(i) - before) % size) + size) % size;
      x = l.op(OpKind::gather, {x, l.ints(positions)}, {{"axis", std::int64_t{a}}});
    }
    return l.set(0, x);
  }
  // A negative pad takes elements away.
  for (int a = 0; a < rank; ++a) {
    std::int64_t &before = pads[static_cast<std::size_t>(a)], &after = pads[static_cast<std::size_t>(a + rank)];
    if (before >= 0 && after >= 0) continue;
    const std::int64_t start = std::max<std::int64_t>(-before, 0), end = l.size(x, a) - std::max<std::int64_t>(-after, 0);
    x = l.slice(x, a, start, end);
    before = std::max<std::int64_t>(before, 0);
    after = std::max<std::int64_t>(after, 0);
  }
  if (std::ranges::all_of(pads, [](std::int64_t p) { return p == 0; })) return l.set(0, x);
  l.set(0, l.op(OpKind::pad, {x}, {{"pads", pads}, {"mode", mode}, {"value", value}}));
}

}  // namespace cermet::onnx

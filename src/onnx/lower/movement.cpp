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
  l.expect(l.has_attribute("axis") || l.version() < 4, "attribute axis: expected one, found none");
  l.set(0, l.concat(xs, l.axis(l.integer("axis", 1), l.rank(xs.at(0)))));
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
  if ((l.version() >= 13 || l.version() < 2) && l.has(1)) sizes = l.ints_in(l.in(1));
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

/// [a, b] repeated r, s times is [1, a, 1, b] expanded to [r, a, s, b]; axes that are not repeated stay one.
void lower_tile(Lowering& l) {
  Operand x = l.in(0);
  const Dims from = l.dims(x);
  Ints repeats;
  if (l.version() < 6) {  // how often, and along which axis
    repeats.assign(from.size(), 1);
    repeats[static_cast<std::size_t>(l.axis(l.integer_in(l.cast(l.in(2), DType::i64)), l.rank(x)))] = l.integer_in(l.cast(l.in(1), DType::i64));
  } else {
    repeats = l.ints_in(l.in(1));
  }
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

}  // namespace cermet::onnx

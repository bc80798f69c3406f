// Operators that move elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/lowering.hpp"
#include "onnx/sizes.hpp"

namespace cermet::onnx {

void lower_transpose(Lowering& l) {
  const Operand x = l.in(0);
  Ints permutation(static_cast<std::size_t>(l.rank(x)));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  permutation = l.integers("perm", permutation);
  l.expect(permutation.size() == static_cast<std::size_t>(l.rank(x)), "attribute perm: expected {} axes, found {}",
           l.rank(x), permutation.size());
  l.set(0, l.transpose(x, permutation));
}

void lower_concat(Lowering& l) {
  std::vector<Operand> xs;
  for (std::size_t i = 0; i < l.inputs(); ++i) xs.push_back(l.in(i));
  l.expect(l.has_attribute("axis") || l.version() < 4, "attribute axis: expected one, found none");
  l.set(0, l.concat(xs, l.axis(l.integer("axis", 1), l.rank(xs.at(0)))));
}

namespace {

struct SliceLists {
  Dims starts, ends;
  Ints axes, steps;
};

SliceLists slice_lists(Lowering& l) {
  SliceLists lists;
  const bool old = l.version() < 10;
  const auto numbers = [&](std::string_view name) {
    const Ints given = l.integers(name);
    return Dims(given.begin(), given.end());
  };
  lists.starts = old ? numbers("starts") : l.dims_in(l.in(1));
  lists.ends = old ? numbers("ends") : l.dims_in(l.in(2));
  lists.axes.resize(lists.starts.size());
  std::iota(lists.axes.begin(), lists.axes.end(), 0);
  if (old) lists.axes = l.integers("axes", lists.axes);
  else if (l.has(3)) lists.axes = l.ints_in(l.in(3));
  lists.steps = !old && l.has(4) ? l.ints_in(l.in(4)) : Ints(lists.starts.size(), 1);
  l.expect(lists.ends.size() == lists.starts.size() && lists.axes.size() == lists.starts.size() &&
               lists.steps.size() == lists.starts.size(),
           "expected as many ends, axes and steps as the {} starts, found {}, {} and {}", lists.starts.size(),
           lists.ends.size(), lists.axes.size(), lists.steps.size());
  return lists;
}

}  // namespace

/// Axes whose bounds or sizes are not numbers are cut one by one.
void lower_slice(Lowering& l) {
  Operand x = l.in(0);
  const SliceLists given = slice_lists(l);
  Ints starts, ends, axes, steps;
  for (std::size_t i = 0; i < given.starts.size(); ++i) {
    const int axis = l.axis(given.axes[i], l.rank(x));
    const Dim &start = given.starts[i], &end = given.ends[i], size = l.dim(x, axis);
    const std::int64_t step = given.steps[i];
    l.expect(step != 0 && step != std::numeric_limits<std::int64_t>::min(),
             "steps: expected other than 0 and -2^63, found {}", step);
    if (start.is_constant() && end.is_constant() && size.is_constant()) {
      if (step == 1 && start == Dim(0) && end.constant() >= size.constant()) continue;
      starts.push_back(start.constant());
      ends.push_back(end.constant());
      axes.push_back(axis);
      steps.push_back(step);
      continue;
    }
    const bool from_end = l.is_negative(start), to_end = l.is_negative(end);
    const Progression taken = sliced_positions({start, from_end}, {end, to_end}, step, size, l.ranges());
    x = l.take(x, axis, taken.first, taken.count, step);
  }
  if (!axes.empty())
    x = l.op(OpKind::slice, {x}, {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
  l.set(0, x);
}

void lower_split(Lowering& l) {
  const Operand x = l.in(0);
  const int axis = l.axis(l.integer("axis", 0), l.rank(x));
  const Dim size = l.dim(x, axis);
  Dims sizes;
  if ((l.version() >= 13 || l.version() < 2) && l.has(1)) {
    sizes = l.dims_in(l.in(1));
  } else if (l.version() < 13) {
    for (const std::int64_t piece : l.integers("split")) sizes.emplace_back(piece);
  }
  if (sizes.empty()) {
    const auto parts = static_cast<std::int64_t>(l.outputs());
    const std::int64_t stated = l.integer("num_outputs", parts);
    l.expect(stated == parts, "attribute num_outputs: expected {}, one for each result, found {}", parts, stated);
    const Dim piece = ceil_div(size, std::max<std::int64_t>(stated, 1));
    for (std::int64_t i = 0; i < parts; ++i)
      sizes.push_back(least_of(greatest_of(size - piece * i, 0, l.ranges()), piece, l.ranges()));
  }
  l.expect(sizes.size() == l.outputs(), "split: expected {} sizes, one for each result, found {}", l.outputs(),
           sizes.size());
  const bool are_numbers = size.is_constant() && std::ranges::all_of(sizes, &Dim::is_constant);
  if (are_numbers && sizes.size() <= static_cast<std::size_t>(max_variadic)) {
    Ints numbers;
    for (const Dim& piece : sizes) numbers.push_back(piece.constant());
    const std::vector<Operand> pieces = l.ops(OpKind::split, {x}, {{"axis", std::int64_t{axis}}, {"sizes", numbers}});
    for (std::size_t i = 0; i < pieces.size(); ++i) l.set(i, pieces[i]);
    return;
  }
  Dim at = 0;
  for (std::size_t i = 0; i < sizes.size(); at = at + sizes[i++])
    l.set(i, are_numbers ? l.slice(x, axis, at.constant(), (at + sizes[i]).constant()) : l.take(x, axis, at, sizes[i]));
  if (!are_numbers)
    l.expect(l.equals(at, size), "split: expected sizes that add up to {}, found {}", size.to_string(),
             to_string(sizes));
}

/// [a, b] repeated r, s times is [1, a, 1, b] expanded to [r, a, s, b]; axes that are not repeated stay one.
void lower_tile(Lowering& l) {
  Operand x = l.in(0);
  const Dims from = l.dims(x);
  Dims repeats;
  if (l.version() < 6) {  // how often, and along which axis
    repeats.assign(from.size(), 1);
    repeats[static_cast<std::size_t>(l.axis(l.integer_in(l.cast(l.in(2), DType::i64)), l.rank(x)))] =
        l.integer_in(l.cast(l.in(1), DType::i64));
  } else {
    repeats = l.dims_in(l.in(1));
  }
  l.expect(repeats.size() == from.size(), "repeats: expected {}, found {}", from.size(), repeats.size());
  for (std::size_t a = 0; a < from.size(); ++a) {
    l.expect(!repeats[a].is_constant() || repeats[a].constant() >= 0,
             "repeats: expected non-negative numbers, found {}", repeats[a].to_string());
    if (repeats[a] == Dim(1)) continue;
    Dims dims = l.dims(x), apart{product({dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(a)}), 1,
                                 product({dims.begin() + static_cast<std::ptrdiff_t>(a), dims.end()})};
    Dims repeated = apart;
    repeated[1] = repeats[a];
    dims[a] = dims[a] * repeats[a];
    x = l.reshape(l.expand(l.reshape(x, apart), repeated), dims);
  }
  l.set(0, x);
}

}  // namespace cermet::onnx

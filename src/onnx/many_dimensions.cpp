// Values of more dimensions than a tensor may have: exporters make them between a reshape and the next one. Their
// elements are held in fewer dimensions.
#include <algorithm>
#include <numeric>

#include "onnx/importer.hpp"
#include "op/schema/operator.hpp"

namespace cermet::onnx {

Operand Lowering::elements_of(Operand x) const {
  const Operand elements = importer_.slot(x).elements;
  return elements ? elements : x;
}

Operand Lowering::transpose_many(Operand x, const Ints& permutation) {
  const Dims from = dims(x);
  expect(permutation.size() == from.size(), "attribute perm: expected {} axes, found {}", from.size(),
         permutation.size());
  Dims to;
  Ints order;  // of the axes that are not 1
  for (const std::int64_t p : permutation) {
    to.push_back(from[static_cast<std::size_t>(axis(p, rank(x)))]);
    if (to.back() != Dim(1)) order.push_back(p);
  }
  Ints kept = order;
  std::ranges::sort(kept);
  Dims groups;      // axes that stay side by side are one
  Ints first_axes;  // of the groups, in the result's order
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto place = std::ranges::find(kept, order[i]);
    const bool joins = i > 0 && place != kept.begin() && *(place - 1) == order[i - 1];
    if (joins) {
      groups.back() = groups.back() * from[static_cast<std::size_t>(order[i])];
    } else {
      groups.push_back(from[static_cast<std::size_t>(order[i])]);
      first_axes.push_back(order[i]);
    }
  }
  if (groups.size() > static_cast<std::size_t>(Shape::max_rank))
    unsupported("expected at most {} dimensions that move, found {}", Shape::max_rank, groups.size());
  Ints by_axis(groups.size());  // groups in the operand's order
  std::iota(by_axis.begin(), by_axis.end(), 0);
  std::ranges::sort(by_axis, {}, [&](std::int64_t g) { return first_axes[static_cast<std::size_t>(g)]; });
  Dims flat;
  Ints moved(groups.size());
  for (std::size_t place = 0; place < by_axis.size(); ++place) {
    flat.push_back(groups[static_cast<std::size_t>(by_axis[place])]);
    moved[static_cast<std::size_t>(by_axis[place])] = static_cast<std::int64_t>(place);
  }
  return reshape(transpose(reshape(x, flat), moved), to);
}

/// Elementwise operators on values of equal dimensions and on numbers.
std::vector<Operand> Lowering::op_of_many(OpKind kind, const std::vector<Operand>& inputs,
                                          const Attributes& attributes) {
  const auto most = std::ranges::max_element(inputs, {}, [&](Operand x) { return x ? rank(x) : -1; });
  const Dims whole = dims(*most);
  const bool is_elementwise =
      kind == OpKind::cast || kind == OpKind::where || definition(kind).category == "Elementwise";
  std::vector<Operand> flat;
  for (const Operand x : inputs) {
    const bool is_number = x && product(dims(x)) == Dim(1);
    if (!is_elementwise || !x || (!is_number && dims(x) != whole))
      unsupported("expected at most {} dimensions, found {}", Shape::max_rank, type(*most).to_string());
    flat.push_back(is_number ? reshape(x, {}) : reshape(x, {product(whole)}));
  }
  std::vector<Operand> results = ops(kind, flat, attributes);
  for (Operand& y : results) y = reshape(y, whole);
  return results;
}

}  // namespace cermet::onnx

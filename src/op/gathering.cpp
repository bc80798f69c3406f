#include "op/gathering.hpp"

#include "op/schema/axes.hpp"

namespace cermet {

OpSpec define_gathering(Gathering own) {
  return {
      .category = "Data movement",
      .summary = own.summary,
      .semantics = own.semantics,
      .inputs = {own.x, own.indices},
      .outputs = {own.y},
      .attributes = {std::move(own.attribute)},
      .infer = own.infer,
      .reference = own.reference,
      .bytes =
          [](const Problem& p) {
            return static_cast<double>(p.input(1).bytes().value(p.maximum)) +
                   2 * static_cast<double>(p.outputs[0].bytes().value(p.maximum));
          },
      .cases = own.cases,
  };
}

void expect_indices_of_elements(const Problem& p) {
  expect_min_rank(p, 0, 1);
  const int rank = p.input(0).rank(), axis = axis_attribute(p, "axis", rank);
  expect_rank(p, 1, rank);
  for (int a = 0; a < rank; ++a) {
    const Dim count = dim_of(p, 1, a), size = dim_of(p, 0, a);
    const bool fits =
        count == size || (count.is_constant() && size.is_constant() && count.constant() <= size.constant());
    if (a != axis && !fits)
      bad_operand(p, 1, fmt::format("dimension {} of at most {} (that of x)", a, size.to_string()),
                  p.input(1).to_string());
  }
}

}  // namespace cermet

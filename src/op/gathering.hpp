// What operators that pick by index share.
#pragma once

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

/// An operator that copies what `indices` name of x: what is its own.
struct Gathering {
  std::string_view summary, semantics;
  OperandSpec x, indices, y;
  AttributeSpec attribute;
  std::vector<TensorType> (*infer)(const Problem& p);
  void (*reference)(const ReferenceCall& call);
  std::vector<Case> (*cases)();
};
OpSpec define_gathering(Gathering own);

/// Operand 1 has an index for each result along attribute "axis" of x, and in other dimensions at most as many as x.
void expect_indices_of_elements(const Problem& p);

}  // namespace cermet

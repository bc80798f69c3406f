// Operands of a region filled by recipes.
#pragma once

#include <random>
#include <vector>

#include "kernel/kernel.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

/// `fill_of(i)` is the recipe of operand i; operands that are not given stay empty.
template <class FillOf>
std::vector<OwnedTensor> filled_operands(const Region& region, std::mt19937_64 random, FillOf fill_of) {
  std::vector<OwnedTensor> operands;
  for (std::size_t i = 0; i < region.operands.size(); ++i) {
    if (!region.has(i)) {
      operands.emplace_back();
      continue;
    }
    const TensorType& type = region.operand_type(i);
    operands.emplace_back(type.dtype, bind(type.dims, {}));
    const Fill fill = fill_of(i);
    for (std::int64_t e = 0; e < operands.back().view.elements(); ++e)
      store(operands.back().view, e, draw(fill, e, random));
  }
  return operands;
}

}  // namespace cermet

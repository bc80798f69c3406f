// What the tasks of scatter and scatter_nd are compiled for.
#pragma once

#include "kernel/cuda/device/movement/combine.hpp"
#include "op/schema/problem.hpp"

namespace cermet::cuda {

struct UpdateStep {
  DType dtype;
  scatter::Reduction reduction;
};

/// Elements that are only moved are distinguished by their size alone; booleans are combined as bytes of 0 and 1.
inline UpdateStep update_step(const Problem& p) {
  using enum scatter::Reduction;
  const std::string& name = p.attributes.text("reduction");
  const scatter::Reduction reduction = name == "sum"    ? sum
                                       : name == "prod" ? prod
                                       : name == "max"  ? max
                                       : name == "min"  ? min
                                                        : none;
  const DType dtype = p.input(0).dtype;
  if (reduction == none) {
    switch (size_of(dtype)) {
      case 1: return {DType::u8, reduction};
      case 2: return {DType::u16, reduction};
      case 4: return {DType::u32, reduction};
      default: return {DType::u64, reduction};
    }
  }
  if (dtype != DType::boolean) return {dtype, reduction};
  return {DType::u8, reduction == sum ? max : reduction == prod ? min : reduction};
}

}  // namespace cermet::cuda

// Operands of products beside x and w, by their numbers in the schemas.
#pragma once

#include "base/error.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

struct ProductOperands {
  static constexpr std::size_t none = std::size_t(-1);
  std::size_t w_up = none, offsets = none, x_scale = none, w_scale = none, bias = none, bias_up = none,
              zero_point = none, residual = none, out_scale = none;
};

constexpr ProductOperands product_operands(OpKind op) {
  switch (op) {
    case OpKind::linear: return {.bias = 2};
    case OpKind::dual_linear: return {.w_up = 2, .bias = 3, .bias_up = 4};
    case OpKind::scaled_mm:
      return {.x_scale = 2, .w_scale = 3, .bias = 4, .zero_point = 5, .residual = 6, .out_scale = 7};
    case OpKind::grouped_linear: return {.offsets = 2, .x_scale = 4, .w_scale = 5, .bias = 3};
    case OpKind::conv: return {.bias = 2, .residual = 3};
    case OpKind::conv_transpose: return {.bias = 2};
    default: CERMET_ASSERT(op == OpKind::matmul); return {};
  }
}

}  // namespace cermet

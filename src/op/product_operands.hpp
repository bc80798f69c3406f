// Operands of products beside x and w, by their numbers in the schemas.
#pragma once

#include "base/error.hpp"
#include "op/operands.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

struct ProductOperands {
  static constexpr std::size_t none = std::size_t(-1);
  std::size_t w_up = none, offsets = none, x_scale = none, w_scale = none, bias = none, bias_up = none,
              zero_point = none, residual = none, out_scale = none;
};

constexpr ProductOperands product_operands(OpKind kind) {
  switch (kind) {
    case OpKind::linear: return {.bias = op::linear::bias};
    case OpKind::dual_linear:
      return {.w_up = op::dual_linear::w_up, .bias = op::dual_linear::bias_gate, .bias_up = op::dual_linear::bias_up};
    case OpKind::scaled_mm:
      return {.x_scale = op::scaled_mm::a_scale,
              .w_scale = op::scaled_mm::b_scale,
              .bias = op::scaled_mm::bias,
              .zero_point = op::scaled_mm::a_zp,
              .residual = op::scaled_mm::residual,
              .out_scale = op::scaled_mm::out_scale};
    case OpKind::grouped_linear:
      return {.offsets = op::grouped_linear::offsets,
              .x_scale = op::grouped_linear::x_scale,
              .w_scale = op::grouped_linear::w_scale,
              .bias = op::grouped_linear::bias};
    case OpKind::conv: return {.bias = op::conv::bias, .residual = op::conv::residual};
    case OpKind::conv_transpose: return {.bias = op::conv_transpose::bias};
    default: CERMET_ASSERT(kind == OpKind::matmul); return {};
  }
}

}  // namespace cermet

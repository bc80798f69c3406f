// The geometry of deform_conv, from its attributes and operands.
#pragma once

#include "op/pool_window.hpp"

namespace cermet {

/// Operands in the schema's order.
namespace deform {
inline constexpr std::size_t x = 0, weight = 1, offset = 2, bias = 3, mask = 4;
}  // namespace deform

struct DeformConv {
  PoolWindow window;  ///< kernel from the weight
  std::int64_t groups = 1, offset_groups = 1;
};
DeformConv deform_conv_of(const Attributes& attributes, std::int64_t kernel_height, std::int64_t kernel_width);

}  // namespace cermet

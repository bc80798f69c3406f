// Sizes of a run, solved from the shapes of its inputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.hpp"

namespace cermet {

/// An input of a graph, and its shape in a run.
struct ShapedInput {
  std::string name;
  TensorType type;
  std::optional<Shape> shape;  ///< nothing where there is no tensor
};

/// Values of symbols, solved from the shapes of inputs: a dimension with one unknown symbol gives that symbol, until no
/// dimension gives another. Throws Error naming the input without a shape or whose shape fits no values, and a symbol
/// of `used` that no shape gives.
SymbolValues symbols_of_shapes(std::span<const ShapedInput> inputs, std::span<const Symbol> used);

}  // namespace cermet

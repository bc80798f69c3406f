// Ensembles of decision trees: all trees of all rows take a step at a time, from nodes that are held as tables.
#pragma once

#include <vector>

#include "onnx/lowering.hpp"

namespace cermet::onnx {

enum class Branch : std::uint8_t { less_equal, less, greater_equal, greater, equal, not_equal };

/// Nodes of all trees; a leaf leads to itself.
struct Forest {
  std::vector<Branch> branch;
  Ints feature, yes, no;
  Floats split;
  std::vector<bool> missing_is_yes;  ///< where a row's feature is NaN
  std::vector<bool> is_leaf;
  Ints roots;
  std::vector<std::vector<std::pair<std::int64_t, double>>> weights;  ///< of a leaf: targets and what they get

  std::size_t add();  ///< a leaf without weights
};

enum class Aggregate { sum, average, least, most };

/// What rows [N, C] reach, [N, targets], and which of the targets any leaf gave something, bool; none where each leaf
/// gives each something.
struct Reached {
  Operand scores, any;
};
Reached reached(Lowering& l, const Forest& forest, Operand rows, std::int64_t targets, Aggregate aggregate,
                DType weights);

}  // namespace cermet::onnx

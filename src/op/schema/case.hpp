// Test cases that an operator's file lists: operand types with a recipe for their values, and attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "op/schema/attributes.hpp"

namespace cermet {

/// How the elements of a case's operand are made, from a seed that the case's name gives.
struct Fill {
  enum class Kind { normal, uniform, integers, values } kind = Kind::normal;
  double a = 0, b = 1;         ///< normal: mean, deviation; uniform and integers: bounds, both included
  std::vector<double> values;  ///< repeated cyclically; may hold NaN and infinities
};

Fill normal(double deviation = 1, double mean = 0);
Fill uniform(double low, double high);
Fill integers(std::int64_t low, std::int64_t high);
Fill values(std::vector<double> list);
Fill constant(double value);

struct CaseOperand {
  TensorType type;  ///< constant dimensions
  Fill fill = {};
  std::int64_t row_padding =
      0;                  ///< elements between rows of the last dimension, so that leading dimensions are strided
  bool constant = false;  ///< offered to kernels as a weight that may be prepacked
};

struct Case {
  std::string name;  ///< unique within the operator
  std::vector<std::optional<CaseOperand>> inputs;
  Attributes attributes = {};
};

}  // namespace cermet

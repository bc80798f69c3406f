// Regions of any form, node by node.
#pragma once

#include <optional>
#include <vector>

#include "op/schema/region.hpp"

namespace cermet {

/// The anchor is the node added last, unless another is named; every inner edge has one contract.
class RegionBuilder {
 public:
  /// An operand of the region or a result of a node; by default, an operand that is not given.
  struct Value {
    std::int32_t operand = -1, node = -1, output = 0;
    TensorType type;
    bool given() const { return operand >= 0 || node >= 0; }
  };

  explicit RegionBuilder(Rounding rounding = Rounding::strict, const Target* target = nullptr)
      : rounding_(rounding), target_(target) {}

  Value operand(TensorType type) {
    region_.operands.push_back({-1, 0});  // placed by its first reader
    return {static_cast<std::int32_t>(region_.operands.size() - 1), -1, 0, std::move(type)};
  }
  /// The node's result 0; see result_of().
  Value add(OpKind op, const std::vector<Value>& values, const Attributes& attributes = {}) {
    std::vector<std::optional<TensorType>> types;
    std::vector<RegionInput> inputs;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Value& value = values[i];
      types.push_back(value.given() ? std::optional(value.type) : std::nullopt);
      if (value.operand >= 0) {
        RegionPlace& place = region_.operands[static_cast<std::size_t>(value.operand)];
        if (place.node < 0) place = {static_cast<std::int32_t>(region_.nodes.size()), static_cast<std::int32_t>(i)};
        inputs.push_back(RegionInput::outside(static_cast<std::size_t>(value.operand)));
      } else if (value.node >= 0) {
        inputs.push_back(RegionInput::inside(static_cast<std::size_t>(value.node),
                                             static_cast<std::size_t>(value.output), rounding_));
      } else {
        inputs.push_back({});
      }
    }
    Problem problem = make_problem(definition(op), std::move(types), attributes);
    problem.target = target_;
    inputs.resize(problem.inputs.size());
    region_.nodes.push_back({std::move(problem), std::move(inputs)});
    region_.anchor = static_cast<std::int32_t>(region_.nodes.size() - 1);
    return result_of(region_.anchor, 0);
  }
  Value result_of(std::int32_t node, std::int32_t output) const {
    return {-1, node, output,
            region_.nodes[static_cast<std::size_t>(node)].problem.outputs[static_cast<std::size_t>(output)]};
  }
  /// The value leaves the region.
  void result(const Value& value) { region_.results.push_back({value.node, value.output}); }
  void anchor(const Value& value) { region_.anchor = value.node; }

  Region build() const {
    verify(region_);
    return region_;
  }

 private:
  Region region_;
  Rounding rounding_;
  const Target* target_;
};

}  // namespace cermet

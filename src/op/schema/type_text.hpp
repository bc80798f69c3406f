// Text of types and operator calls, as their to_string() spells them. Every function throws Error(invalid_argument)
// that quotes the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.hpp"
#include "op/schema/attributes.hpp"

namespace cermet {

/// "bf16[T, 4096]", "f32[]".
TensorType parse_tensor_type(std::string_view text);
/// What to_string of an attribute value spells: true, 8, 1e-05, "silu", [1, 2].
AttributeValue parse_attribute_value(std::string_view text);

/// An operator call before it is validated.
struct OperatorCall {
  std::string name;
  std::vector<std::optional<TensorType>> inputs;
  Attributes attributes;
};
/// `softmax(f32[T, 10]) {log = true}`; an operand that is not given is "-".
OperatorCall parse_call(std::string_view text);

}  // namespace cermet

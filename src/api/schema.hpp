// An operator's schema for programs (JSON) and examples made from its own cases.
#pragma once

#include <string>

#include "io/json_value.hpp"
#include "op/schema/problem.hpp"

namespace cermet::api {

/// name, category, summary, semantics, inputs, outputs, attributes, properties, kernels by backend, example. Keys keep
/// this order.
JsonValue schema_json(const OpDefinition& op);
/// Operands and attributes of the operator's first case, as `cermet explain op NAME --shape` takes them: "x=f32[4, 7]
/// eps=1e-05".
std::string example_call(const OpDefinition& op);
/// Throws Error(invalid_argument) that lists similar names.
const OpDefinition& operator_named(std::string_view name);

}  // namespace cermet::api

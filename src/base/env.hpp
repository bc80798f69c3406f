// Environment variables, declared once in env.inc and read once per process.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cermet::env {

enum class Name {
#define X(name, fallback, meaning) name,
#include "base/env.inc"
#undef X
};

/// One declared variable with the value this process sees.
struct Variable {
  std::string_view name, fallback, meaning;
  std::string value;  ///< the environment's, or the default
  bool is_set;
};

/// All declared variables, in the table's order.
std::span<const Variable> all();
/// The value of one variable.
const std::string& value(Name name);
/// The value as a non-negative integer; throws Error naming the variable otherwise.
long integer(Name name);

}  // namespace cermet::env

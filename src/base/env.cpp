#include "base/env.hpp"

#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/error.hpp"

namespace cermet::env {
namespace {

Variable read(std::string_view name, std::string_view fallback, std::string_view meaning) {
  const char* found = std::getenv(std::string(name).c_str());
  return {name, fallback, meaning, found ? std::string(found) : std::string(fallback), found != nullptr};
}

const std::vector<Variable>& table() {
  static const std::vector<Variable> variables{
#define X(name, fallback, meaning) read(#name, fallback, meaning),
#include "base/env.inc"
#undef X
  };
  return variables;
}

}  // namespace

std::span<const Variable> all() { return table(); }
const std::string& value(Name name) { return table()[static_cast<std::size_t>(name)].value; }

long integer(Name name) {
  const Variable& v = table()[static_cast<std::size_t>(name)];
  long parsed = -1;
  const char* last = v.value.data() + v.value.size();
  const auto [end, error] = std::from_chars(v.value.data(), last, parsed);
  require(error == std::errc() && end == last && parsed >= 0,
          "environment variable {}: expected a non-negative integer, found '{}'", v.name, v.value);
  return parsed;
}

}  // namespace cermet::env

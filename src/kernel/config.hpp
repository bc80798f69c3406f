// One of the ways in which a kernel can run: named integers, "tile_m=128 tile_n=256 stages=4".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cermet {

/// Fields in the kernel's order. Without fields it is the kernel's own choice.
class Config {
 public:
  Config() = default;
  Config(std::initializer_list<std::pair<std::string_view, std::int64_t>> fields);

  bool empty() const { return fields_.empty(); }
  /// A field's value; asserts that there is one of this name.
  std::int64_t at(std::string_view name) const;
  std::optional<std::int64_t> find(std::string_view name) const;
  const std::vector<std::pair<std::string, std::int64_t>>& fields() const { return fields_; }
  /// Gives a field its value; a new one comes last.
  void set(std::string_view name, std::int64_t value);
  std::string to_string() const;  ///< "default" where there are no fields

  friend bool operator==(const Config&, const Config&) = default;

 private:
  friend Config parse_config(std::string_view text);
  std::vector<std::pair<std::string, std::int64_t>> fields_;
};

/// The configuration of a text as to_string() spells it, or with commas in place of spaces. Throws
/// Error(invalid_argument) that quotes the word at fault.
Config parse_config(std::string_view text);

}  // namespace cermet

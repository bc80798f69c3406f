// The configurations that a kernel can run a region in: fields with their values, and constraints between them. What a
// tuner searches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/config.hpp"

namespace cermet {

/// A field of a configuration and its values, in ascending order.
struct ConfigField {
  std::string name;
  std::vector<std::int64_t> values;
  std::string text;  ///< for readers: "one of 64, 128", "2 to 6", "powers of two from 1 to 8"
  std::optional<std::int64_t> usual =
      {};  ///< a configuration that leaves the field out has this value, and one that has it leaves the field out

  static ConfigField fixed(std::string name, std::int64_t value);
  /// first, first + step, ... up to `last`; without values where last < first.
  static ConfigField range(std::string name, std::int64_t first, std::int64_t last, std::int64_t step = 1);
  /// Of powers of two.
  static ConfigField powers(std::string name, std::int64_t first, std::int64_t last);
  static ConfigField set(std::string name, std::vector<std::int64_t> values);
  /// The same field with a value that it has where it is not named; the value is added where it is missing.
  ConfigField with_usual(std::int64_t value) &&;
};

/// A condition on configurations in which every field is named.
struct ConfigConstraint {
  std::string text;  ///< "stages * 48 KiB of tiles fit 227 KiB of shared memory"
  std::function<bool(const Config&)> holds;
};

class ConfigSpace {
 public:
  /// Nothing but the kernel's own choice.
  ConfigSpace() = default;
  /// These and no others; an empty one, the kernel's own choice, is left out.
  static ConfigSpace listing(std::vector<Config> configs);

  ConfigSpace& add(ConfigField field);
  ConfigSpace& constrain(std::string text, std::function<bool(const Config&)> holds);

  bool is_listed() const { return listed_; }
  const std::vector<ConfigField>& fields() const { return fields_; }
  const std::vector<ConfigConstraint>& constraints() const { return constraints_; }
  /// Number of combinations, whether or not constraints hold.
  std::int64_t combinations() const;

  /// Every point: the combinations for which all constraints hold, the last field varying fastest; each in the form in
  /// which the kernel takes it, without fields that have their usual values. Without fields none.
  std::vector<Config> points() const;
  /// A point, each with the same probability; nothing where there is none.
  std::optional<Config> sample(std::mt19937_64& random) const;
  /// Whether a configuration is a point, or the kernel's own choice.
  bool contains(const Config& config) const { return !fault_of(config); }
  /// Why a configuration is none: "stages: expected 2 to 6, found 9", or the constraint that does not hold.
  std::optional<std::string> fault_of(const Config& config) const;

  /// Of a point: every field with its value.
  Config complete(const Config& config) const;
  /// The form in which the kernel takes a combination.
  Config canonical(const Config& complete) const;

 private:
  Config combination(std::int64_t index) const;
  bool is_valid(const Config& complete) const;

  bool listed_ = false;
  std::vector<Config> list_;
  std::vector<ConfigField> fields_;
  std::vector<ConfigConstraint> constraints_;
};

}  // namespace cermet

// A dimension that may be known only when a step runs: factor * symbol + offset.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cermet {

/// Names a quantity bound at run time, such as the token count "T". Id 0 is "no symbol".
using SymbolId = std::uint16_t;

/// Returns the id for a symbol's name, making it on first use. Thread-safe.
SymbolId symbol_id(std::string_view name);
/// Name of a symbol; "" for id 0.
std::string symbol_name(SymbolId id);

/// Values of symbols while a graph runs. At most `capacity` symbols exist in a process.
struct SymbolValues {
  static constexpr int capacity = 64;
  std::array<std::int64_t, capacity> value{};
  void set(SymbolId id, std::int64_t v) { value.at(id) = v; }
};

/// One dimension of a tensor type. A plain integer converts to a constant dimension.
class Dim {
 public:
  constexpr Dim(std::int64_t constant = 0) : offset_(constant) {}  // NOLINT(google-explicit-constructor): an integer is a dimension
  static Dim symbol(std::string_view name);

  bool is_constant() const { return symbol_ == 0; }
  /// The value of a constant dimension (asserts that it is one).
  std::int64_t constant() const;
  std::int64_t value(const SymbolValues& symbols) const { return symbol_ == 0 ? offset_ : factor_ * symbols.value[symbol_] + offset_; }
  SymbolId symbol() const { return symbol_; }
  std::int64_t factor() const { return factor_; }
  std::int64_t offset() const { return offset_; }

  friend bool operator==(const Dim&, const Dim&) = default;
  /// Sums and products that stay of the form factor * symbol + offset; anything else throws Error(unsupported).
  friend Dim operator+(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  /// Exact division by a positive constant; throws Error(invalid_argument) where it leaves a remainder.
  Dim divided_by(std::int64_t divisor) const;
  std::string to_string() const;  ///< "4096", "T", "8*T", "T+1"

 private:
  SymbolId symbol_ = 0;
  std::int64_t factor_ = 0, offset_ = 0;
};

using Dims = std::vector<Dim>;

std::string to_string(const Dims& dims);  ///< "[T, 4096]"
/// Product of dimensions; 1 for rank 0.
Dim product(const Dims& dims);

}  // namespace cermet

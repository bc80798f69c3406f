// A dimension that may be known only when a graph runs: an expression of symbols, such as "B*T" or "ceil(H/2)".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/symbol.hpp"

namespace cermet {

struct DimTerms;

/// One dimension of a tensor type: a polynomial over symbols and over floor, min and max of such polynomials, in a form
/// in which equal expressions are equal. A plain integer converts to a constant dimension, which takes no heap memory;
/// others share theirs with their copies. Arithmetic throws Error(invalid_argument) naming the dimension where a number
/// passes 2^63.
class Dim {
 public:
  constexpr Dim(std::int64_t constant = 0)
      : offset_(constant) {}  // NOLINT(google-explicit-constructor): an integer is a dimension
  explicit Dim(const Symbol& symbol);
  static Dim symbol(std::string_view name) { return Dim(Symbol(name)); }

  bool is_constant() const { return !terms_; }
  /// The value of a constant dimension (asserts that it is one).
  std::int64_t constant() const;
  /// Neither allocates nor locks; throws Error where the value passes 2^63.
  std::int64_t value(const SymbolValues& symbols) const { return terms_ ? evaluate(symbols) : offset_; }
  /// Between what it lies for symbols in these ranges: not always as close as possible, never too close.
  DimRange bounds(const SymbolRanges& ranges) const;
  /// Whether a larger value of any symbol never makes it smaller, so that the largest values give the largest
  /// dimension. May say no where it does.
  bool grows_with_symbols() const;
  std::vector<Symbol> symbols() const;  ///< each once, by name
  bool is(const Symbol& symbol) const;  ///< the symbol itself

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b) { return a + b * -1; }
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Exact division; throws Error(invalid_argument) where it leaves a remainder.
  Dim divided_by(const Dim& divisor) const;
  std::string to_string() const;  ///< "4096", "T", "8*T+1", "B*T", "ceil(H/2)", "floor((B+T)/3)", "min(T,8)"

 private:
  friend struct DimTerms;
  std::int64_t evaluate(const SymbolValues& symbols) const;
  std::int64_t offset_ = 0;
  std::shared_ptr<const DimTerms> terms_;  ///< what is added to offset_; null for a constant
};

/// a / b where it leaves no remainder for any value of the symbols; nothing for others.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
/// Rounded down, up. The divisor is positive; one that is not throws Error here, or where its value is known.
Dim floor_div(const Dim& a, const Dim& b);
inline Dim ceil_div(const Dim& a, const Dim& b) { return floor_div(a + b - 1, b); }
Dim dim_min(const Dim& a, const Dim& b);
Dim dim_max(const Dim& a, const Dim& b);

using Dims = std::vector<Dim>;

std::string to_string(const Dims& dims);  ///< "[T, 4096]"
/// Product of dimensions; 1 for rank 0.
Dim product(const Dims& dims);

}  // namespace cermet

#include "base/dim.hpp"

#include <mutex>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace cermet {
namespace {

struct SymbolTable {
  std::mutex mutex;
  std::vector<std::string> names{""};
};

SymbolTable& symbols() {
  static SymbolTable table;
  return table;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  const auto r = checked_mul(a, b);
  require(r.has_value(), "dimension {} * {}: expected a product below 2^63", a, b);
  return *r;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  const auto r = checked_add(a, b);
  require(r.has_value(), "dimension {} + {}: expected a sum below 2^63", a, b);
  return *r;
}

}  // namespace

SymbolId symbol_id(std::string_view name) {
  SymbolTable& table = symbols();
  const std::lock_guard lock(table.mutex);
  for (std::size_t i = 1; i < table.names.size(); ++i)
    if (table.names[i] == name) return static_cast<SymbolId>(i);
  require(table.names.size() < SymbolValues::capacity, "symbol '{}': expected at most {} symbols in a process", name, SymbolValues::capacity - 1);
  table.names.emplace_back(name);
  return static_cast<SymbolId>(table.names.size() - 1);
}

std::string symbol_name(SymbolId id) {
  SymbolTable& table = symbols();
  const std::lock_guard lock(table.mutex);
  return table.names.at(id);
}

Dim Dim::symbol(std::string_view name) {
  Dim d;
  d.symbol_ = symbol_id(name);
  d.factor_ = 1;
  return d;
}

std::int64_t Dim::constant() const {
  CERMET_ASSERT(is_constant());
  return offset_;
}

Dim operator+(Dim a, Dim b) {
  if (!a.is_constant() && !b.is_constant() && a.symbol_ != b.symbol_)
    fail(Status::unsupported, "dimension {} + {}: expected at most one symbol in a dimension", a.to_string(), b.to_string());
  Dim r = a.is_constant() ? b : a;
  r.factor_ = plus(a.factor_, b.factor_);
  r.offset_ = plus(a.offset_, b.offset_);
  if (r.factor_ == 0) r.symbol_ = 0;
  return r;
}

Dim operator*(Dim a, Dim b) {
  if (!a.is_constant() && !b.is_constant())
    fail(Status::unsupported, "dimension ({}) * ({}): expected at most one symbol in a dimension", a.to_string(), b.to_string());
  Dim r = a.is_constant() ? b : a;
  const std::int64_t scale = a.is_constant() ? a.offset_ : b.offset_;
  r.factor_ = times(r.factor_, scale);
  r.offset_ = times(r.offset_, scale);
  if (r.factor_ == 0) r.symbol_ = 0;
  return r;
}

Dim Dim::divided_by(std::int64_t divisor) const {
  require(divisor > 0 && factor_ % divisor == 0 && offset_ % divisor == 0, "dimension {}: expected a multiple of {}", to_string(), divisor);
  Dim r = *this;
  r.factor_ /= divisor;
  r.offset_ /= divisor;
  return r;
}

std::string Dim::to_string() const {
  if (is_constant()) return std::to_string(offset_);
  std::string text = factor_ == 1 ? symbol_name(symbol_) : fmt::format("{}*{}", factor_, symbol_name(symbol_));
  if (offset_ != 0) text += fmt::format("{:+}", offset_);
  return text;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + dims[i].to_string();
  return text + "]";
}

Dim product(const Dims& dims) {
  Dim r = 1;
  for (const Dim& d : dims) r = r * d;
  return r;
}

}  // namespace cermet

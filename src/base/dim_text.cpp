// Symbolic dimensions as text; op/type_text reads it.
#include "base/dim_terms.hpp"
#include "base/error.hpp"

namespace cermet {
namespace {

std::string product_text(const DimTerm& term) {
  std::string text;
  for (const DimAtomPtr& atom : term.atoms) text += fmt::format("{}{}", text.empty() ? "" : "*", atom->text);
  return text;
}

/// In parentheses where it is a sum or a negative number.
std::string part_text(const Dim& dim) {
  const std::vector<DimTerm> terms = DimTerms::of(dim);
  return terms.size() > 1 || (terms.size() == 1 && terms[0].factor < 0) ? fmt::format("({})", dim.to_string()) : dim.to_string();
}

}  // namespace

std::string text_of(DimAtom::Kind kind, const std::vector<Dim>& operands) {
  if (kind == DimAtom::Kind::floor) {
    const Dim &numerator = operands[0], &divisor = operands[1];
    // floor((n + d - 1) / d) is ceil(n / d).
    const bool up = divisor.is_constant() && DimTerms::offset(numerator) == divisor.constant() - 1;
    return fmt::format("{}({}/{})", up ? "ceil" : "floor", part_text(up ? numerator - DimTerms::offset(numerator) : numerator), part_text(divisor));
  }
  std::string text = kind == DimAtom::Kind::min ? "min(" : "max(";
  for (std::size_t i = 0; i < operands.size(); ++i) text += fmt::format("{}{}", i ? "," : "", operands[i].to_string());
  return text + ")";
}

std::string Dim::to_string() const {
  if (is_constant()) return std::to_string(offset_);
  std::string text;
  for (const DimTerm& term : terms_->list) {
    const bool minus = term.factor < 0 && !text.empty();
    if (!text.empty()) text += minus ? "-" : "+";
    if (term.factor != 1 && !(minus && term.factor == -1)) text += fmt::format("{}*", minus ? -term.factor : term.factor);
    text += product_text(term);
  }
  if (offset_ != 0) text += fmt::format("{:+}", offset_);
  return text;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + dims[i].to_string();
  return text + "]";
}

}  // namespace cermet

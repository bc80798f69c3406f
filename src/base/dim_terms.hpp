// What a symbolic dimension consists of. For base/dim*.cpp alone.
#pragma once

#include "base/dim.hpp"

namespace cermet {

/// A symbol, or a function of dimensions that is no polynomial.
struct DimAtom {
  enum class Kind : std::uint8_t { symbol, floor, min, max } kind;
  Symbol symbol;
  std::vector<Dim> operands;  ///< floor: what is divided and the divisor; min, max: two or more, by text
  std::string text;           ///< of equal atoms, and only of them, the same
};
using DimAtomPtr = std::shared_ptr<const DimAtom>;

/// factor * product of atoms, which are sorted by text; without atoms a constant.
struct DimTerm {
  std::int64_t factor = 0;
  std::vector<DimAtomPtr> atoms;
};

/// Terms with atoms, each product once and none with factor 0: products of more atoms first, then by the atoms' texts,
/// so that a term's successor stays behind it when both are multiplied (a monomial order, which exact division needs).
struct DimTerms {
  std::vector<DimTerm> list;

  static Dim sum(std::vector<DimTerm> terms);      ///< the dimension that terms in any order and number add up to
  static std::vector<DimTerm> of(const Dim& dim);  ///< all terms, the constant last
  static const std::vector<DimTerm>* with_atoms(const Dim& dim) { return dim.terms_ ? &dim.terms_->list : nullptr; }
  static std::int64_t offset(const Dim& dim) { return dim.offset_; }
  static Dim atom(DimAtom::Kind kind, std::vector<Dim> operands);
};

bool same_atoms(const std::vector<DimAtomPtr>& a, const std::vector<DimAtomPtr>& b);
std::string text_of(DimAtom::Kind kind, const std::vector<Dim>& operands);
/// a / b rounded down, for a positive b.
inline std::int64_t floored(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
/// The product, the sum; throws Error naming `dim` on overflow.
std::int64_t checked_product(std::int64_t a, std::int64_t b, const Dim& dim);
std::int64_t checked_sum(std::int64_t a, std::int64_t b, const Dim& dim);

}  // namespace cermet

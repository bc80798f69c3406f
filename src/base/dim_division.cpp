// Quotients of symbolic dimensions, in their canonical forms.
#include <numeric>

#include "base/dim_terms.hpp"
#include "base/error.hpp"

namespace cermet {
namespace {

/// The product that `part` must be multiplied with to give `whole`; nothing where no product does.
std::optional<DimTerm> quotient(const DimTerm& whole, const DimTerm& part) {
  if (part.factor == 0 || whole.factor % part.factor != 0) return {};
  DimTerm rest{whole.factor / part.factor, {}};
  std::size_t taken = 0;
  for (const DimAtomPtr& atom : whole.atoms) {
    if (taken < part.atoms.size() && part.atoms[taken]->text == atom->text) ++taken;
    else rest.atoms.push_back(atom);
  }
  return taken == part.atoms.size() ? std::optional(rest) : std::nullopt;
}

/// A dimension that is an atom plus a constant, where the atom is a quotient by a constant; null for others.
const DimAtom* quotient_atom(const Dim& dim) {
  const std::vector<DimTerm>* terms = DimTerms::with_atoms(dim);
  if (!terms || terms->size() != 1 || (*terms)[0].factor != 1 || (*terms)[0].atoms.size() != 1) return nullptr;
  const DimAtom& atom = *(*terms)[0].atoms[0];
  return atom.kind == DimAtom::Kind::floor && atom.operands[1].is_constant() ? &atom : nullptr;
}

/// floor(a / b) as a whole part and a quotient of numbers in [0, b), without a common divisor and not of another quotient.
Dim floor_by_constant(const Dim& a, std::int64_t b) {
  std::vector<DimTerm> whole, rest;
  for (const DimTerm& term : DimTerms::of(a)) {
    const std::int64_t factor = floored(term.factor, b);
    whole.push_back({factor, term.atoms});
    rest.push_back({term.factor - factor * b, term.atoms});
  }
  const Dim outside = DimTerms::sum(whole), inside = DimTerms::sum(rest);
  const std::vector<DimTerm>* terms = DimTerms::with_atoms(inside);
  if (!terms) return outside + floored(DimTerms::offset(inside), b);
  std::int64_t divisor = b;
  for (const DimTerm& term : *terms) divisor = std::gcd(divisor, term.factor);
  std::vector<DimTerm> reduced = *terms;
  for (DimTerm& term : reduced) term.factor /= divisor;
  reduced.push_back({floored(DimTerms::offset(inside), divisor), {}});
  const Dim numerator = DimTerms::sum(reduced);
  b /= divisor;
  if (const DimAtom* inner = quotient_atom(numerator)) {  // floor((floor(n / m) + k) / b) = floor((n + k * m) / (m * b))
    const Dim m = inner->operands[1];
    return outside + floor_div(inner->operands[0] + m * DimTerms::offset(numerator), m * b);
  }
  return outside + DimTerms::atom(DimAtom::Kind::floor, {numerator, b});
}

}  // namespace

/// Long division of polynomials: the first term of what is left must be a multiple of the divisor's first.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  const std::vector<DimTerm> divisor = DimTerms::of(b);
  if (divisor.empty()) return {};
  Dim rest = a, result = 0;
  while (!(rest == Dim(0))) {
    const auto term = quotient(DimTerms::of(rest).front(), divisor.front());
    if (!term) return {};
    const Dim part = DimTerms::sum({*term});
    result = result + part;
    rest = rest - part * b;
  }
  return result;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_constant() && b.constant() <= 0) fail(Status::invalid_argument, "dimension ({}) / ({}): expected a positive divisor", a.to_string(), b.to_string());
  if (const auto exact = exact_quotient(a, b)) return *exact;
  if (b.is_constant()) return floor_by_constant(a, b.constant());
  return DimTerms::atom(DimAtom::Kind::floor, {a, b});
}

Dim Dim::divided_by(const Dim& divisor) const {
  const bool positive = !divisor.is_constant() || divisor.constant() > 0;
  auto result = positive ? exact_quotient(*this, divisor) : std::nullopt;
  if (!result) fail(Status::invalid_argument, "dimension {}: expected a multiple of {}", to_string(), divisor.to_string());
  return *std::move(result);
}

}  // namespace cermet

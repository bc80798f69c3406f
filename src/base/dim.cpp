#include "base/dim.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/dim_terms.hpp"
#include "base/error.hpp"

namespace cermet {
namespace {

/// Expressions longer than this are mistakes: a shape of that many sums is not one that anybody wrote.
constexpr std::size_t most_terms = 256;

bool precedes(const DimTerm& a, const DimTerm& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
  return std::ranges::lexicographical_compare(a.atoms, b.atoms, {}, &DimAtom::text, &DimAtom::text);
}

}  // namespace

std::int64_t checked_product(std::int64_t a, std::int64_t b, const Dim& dim) {
  const auto r = checked_mul(a, b);
  if (!r) fail(Status::invalid_argument, "dimension {}: {} * {}: expected a product below 2^63", dim.to_string(), a, b);
  return *r;
}

std::int64_t checked_sum(std::int64_t a, std::int64_t b, const Dim& dim) {
  const auto r = checked_add(a, b);
  if (!r) fail(Status::invalid_argument, "dimension {}: {} + {}: expected a sum below 2^63", dim.to_string(), a, b);
  return *r;
}

bool same_atoms(const std::vector<DimAtomPtr>& a, const std::vector<DimAtomPtr>& b) {
  return std::ranges::equal(a, b, [](const DimAtomPtr& x, const DimAtomPtr& y) { return x == y || x->text == y->text; });
}

Dim DimTerms::sum(std::vector<DimTerm> terms) {
  std::ranges::sort(terms, precedes);
  std::vector<DimTerm> list;
  for (DimTerm& term : terms) {
    if (!list.empty() && same_atoms(list.back().atoms, term.atoms)) {
      const auto factor = checked_add(list.back().factor, term.factor);
      if (!factor) fail(Status::invalid_argument, "dimension {}: expected a factor below 2^63", sum({{1, term.atoms}}).to_string());
      list.back().factor = *factor;
    } else {
      list.push_back(std::move(term));
    }
    if (list.back().factor == 0) list.pop_back();
  }
  Dim dim;
  if (!list.empty() && list.back().atoms.empty()) {
    dim.offset_ = list.back().factor;
    list.pop_back();
  }
  require(list.size() <= most_terms, "dimension {}+..: expected at most {} terms, found {}", list.empty() ? "" : list[0].atoms[0]->text, most_terms,
          list.size());
  if (!list.empty()) dim.terms_ = std::make_shared<const DimTerms>(DimTerms{std::move(list)});
  return dim;
}

std::vector<DimTerm> DimTerms::of(const Dim& dim) {
  std::vector<DimTerm> terms;
  if (dim.terms_) terms = dim.terms_->list;
  if (dim.offset_ != 0) terms.push_back({dim.offset_, {}});
  return terms;
}

Dim DimTerms::atom(DimAtom::Kind kind, std::vector<Dim> operands) {
  std::string text = text_of(kind, operands);
  return sum({{1, {std::make_shared<const DimAtom>(DimAtom{kind, {}, std::move(operands), std::move(text)})}}});
}

Dim::Dim(const Symbol& symbol)
    : terms_(std::make_shared<const DimTerms>(DimTerms{{{1, {std::make_shared<const DimAtom>(DimAtom{DimAtom::Kind::symbol, symbol, {}, symbol.name()})}}}})) {}

std::int64_t Dim::constant() const {
  CERMET_ASSERT(is_constant());
  return offset_;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.offset_ != b.offset_) return false;
  if (a.terms_ == b.terms_) return true;
  if (!a.terms_ || !b.terms_) return false;
  return std::ranges::equal(a.terms_->list, b.terms_->list,
                            [](const DimTerm& x, const DimTerm& y) { return x.factor == y.factor && same_atoms(x.atoms, y.atoms); });
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() || b.is_constant()) {
    Dim r = a.is_constant() ? b : a;
    r.offset_ = checked_sum(a.offset_, b.offset_, a.is_constant() ? b : a);
    return r;
  }
  std::vector<DimTerm> terms = DimTerms::of(a);
  for (DimTerm& term : DimTerms::of(b)) terms.push_back(std::move(term));
  return DimTerms::sum(std::move(terms));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_product(a.offset_, b.offset_, a);
  std::vector<DimTerm> terms;
  const std::vector<DimTerm> right = DimTerms::of(b);
  for (const DimTerm& x : DimTerms::of(a)) {
    for (const DimTerm& y : right) {
      DimTerm term{checked_product(x.factor, y.factor, a), x.atoms};
      term.atoms.insert(term.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::ranges::sort(term.atoms, {}, &DimAtom::text);
      terms.push_back(std::move(term));
    }
  }
  return DimTerms::sum(std::move(terms));
}

Dim product(const Dims& dims) {
  Dim r = 1;
  for (const Dim& d : dims) r = r * d;
  return r;
}

}  // namespace cermet

// What a symbolic dimension is, and may be, for values and ranges of its symbols.
#include <algorithm>

#include "base/checked.hpp"
#include "base/dim_terms.hpp"
#include "base/error.hpp"

namespace cermet {
namespace {

std::int64_t value_of(const DimAtom& atom, const SymbolValues& symbols) {
  if (atom.kind == DimAtom::Kind::symbol) return symbols[atom.symbol];
  std::int64_t value = atom.operands[0].value(symbols);
  if (atom.kind == DimAtom::Kind::floor) {
    const std::int64_t divisor = atom.operands[1].value(symbols);
    if (divisor <= 0) fail(Status::invalid_argument, "dimension {}: expected a positive divisor, found {}", atom.text, divisor);
    return floored(value, divisor);
  }
  for (std::size_t i = 1; i < atom.operands.size(); ++i) {
    const std::int64_t other = atom.operands[i].value(symbols);
    value = atom.kind == DimAtom::Kind::min ? std::min(value, other) : std::max(value, other);
  }
  return value;
}

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(), highest = std::numeric_limits<std::int64_t>::max();

std::int64_t clamped(__int128 value) { return value < lowest ? lowest : value > highest ? highest : static_cast<std::int64_t>(value); }

/// The end of a range stands for everything beyond it, too.
DimRange times(DimRange a, DimRange b) {
  const auto all = {clamped(static_cast<__int128>(a.least) * b.least), clamped(static_cast<__int128>(a.least) * b.greatest),
                    clamped(static_cast<__int128>(a.greatest) * b.least), clamped(static_cast<__int128>(a.greatest) * b.greatest)};
  return {std::min(all), std::max(all)};
}

DimRange bounds_of(const DimAtom& atom, const SymbolRanges& ranges) {
  if (atom.kind == DimAtom::Kind::symbol) return range_of(ranges, atom.symbol);
  DimRange r = atom.operands[0].bounds(ranges);
  if (atom.kind == DimAtom::Kind::floor) {
    DimRange by = atom.operands[1].bounds(ranges);
    by = {std::max<std::int64_t>(by.least, 1), std::max<std::int64_t>(by.greatest, 1)};
    const std::int64_t least = floored(r.least, r.least < 0 ? by.least : by.greatest);
    const std::int64_t greatest = r.greatest == highest ? highest : floored(r.greatest, r.greatest < 0 ? by.greatest : by.least);
    return {r.least == lowest ? lowest : least, greatest};
  }
  for (std::size_t i = 1; i < atom.operands.size(); ++i) {
    const DimRange other = atom.operands[i].bounds(ranges);
    if (atom.kind == DimAtom::Kind::min) r = {std::min(r.least, other.least), std::min(r.greatest, other.greatest)};
    else r = {std::max(r.least, other.least), std::max(r.greatest, other.greatest)};
  }
  return r;
}

bool grows(const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::symbol) return true;
  if (atom.kind == DimAtom::Kind::floor) return atom.operands[1].is_constant() && atom.operands[0].grows_with_symbols();
  return std::ranges::all_of(atom.operands, &Dim::grows_with_symbols);
}

void collect(const Dim& dim, std::vector<Symbol>& symbols) {
  const std::vector<DimTerm>* terms = DimTerms::with_atoms(dim);
  if (!terms) return;
  for (const DimTerm& term : *terms)
    for (const DimAtomPtr& atom : term.atoms) {
      if (atom->kind == DimAtom::Kind::symbol) symbols.push_back(atom->symbol);
      for (const Dim& operand : atom->operands) collect(operand, symbols);
    }
}

}  // namespace

std::int64_t Dim::evaluate(const SymbolValues& symbols) const {
  std::int64_t sum = offset_;
  for (const DimTerm& term : terms_->list) {
    std::int64_t value = term.factor;
    for (const DimAtomPtr& atom : term.atoms) value = checked_product(value, value_of(*atom, symbols), *this);
    sum = checked_sum(sum, value, *this);
  }
  return sum;
}

DimRange Dim::bounds(const SymbolRanges& ranges) const {
  DimRange sum{offset_, offset_};
  if (!terms_) return sum;
  for (const DimTerm& term : terms_->list) {
    DimRange value{term.factor, term.factor};
    for (const DimAtomPtr& atom : term.atoms) value = times(value, bounds_of(*atom, ranges));
    sum.least = sum.least == lowest || value.least == lowest ? lowest : clamped(static_cast<__int128>(sum.least) + value.least);
    sum.greatest = sum.greatest == highest || value.greatest == highest ? highest : clamped(static_cast<__int128>(sum.greatest) + value.greatest);
  }
  return sum;
}

/// Products grow where none of their parts falls below 0. Symbols do not; of sums and quotients, those without a negative number do not either.
bool Dim::grows_with_symbols() const {
  if (!terms_) return true;
  return std::ranges::all_of(terms_->list, [](const DimTerm& term) {
    if (term.factor < 0) return false;
    const auto part = [&](const DimAtomPtr& atom) { return grows(*atom) && (term.atoms.size() == 1 || bounds_of(*atom, {}).least >= 0); };
    return std::ranges::all_of(term.atoms, part);
  });
}

std::vector<Symbol> Dim::symbols() const {
  std::vector<Symbol> list;
  collect(*this, list);
  std::ranges::sort(list, [](const Symbol& a, const Symbol& b) { return a < b; });
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

bool Dim::is(const Symbol& symbol) const {
  return terms_ && offset_ == 0 && terms_->list.size() == 1 && terms_->list[0].factor == 1 && terms_->list[0].atoms.size() == 1 &&
         terms_->list[0].atoms[0]->symbol == symbol && terms_->list[0].atoms[0]->kind == DimAtom::Kind::symbol;
}

}  // namespace cermet

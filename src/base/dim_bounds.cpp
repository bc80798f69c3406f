// What a symbolic dimension may be for ranges of its symbols.
#include <algorithm>
#include <limits>

#include "base/dim_terms.hpp"

namespace cermet {
namespace {

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

}  // namespace

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

}  // namespace cermet

// What a symbolic dimension is for values of its symbols, and which it has.
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

// Least and greatest of symbolic dimensions, in their canonical forms.
#include <algorithm>

#include "base/dim_terms.hpp"

namespace cermet {
namespace {

/// min or max: operands of operands become its own, and one that another always beats by a constant goes.
Dim extremum(DimAtom::Kind kind, const Dim& a, const Dim& b) {
  std::vector<Dim> list;
  const auto add = [&](const Dim& dim) {
    for (Dim& other : list) {
      const Dim difference = dim - other;
      if (!difference.is_constant()) continue;
      if ((difference.constant() < 0) == (kind == DimAtom::Kind::min)) other = dim;
      return;
    }
    list.push_back(dim);
  };
  for (const Dim& dim : {a, b}) {
    const std::vector<DimTerm>* terms = DimTerms::with_atoms(dim);
    const bool alone = terms && DimTerms::offset(dim) == 0 && terms->size() == 1 && (*terms)[0].factor == 1 && (*terms)[0].atoms.size() == 1;
    if (alone && (*terms)[0].atoms[0]->kind == kind) std::ranges::for_each((*terms)[0].atoms[0]->operands, add);
    else add(dim);
  }
  if (list.size() == 1) return list[0];
  std::ranges::sort(list, {}, &Dim::to_string);
  return DimTerms::atom(kind, std::move(list));
}

}  // namespace

Dim dim_min(const Dim& a, const Dim& b) { return extremum(DimAtom::Kind::min, a, b); }
Dim dim_max(const Dim& a, const Dim& b) { return extremum(DimAtom::Kind::max, a, b); }

}  // namespace cermet

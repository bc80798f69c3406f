#include "base/dim.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

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
  return std::ranges::equal(a, b,
                            [](const DimAtomPtr& x, const DimAtomPtr& y) { return x == y || x->text == y->text; });
}

Dim DimTerms::sum(std::vector<DimTerm> terms) {
  std::ranges::sort(terms, precedes);
  std::vector<DimTerm> list;
  for (DimTerm& term : terms) {
    if (!list.empty() && same_atoms(list.back().atoms, term.atoms)) {
      const auto factor = checked_add(list.back().factor, term.factor);
      if (!factor)
        fail(Status::invalid_argument, "dimension {}: expected a factor below 2^63",
             sum({{1, term.atoms}}).to_string());
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
  require(list.size() <= most_terms, "dimension {}+..: expected at most {} terms, found {}",
          list.empty() ? "" : list[0].atoms[0]->text, most_terms, list.size());
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
    : terms_(std::make_shared<const DimTerms>(DimTerms{
          {{1, {std::make_shared<const DimAtom>(DimAtom{DimAtom::Kind::symbol, symbol, {}, symbol.name()})}}}})) {}

std::int64_t Dim::constant() const {
  CERMET_ASSERT(is_constant());
  return offset_;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.offset_ != b.offset_) return false;
  if (a.terms_ == b.terms_) return true;
  if (!a.terms_ || !b.terms_) return false;
  return std::ranges::equal(a.terms_->list, b.terms_->list, [](const DimTerm& x, const DimTerm& y) {
    return x.factor == y.factor && same_atoms(x.atoms, y.atoms);
  });
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

// ---- What a symbolic dimension is for values of its symbols, and which it has ----

namespace {

std::int64_t value_of(const DimAtom& atom, const SymbolValues& symbols) {
  if (atom.kind == DimAtom::Kind::symbol) return symbols[atom.symbol];
  std::int64_t value = atom.operands[0].value(symbols);
  if (atom.kind == DimAtom::Kind::floor) {
    const std::int64_t divisor = atom.operands[1].value(symbols);
    if (divisor <= 0)
      fail(Status::invalid_argument, "dimension {}: expected a positive divisor, found {}", atom.text, divisor);
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
  return terms_ && offset_ == 0 && terms_->list.size() == 1 && terms_->list[0].factor == 1 &&
         terms_->list[0].atoms.size() == 1 && terms_->list[0].atoms[0]->symbol == symbol &&
         terms_->list[0].atoms[0]->kind == DimAtom::Kind::symbol;
}

// ---- What a symbolic dimension may be for ranges of its symbols ----

namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                       highest = std::numeric_limits<std::int64_t>::max();

std::int64_t clamped(__int128 value) {
  return value < lowest ? lowest : value > highest ? highest : static_cast<std::int64_t>(value);
}

/// The end of a range stands for everything beyond it, too.
DimRange times(DimRange a, DimRange b) {
  const auto all = {
      clamped(static_cast<__int128>(a.least) * b.least), clamped(static_cast<__int128>(a.least) * b.greatest),
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
    const std::int64_t greatest =
        r.greatest == highest ? highest : floored(r.greatest, r.greatest < 0 ? by.greatest : by.least);
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
    sum.least =
        sum.least == lowest || value.least == lowest ? lowest : clamped(static_cast<__int128>(sum.least) + value.least);
    sum.greatest = sum.greatest == highest || value.greatest == highest
                       ? highest
                       : clamped(static_cast<__int128>(sum.greatest) + value.greatest);
  }
  return sum;
}

/// Products grow where none of their parts falls below 0. Symbols do not; of sums and quotients, those without a
/// negative number do not either.
bool Dim::grows_with_symbols() const {
  if (!terms_) return true;
  return std::ranges::all_of(terms_->list, [](const DimTerm& term) {
    if (term.factor < 0) return false;
    const auto part = [&](const DimAtomPtr& atom) {
      return grows(*atom) && (term.atoms.size() == 1 || bounds_of(*atom, {}).least >= 0);
    };
    return std::ranges::all_of(term.atoms, part);
  });
}

// ---- Quotients of symbolic dimensions, in their canonical forms ----

namespace {

/// The product that `part` must be multiplied with to give `whole`; nothing where no product does.
std::optional<DimTerm> quotient(const DimTerm& whole, const DimTerm& part) {
  if (part.factor == 0 || whole.factor % part.factor != 0) return {};
  DimTerm remainder{whole.factor / part.factor, {}};
  std::size_t taken = 0;
  for (const DimAtomPtr& atom : whole.atoms) {
    if (taken < part.atoms.size() && part.atoms[taken]->text == atom->text) ++taken;
    else remainder.atoms.push_back(atom);
  }
  return taken == part.atoms.size() ? std::optional(remainder) : std::nullopt;
}

/// A dimension that is an atom plus a constant, where the atom is a quotient by a constant; null for others.
const DimAtom* quotient_atom(const Dim& dim) {
  const std::vector<DimTerm>* terms = DimTerms::with_atoms(dim);
  if (!terms || terms->size() != 1 || (*terms)[0].factor != 1 || (*terms)[0].atoms.size() != 1) return nullptr;
  const DimAtom& atom = *(*terms)[0].atoms[0];
  return atom.kind == DimAtom::Kind::floor && atom.operands[1].is_constant() ? &atom : nullptr;
}

/// floor(a / b) as a whole part and a quotient of numbers in [0, b), without a common divisor and not of another
/// quotient.
Dim floor_by_constant(const Dim& a, std::int64_t b) {
  std::vector<DimTerm> whole, remainder;
  for (const DimTerm& term : DimTerms::of(a)) {
    const std::int64_t factor = floored(term.factor, b);
    whole.push_back({factor, term.atoms});
    remainder.push_back({term.factor - factor * b, term.atoms});
  }
  const Dim outside = DimTerms::sum(whole), inside = DimTerms::sum(remainder);
  const std::vector<DimTerm>* terms = DimTerms::with_atoms(inside);
  if (!terms) return outside + floored(DimTerms::offset(inside), b);
  std::int64_t divisor = b;
  for (const DimTerm& term : *terms) divisor = std::gcd(divisor, term.factor);
  std::vector<DimTerm> reduced = *terms;
  for (DimTerm& term : reduced) term.factor /= divisor;
  reduced.push_back({floored(DimTerms::offset(inside), divisor), {}});
  const Dim numerator = DimTerms::sum(reduced);
  b /= divisor;
  if (const DimAtom* inner =
          quotient_atom(numerator)) {  // floor((floor(n / m) + k) / b) = floor((n + k * m) / (m * b))
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
  Dim remainder = a, result = 0;
  while (!(remainder == Dim(0))) {
    const auto term = quotient(DimTerms::of(remainder).front(), divisor.front());
    if (!term) return {};
    const Dim part = DimTerms::sum({*term});
    result = result + part;
    remainder = remainder - part * b;
  }
  return result;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_constant() && b.constant() <= 0)
    fail(Status::invalid_argument, "dimension ({}) / ({}): expected a positive divisor", a.to_string(), b.to_string());
  if (const auto exact = exact_quotient(a, b)) return *exact;
  if (b.is_constant()) return floor_by_constant(a, b.constant());
  return DimTerms::atom(DimAtom::Kind::floor, {a, b});
}

Dim Dim::divided_by(const Dim& divisor) const {
  const bool positive = !divisor.is_constant() || divisor.constant() > 0;
  auto result = positive ? exact_quotient(*this, divisor) : std::nullopt;
  if (!result)
    fail(Status::invalid_argument, "dimension {}: expected a multiple of {}", to_string(), divisor.to_string());
  return *std::move(result);
}

// ---- Least and greatest of symbolic dimensions, in their canonical forms ----

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
    const bool alone = terms && DimTerms::offset(dim) == 0 && terms->size() == 1 && (*terms)[0].factor == 1 &&
                       (*terms)[0].atoms.size() == 1;
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

// ---- Symbolic dimensions as text; op/type_text reads it ----

namespace {

std::string product_text(const DimTerm& term) {
  std::string text;
  for (const DimAtomPtr& atom : term.atoms) text += fmt::format("{}{}", text.empty() ? "" : "*", atom->text);
  return text;
}

/// In parentheses where it is a sum or a negative number.
std::string part_text(const Dim& dim) {
  const std::vector<DimTerm> terms = DimTerms::of(dim);
  return terms.size() > 1 || (terms.size() == 1 && terms[0].factor < 0) ? fmt::format("({})", dim.to_string())
                                                                        : dim.to_string();
}

}  // namespace

std::string text_of(DimAtom::Kind kind, const std::vector<Dim>& operands) {
  if (kind == DimAtom::Kind::floor) {
    const Dim &numerator = operands[0], &divisor = operands[1];
    // floor((n + d - 1) / d) is ceil(n / d).
    const bool up = divisor.is_constant() && DimTerms::offset(numerator) == divisor.constant() - 1;
    return fmt::format("{}({}/{})", up ? "ceil" : "floor",
                       part_text(up ? numerator - DimTerms::offset(numerator) : numerator), part_text(divisor));
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
    if (term.factor != 1 && !(minus && term.factor == -1))
      text += fmt::format("{}*", minus ? -term.factor : term.factor);
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

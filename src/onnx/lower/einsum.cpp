// Einstein summation: diagonals, sums, and products of two operands after another.
#include <algorithm>
#include <map>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

using Labels =
    std::vector<int>;  ///< letters; axes of the ellipsis are 1000, 1001, .., of which the last is the last axis

struct Term {
  Operand x;
  Labels labels;
};

bool holds(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

class Equation {
 public:
  Equation(Lowering& l, std::string text) : l_(l) {
    std::erase(text, ' ');
    const std::size_t arrow = text.find("->");
    std::vector<std::string> parts;
    const std::string left = text.substr(0, arrow);
    for (std::size_t at = 0; at <= left.size();) {
      const std::size_t comma = std::min(left.find(',', at), left.size());
      parts.push_back(left.substr(at, comma - at));
      at = comma + 1;
    }
    l.expect(parts.size() == l.inputs(), "attribute equation: expected {} terms, found '{}'", l.inputs(), text);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t letters = std::ranges::count_if(parts[i], [](char c) { return c != '.'; });
      if (parts[i].find('.') != std::string::npos)
        ellipsis_ = std::max(ellipsis_, l.rank(l.in(i)) - static_cast<int>(letters));
    }
    for (std::size_t i = 0; i < parts.size(); ++i) terms.push_back({l.in(i), labels_of(parts[i], l.rank(l.in(i)))});
    if (arrow != std::string::npos) {
      result = labels_of(text.substr(arrow + 2), -1);
      return;
    }
    for (int a = 0; a < ellipsis_; ++a) result.push_back(first_axis + a);
    std::map<int, int> counts;
    for (const Term& term : terms)
      for (const int label : term.labels) ++counts[label];
    for (const auto& [label, count] : counts)
      if (label < first_axis && count == 1) result.push_back(label);
  }

  std::vector<Term> terms;
  Labels result;

 private:
  static constexpr int first_axis = 1000;

  /// `rank` of the operand; -1: the result's, which has all axes of the ellipsis.
  Labels labels_of(const std::string& part, int rank) const {
    Labels labels;
    const std::size_t dots = part.find("...");
    const int letters = static_cast<int>(part.size()) - (dots == std::string::npos ? 0 : 3);
    const int own = dots == std::string::npos ? 0 : rank < 0 ? ellipsis_ : rank - letters;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (i == dots) {
        for (int a = 0; a < own; ++a) labels.push_back(first_axis + ellipsis_ - own + a);
        i += 2;
        continue;
      }
      const bool letter = (part[i] >= 'a' && part[i] <= 'z') || (part[i] >= 'A' && part[i] <= 'Z');
      l_.expect(letter, "attribute equation: expected letters and '...', found '{}'", part);
      labels.push_back(part[i]);
    }
    l_.expect(own >= 0 && (rank < 0 || static_cast<int>(labels.size()) == rank),
              "attribute equation: expected a term of {} axes, found '{}'", rank, part);
    return labels;
  }

  Lowering& l_;
  int ellipsis_ = 0;
};

/// Axes of equal labels as one, their diagonal.
void take_diagonals(Lowering& l, Term& term) {
  for (std::size_t first = 0; first < term.labels.size(); ++first)
    for (std::size_t second = first + 1; second < term.labels.size();) {
      if (term.labels[first] != term.labels[second]) {
        ++second;
        continue;
      }
      const int last = l.rank(term.x) - 1;
      Operand x = l.move_axis(l.move_axis(term.x, static_cast<int>(second), last), static_cast<int>(first), last - 1);
      const std::int64_t size = l.size(x, last);
      l.expect(size == l.size(x, last - 1), "equal letters: expected equal sizes, found {}",
               l.type(term.x).to_string());
      Dims flat(l.dims(x).begin(), l.dims(x).end() - 2);
      flat.push_back(size * size);
      x = l.slice(l.reshape(x, flat), last - 1, 0, size * size, size + 1);
      term.x = l.move_axis(x, last - 1, static_cast<int>(first));
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(second));
    }
}

void sum_out(Lowering& l, Term& term, const Labels& kept) {
  Ints axes;
  Labels left;
  for (std::size_t a = 0; a < term.labels.size(); ++a) {
    if (holds(kept, term.labels[a])) left.push_back(term.labels[a]);
    else axes.push_back(static_cast<std::int64_t>(a));
  }
  if (axes.empty()) return;
  term.x = l.reduce(OpKind::reduce_sum, term.x, axes, false);
  term.labels = std::move(left);
}

/// The operand with these axes in this order; size 1 where it has none.
Operand aligned(Lowering& l, const Term& term, const Labels& labels) {
  Ints permutation, added;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto at = std::ranges::find(term.labels, labels[i]);
    if (at == term.labels.end()) added.push_back(static_cast<std::int64_t>(i));
    else permutation.push_back(at - term.labels.begin());
  }
  return l.unsqueeze(l.transpose(term.x, permutation), added);
}

Dim product_of(Lowering& l, const Term& term, const Labels& labels) {
  Dim size = 1;
  for (std::size_t a = 0; a < term.labels.size(); ++a)
    if (holds(labels, term.labels[a])) size = size * l.dim(term.x, static_cast<int>(a));
  return size;
}

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Term contracted(Lowering& l, const Term& a, const Term& b, const Labels& kept) {
  Labels shared, summed, left, right;
  for (const int label : a.labels)
    (!holds(b.labels, label) ? left : holds(kept, label) ? shared : summed).push_back(label);
  for (const int label : b.labels)
    if (!holds(a.labels, label)) right.push_back(label);
  if (summed.empty() || !dtypes::real.contains(l.dtype(a.x))) {
    Term y{{}, joined(joined(shared, left), joined(right, summed))};
    y.x = l.binary(OpKind::mul, aligned(l, a, y.labels), aligned(l, b, y.labels));
    sum_out(l, y, kept);
    return y;
  }
  // As stacks of matrices: [shared.., left, summed] times [shared.., summed, right].
  const auto matrices = [&](const Term& term, const Labels& rows, const Labels& columns) {
    const Operand x = aligned(l, term, joined(joined(shared, rows), columns));
    Dims dims(l.dims(x).begin(), l.dims(x).begin() + static_cast<std::ptrdiff_t>(shared.size()));
    dims.push_back(product_of(l, term, rows));
    dims.push_back(product_of(l, term, columns));
    return l.reshape(x, dims);
  };
  Term y{l.op(OpKind::matmul, {matrices(a, left, summed), matrices(b, summed, right)}),
         joined(joined(shared, left), right)};
  Dims dims(l.dims(y.x).begin(), l.dims(y.x).end() - 2);
  for (const auto& [term, labels] : {std::pair(&a, &left), std::pair(&b, &right)})
    for (const int label : *labels) dims.push_back(product_of(l, *term, {label}));
  y.x = l.reshape(y.x, dims);
  return y;
}

}  // namespace

void lower_einsum(Lowering& l) {
  Equation e(l, l.text("equation", ""));
  for (Term& term : e.terms) take_diagonals(l, term);
  Term y = e.terms.at(0);
  for (std::size_t i = 0; i < e.terms.size(); ++i) {
    Labels kept = e.result;  // what is read from here on
    for (std::size_t later = i + 1; later < e.terms.size(); ++later) kept = joined(kept, e.terms[later].labels);
    if (i == 0) {
      sum_out(l, y, kept);
      continue;
    }
    sum_out(l, e.terms[i], joined(kept, y.labels));
    y = contracted(l, y, e.terms[i], kept);
  }
  for (const int label : e.result)
    l.expect(holds(y.labels, label), "attribute equation: expected a result of letters of the terms");
  l.set(0, aligned(l, y, e.result));
}

}  // namespace cermet::onnx

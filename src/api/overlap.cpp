#include "api/overlap.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/checked.hpp"

namespace cermet::api {
namespace {

/// `step` times a whole number from 0 to `most`.
struct Term {
  std::int64_t step = 0, most = 0;
};

/// Sums of terms. Whether one is a given number is a search over the terms from the largest step to the smallest, cut
/// where the rest cannot reach the number or does not divide it: a few steps where strides nest, as they do in views of
/// arrays. (A bounded linear Diophantine equation, as in NumPy's shares_memory.)
class TermSum {
 public:
  void add(std::int64_t step, std::int64_t most) {
    if (step == 0 || most == 0) return;
    for (Term& term : std::span(terms_).first(count_))
      if (term.step == step) {
        term.most += most;
        return;
      }
    terms_[count_++] = {step, most};
  }

  /// Whether the terms add up to the number, which at most `budget` steps of the search find out; true where they do
  /// not.
  bool reaches(std::int64_t number, int budget = 100000) {
    std::sort(terms_.begin(), terms_.begin() + count_, [](const Term& a, const Term& b) { return a.step > b.step; });
    suffix_ = {};
    divisor_ = {};
    for (std::size_t k = count_; k-- > 0;) {
      const auto own = checked_mul(terms_[k].step, terms_[k].most);
      const auto sum = own ? checked_add(*own, suffix_[k + 1]) : std::nullopt;
      if (!sum) return true;
      suffix_[k] = *sum;
      divisor_[k] = std::gcd(terms_[k].step, divisor_[k + 1]);
    }
    budget_ = budget;
    return search(0, number);
  }

 private:
  bool search(std::size_t k, std::int64_t number) {
    if (number < 0 || number > suffix_[k]) return false;
    if (k == count_ || number == 0) return number == 0;
    if (number % divisor_[k] != 0) return false;
    const std::int64_t step = terms_[k].step, beyond = number - suffix_[k + 1];
    const std::int64_t least = beyond > 0 ? (beyond + step - 1) / step : 0;
    for (std::int64_t x = std::min(terms_[k].most, number / step); x >= least; --x)
      if (--budget_ < 0 || search(k + 1, number - x * step)) return true;
    return false;
  }

  static constexpr std::size_t most_terms = 2 * Shape::max_rank + 1;
  std::array<Term, most_terms> terms_;
  std::array<std::int64_t, most_terms + 1> suffix_{},
      divisor_{};  ///< of the terms from this one on: their greatest sum, and what divides all sums
  std::size_t count_ = 0;
  int budget_ = 0;
};

}  // namespace

bool share_memory(const TensorView& a, const TensorView& b) {
  if (a.elements() == 0 || b.elements() == 0) return false;
  const auto a_bytes = byte_size(a.dtype), b_bytes = byte_size(b.dtype);
  // a + sum(i * step) + byte = b + sum(j * step) + byte; j and b's byte count from their ends, so that every sign is
  // plus.
  TermSum sum;
  std::int64_t number = b.as<const std::byte>() - a.as<const std::byte>() + b_bytes - 1;
  for (int axis = 0; axis < a.shape.rank(); ++axis) sum.add(a.strides[axis] * a_bytes, a.shape[axis] - 1);
  for (int axis = 0; axis < b.shape.rank(); ++axis) {
    sum.add(b.strides[axis] * b_bytes, b.shape[axis] - 1);
    number += b.strides[axis] * b_bytes * (b.shape[axis] - 1);
  }
  sum.add(1, a_bytes + b_bytes - 2);
  return sum.reaches(number);
}

bool overlaps_itself(const Shape& shape, const Shape& strides) {
  std::array<Term, Shape::max_rank> axes;
  std::size_t count = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] > 1) axes[count++] = {strides[axis], shape[axis] - 1};
  const auto rising = std::span(axes).first(count);
  std::ranges::sort(rising, {}, &Term::step);
  bool nests = true;
  std::int64_t covered = 0;
  for (const Term& axis : rising) {
    if (axis.step == 0) return true;
    nests = nests && axis.step > covered;
    covered += axis.step * axis.most;
  }
  if (nests) return false;
  // Two elements differ first, by this order of the axes, on some axis, there by 1 or more, and on those before it by
  // anything.
  for (std::size_t last = 0; last < count; ++last) {
    TermSum sum;
    std::int64_t number = -rising[last].step;
    sum.add(rising[last].step, rising[last].most - 1);
    for (const Term& axis : rising.first(last)) {
      sum.add(axis.step, 2 * axis.most);
      number += axis.step * axis.most;
    }
    if (sum.reaches(number)) return true;
  }
  return false;
}

}  // namespace cermet::api

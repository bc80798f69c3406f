// How updates meet the elements of a copy of x: shared by scatter and scatter_nd.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "op/reduction.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

/// The attribute `reduction` of both operators: whether operand 0 has a type for it; throws Error naming the operand.
void expect_reducible(const Problem& problem);

/// The reduction of integers, or of u8 that stand for booleans.
constexpr Reduction boolean_reduction(Reduction kind) {
  if (kind == Reduction::sum) return Reduction::max;
  return kind == Reduction::prod ? Reduction::min : kind;
}

/// One step between two integers, clamped to their type.
template <class T>
T combined_integers(Reduction kind, T a, T b) {
  __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  if (kind == Reduction::max) return a > b ? a : b;
  if (kind == Reduction::min) return a < b ? a : b;
  const Wide value = kind == Reduction::prod ? static_cast<Wide>(a) * static_cast<Wide>(b)
                                             : static_cast<Wide>(a) + static_cast<Wide>(b);
  return static_cast<T>(std::clamp<Wide>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

/// What the references do: y becomes a copy of x (operand 0), updates (operand 2) are added in order.
class ScatterUpdates {
 public:
  explicit ScatterUpdates(const ReferenceCall& call);
  /// Element `update` of the updates meets element `target` of y; both dense indices.
  void add(std::int64_t target, std::int64_t update);
  /// Writes what floating reductions accumulated.
  void finish();

 private:
  struct Target {
    double value = 0, magnitude = 0;
    bool touched = false;
  };
  void add_real(Target& target, std::int64_t j, std::int64_t update);

  const ReferenceCall& call_;
  bool reduces_;
  Reduction reduction_ = Reduction::sum;
  std::vector<Target> targets_;  ///< of a floating reduction
};

}  // namespace cermet

// Reduction of a few operands in the order of ranks, rounded once: the bits of the stacked operators.
#pragma once

#include "kernel/cuda/device/peer/collective.hpp"
#include "kernel/cuda/device/reduce/integers.cuh"
#include "kernel/cuda/device/reduce/reduce.cuh"

namespace cermet::peer {

template <DType>
inline constexpr bool is_integer = false;
template <>
inline constexpr bool is_integer<DType::i32> = true;
template <>
inline constexpr bool is_integer<DType::i8> = true;

/// add(term) for each rank's, in their order, then result().
template <ReductionConfig C, bool Integer = is_integer<C.type>>
class Reduction {
 public:
  using T = Element<C.type>;
  using Op = typename reduce::OperationOf<C.kind>::type;

  CERMET_DEVICE void add(T term) { value_ = Op::combine(value_, to_float(term)); }
  CERMET_DEVICE T result() const {
    if constexpr (C.kind == reduce::Kind::mean) return from_float<T>(value_ / static_cast<float>(C.ranks));
    else return from_float<T>(value_);
  }

 private:
  float value_ = Op::identity();
};

/// Sums are exact and clamped once, products after every factor.
template <ReductionConfig C>
class Reduction<C, true> {
  using Kind = reduce::Kind;
  using Integers = reduce::Integers<reduce::IntegerConfig{.kind = C.kind, .type = C.type}>;
  static constexpr bool sums = C.kind == Kind::sum || C.kind == Kind::mean;

 public:
  using T = Element<C.type>;

  CERMET_DEVICE void add(T term) {
    if constexpr (sums) value_ += term;  // of at most 8 terms of 32 bits
    else if constexpr (C.kind == Kind::prod) value_ = Integers::product(value_, term);
    else if constexpr (C.kind == Kind::max) value_ = max_of<int64_t>(value_, term);
    else value_ = min_of<int64_t>(value_, term);
  }
  CERMET_DEVICE T result() const {
    if constexpr (C.kind == Kind::mean)
      return static_cast<T>(Integers::clamped(rounded_quotient(Wide::of(value_), C.ranks)));
    else if constexpr (sums) return static_cast<T>(Integers::clamped(Wide::of(value_)));
    else return static_cast<T>(value_);
  }

 private:
  static constexpr int64_t identity = C.kind == Kind::prod  ? 1
                                      : C.kind == Kind::max ? Integers::least
                                      : C.kind == Kind::min ? Integers::most
                                                            : 0;
  int64_t value_ = identity;
};

}  // namespace cermet::peer

// What follows the sums of a product at each place of its result: the one concept of every product, whose types
// kernel/cuda/prelude.cpp prints.
//
// An epilogue E is a type with
//   column_sums       whether it reads the sum over the reduction of b's column, which zero points of a need
//   extras, extra[]   how many operands it reads beside the sums, and of what type and extent they are
//   out               the type of the result
//   value(sums.., [column sum,] x)
//                     the result before it is rounded to `out`, float or int32_t, from the sums of one or two products
//                     and the values of the extras
//   pairs             whether it has pair(a, b, x): two neighbouring results packed as f16, from their sums: the same
//                     bits in fewer instructions
//   Second            where a second result is stored: the epilogue of that, over the same sums and extras
// tests/kernel_cuda/golden/linear_hopper_epilogue.cu is an example, with what is compiled around it.
// Families decide when extras are loaded, and from where; they take the value at a place from `value` alone.
#pragma once

#include "kernel/cuda/device/tile/epilogue.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet::epilogue {

/// How an operand extends over the rows and columns of a result.
enum class Extent : uint8_t { scalar, column, row, element };

struct Extra {
  DType dtype;
  Extent extent;
  int columns = 1;  ///< of Extent::column: neighbours that share a value
};

__host__ __device__ constexpr int bytes_of(DType dtype) {
  constexpr int table[] = {
#define X(enumerator, name, stored_name, bytes, kind) bytes,
#include "base/dtype.inc"
#undef X
  };
  return table[static_cast<int>(dtype)];
}

/// Whether values are alike for all columns of a row.
__host__ __device__ constexpr bool of_rows(const Extra& extra) {
  return extra.extent == Extent::scalar || extra.extent == Extent::row;
}

/// The values of all extras at a place.
template <int Count>
struct Values {
  uint32_t bits[Count > 0 ? Count : 1];
  CERMET_DEVICE float real(int i) const { return __uint_as_float(bits[i]); }
  CERMET_DEVICE int32_t integer(int i) const { return static_cast<int32_t>(bits[i]); }
};
/// The values of all extras at two neighbouring places: both packed where they are f16, in `low` and `high` where they
/// are not.
template <int Count>
struct Pairs {
  uint32_t halves[Count > 0 ? Count : 1];
  Values<Count> low, high;
};
template <class E>
using ValuesOf = Values<E::extras>;

/// Whether a second result is stored.
template <class E>
inline constexpr bool gives_two = requires {
  typename E::Second;
};
/// Bytes of an element of it.
template <class E>
constexpr int second_bytes() {
  if constexpr (gives_two<E>) return bytes_of(E::Second::out);
  else return 0;
}
/// Names one of the results, for functions that give either.
template <class E>
struct Which {};

CERMET_DEVICE uint32_t bits_of(int32_t x) { return static_cast<uint32_t>(x); }
template <class T>
CERMET_DEVICE uint32_t bits_of(T x) {
  return __float_as_uint(to_float(x));
}

/// Where the value of an extra is, in elements from its operand's data; rows count from where data points to.
template <Extra X>
CERMET_DEVICE int64_t offset_of(const Operand& operand, int row, int column, int group) {
  if constexpr (X.extent == Extent::scalar) return group * operand.group;
  else if constexpr (X.extent == Extent::row) return group * operand.group + row * operand.row;
  else if constexpr (X.extent == Extent::column) return group * operand.group + column / X.columns * operand.column;
  else return group * operand.group + row * operand.row + column;
}
template <Extra X>
CERMET_DEVICE const Element<X.dtype>* address_of(const Operand& operand, int row, int column, int group) {
  return static_cast<const Element<X.dtype>*>(operand.data) + offset_of<X>(operand, row, column, group);
}

/// Loads the extras that are alike for all columns of a row.
template <class E>
CERMET_DEVICE void load_row(const Operand* operands, int row, int group, ValuesOf<E>& x) {
  for_constants<E::extras>([&]<int I>(Constant<I>) {
    if constexpr (of_rows(E::extra[I])) x.bits[I] = bits_of(*address_of<E::extra[I]>(operands[I], row, 0, group));
  });
}
/// Loads the others.
template <class E>
CERMET_DEVICE void load_place(const Operand* operands, int row, int column, int group, ValuesOf<E>& x) {
  for_constants<E::extras>([&]<int I>(Constant<I>) {
    if constexpr (!of_rows(E::extra[I])) x.bits[I] = bits_of(*address_of<E::extra[I]>(operands[I], row, column, group));
  });
}

/// A value in the type of the result.
template <class Out>
CERMET_DEVICE Out rounded(float value) {
  return from_float<Out>(value);
}
template <class Out>
CERMET_DEVICE Out rounded(int32_t value) {
  static_assert(sizeof(Out) == 4);
  return value;
}

}  // namespace cermet::epilogue

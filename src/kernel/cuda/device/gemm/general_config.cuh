// Configuration of the general GEMM.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::gemm {

struct GeneralConfig {
  DType a, b;
  DType offsets = DType::i32;
  bool tensor = false;                    ///< on the tensor cores
  int block = 64;                         ///< rows and columns of a tile: 64 or 128
  int stages = 2;                         ///< of the tensor cores' operands in shared memory
  bool a_outer = false, b_outer = false;  ///< neighbours in memory are neighbours along m (n), not along k
  bool dual = false, grouped = false;
  bool blocked = false;  ///< scales change every 128 reduction steps
};

/// Type of a sum of products.
template <DType T>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<DType::i8> {
  using type = int32_t;
};

/// A thread block of the general GEMM.
inline constexpr int general_threads = 256;

}  // namespace cermet::gemm

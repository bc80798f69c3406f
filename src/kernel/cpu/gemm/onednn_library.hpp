// oneDNN's products of matrices, where the library is installed: opened by name, never linked, and only these functions of it.
#pragma once

#include <cstdint>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// Row-major C[m, n] = op(A) op(B), as dnnl.h of versions 2 and 3 declares it; leading dimensions are in elements. Each returns 0, or a status of oneDNN.
struct OneDnn {
  using Size = std::int64_t;
  int (*sgemm)(char transposed_a, char transposed_b, Size m, Size n, Size k, float alpha, const float* a, Size lda, const float* b, Size ldb, float beta,
               float* c, Size ldc) = nullptr;
  /// Exact where byte dot products are (Isa::avx512_vnni); `offset_c` 'F' has one offset for all of C.
  int (*gemm_s8s8s32)(char transposed_a, char transposed_b, char offset_c, Size m, Size n, Size k, float alpha, const std::int8_t* a, Size lda,
                      std::int8_t offset_a, const std::int8_t* b, Size ldb, std::int8_t offset_b, float beta, std::int32_t* c, Size ldc,
                      const std::int32_t* offset) = nullptr;
  int (*omp_get_max_threads)() = nullptr;  ///< of the OpenMP runtime that it runs in
  void (*omp_set_num_threads)(int) = nullptr;
};

/// Why there is none: not installed, not of OpenMP, or CERMET_ONEDNN says so. Nothing where there is. The first call opens it, which takes about a millisecond.
const Decline& onednn_missing();
/// Only where nothing is missing.
const OneDnn& onednn();

/// While this lives, products that the calling thread asks oneDNN for run on that thread alone.
class OneDnnAlone {
 public:
  OneDnnAlone() : threads_(onednn().omp_get_max_threads()) { onednn().omp_set_num_threads(1); }
  ~OneDnnAlone() { onednn().omp_set_num_threads(threads_); }
  OneDnnAlone(const OneDnnAlone&) = delete;
  OneDnnAlone& operator=(const OneDnnAlone&) = delete;

 private:
  int threads_;
};

}  // namespace cermet::cpu

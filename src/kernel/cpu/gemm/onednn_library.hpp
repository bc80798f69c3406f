// oneDNN's products of matrices, where the library is installed: opened by name, never linked, and only these functions
// of it.
#pragma once

#include <cstdint>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// Row-major C[m, n] = op(A) op(B), as dnnl.h of versions 2 and 3 declares it; leading dimensions are in elements. Each
/// returns 0, or a status of oneDNN.
struct OneDnn {
  using Size = std::int64_t;
  int (*sgemm)(char transposed_a, char transposed_b, Size m, Size n, Size k, float alpha, const float* a, Size lda,
               const float* b, Size ldb, float beta, float* c, Size ldc) = nullptr;
  /// Exact where byte dot products are (Isa::avx512_vnni); `offset_c` 'F' has one offset for all of C.
  int (*gemm_s8s8s32)(char transposed_a, char transposed_b, char offset_c, Size m, Size n, Size k, float alpha,
                      const std::int8_t* a, Size lda, std::int8_t offset_a, const std::int8_t* b, Size ldb,
                      std::int8_t offset_b, float beta, std::int32_t* c, Size ldc,
                      const std::int32_t* offset) = nullptr;
  int (*omp_get_max_threads)() = nullptr;  ///< of the OpenMP runtime that it runs in
  void (*omp_set_num_threads)(int) = nullptr;
};

/// oneDNN's primitives, as far as products with packed weights need them. Pointers stand for its objects. Versions 2
/// and 3 differ in how memory and products are described: what one of them lacks is null.
struct OneDnnPrimitives {
  /// Of dnnl_types.h, alike in both versions.
  enum Type : int { bf16 = 2, f32 = 3, s32 = 4, s8 = 5 };
  enum Argument : int { source = 1, result = 17, weights = 33, scratchpad = 80 };
  enum Query : int { weights_desc = 131, scratchpad_desc = 136 };
  struct Operand {
    int argument;
    void* memory;
  };
  using Sizes = const std::int64_t*;

  int (*engine_create)(void** engine, int kind, std::size_t index) = nullptr;
  int (*stream_create)(void** stream, void* engine, unsigned flags) = nullptr;
  int (*stream_destroy)(void* stream) = nullptr;
  int (*attr_create)(void** attributes) = nullptr;
  int (*attr_set_scratchpad_mode)(void* attributes, int mode) = nullptr;
  int (*primitive_desc_destroy)(void* desc) = nullptr;
  const void* (*primitive_desc_query_md)(const void* desc, int what, int index) = nullptr;
  int (*primitive_create)(void** primitive, const void* desc) = nullptr;
  int (*primitive_destroy)(void* primitive) = nullptr;
  int (*primitive_execute)(const void* primitive, void* stream, int count, const Operand* operands) = nullptr;
  int (*memory_create)(void** memory, const void* desc, void* engine, void* data) = nullptr;
  int (*memory_destroy)(void* memory) = nullptr;
  std::size_t (*memory_desc_get_size)(const void* desc) = nullptr;
  int (*reorder_desc_create)(void** desc, const void* from, void* from_engine, const void* to, void* to_engine,
                             const void* attributes) = nullptr;

  // Version 2: descriptors are values.
  int (*memory_desc_init_by_strides)(void* desc, int rank, Sizes sizes, int type, Sizes strides) = nullptr;
  int (*memory_desc_init_by_tag)(void* desc, int rank, Sizes sizes, int type, int tag) = nullptr;
  int (*matmul_desc_init)(void* desc, const void* source, const void* weights, const void* bias,
                          const void* result) = nullptr;
  int (*primitive_desc_create)(void** desc, const void* operation, const void* attributes, void* engine,
                               const void* hint) = nullptr;
  // Version 3: they are objects.
  int (*memory_desc_create_with_strides)(void** desc, int rank, Sizes sizes, int type, Sizes strides) = nullptr;
  int (*memory_desc_create_with_tag)(void** desc, int rank, Sizes sizes, int type, int tag) = nullptr;
  int (*memory_desc_destroy)(void* desc) = nullptr;
  int (*matmul_desc_create)(void** desc, void* engine, const void* source, const void* weights, const void* bias,
                            const void* result, const void* attributes) = nullptr;
};

/// Why there is none: not installed, not of OpenMP, or CERMET_ONEDNN says so. Nothing where there is. The first call
/// opens it, which takes about a millisecond.
const Decline& onednn_missing();
/// Only where nothing is missing.
const OneDnn& onednn();
/// The same of its primitives, which a library of another major version than 2 and 3 lacks.
const Decline& onednn_primitives_missing();
const OneDnnPrimitives& onednn_primitives();

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

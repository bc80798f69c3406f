#include "device/cuda/driver/blas.hpp"

#include <cublasLt.h>

#include <map>
#include <mutex>
#include <tuple>

#include "device/late_library.hpp"

namespace cermet::cuda {
namespace {

/// The functions used, by name.
struct Library {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
};

LateLibrary& cublaslt() {
  static LateLibrary found("cuBLASLt", fmt::format("libcublasLt.so.{}", CUDA_VERSION / 1000));
  return found;
}

Library open_library() {
  Library l{};
  cublaslt().find("cublasLtCreate", l.create);
  cublaslt().find("cublasLtMatmul", l.matmul);
  cublaslt().find("cublasLtMatmulDescCreate", l.desc_create);
  cublaslt().find("cublasLtMatmulDescDestroy", l.desc_destroy);
  cublaslt().find("cublasLtMatmulDescSetAttribute", l.desc_set);
  cublaslt().find("cublasLtMatrixLayoutCreate", l.layout_create);
  cublaslt().find("cublasLtMatrixLayoutDestroy", l.layout_destroy);
  cublaslt().find("cublasLtMatmulPreferenceCreate", l.preference_create);
  cublaslt().find("cublasLtMatmulPreferenceDestroy", l.preference_destroy);
  cublaslt().find("cublasLtMatmulPreferenceSetAttribute", l.preference_set);
  cublaslt().find("cublasLtMatmulAlgoGetHeuristic", l.heuristic);
  return l;
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(Status::unsupported, "{}: cuBLASLt reports status {}", what, static_cast<int>(status));
}

/// One handle for each context; never destroyed, because contexts end with the process.
cublasLtHandle_t handle_of_current_context() {
  static std::mutex mutex;
  static std::map<CUcontext, cublasLtHandle_t> handles;
  CUcontext context = nullptr;
  driver().ctx_pop_current(&context);
  driver().check(driver().ctx_push_current(context), "context");
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[context];
  if (!handle) check(library().create(&handle), "product");
  return handle;
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: fail(Status::unsupported, "cuBLASLt: expected f32, bf16 or f16, found {}", name_of(dtype));
  }
}

/// Everything the heuristic depends on.
using Key = std::tuple<cublasLtHandle_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                       std::int64_t, DType, DType, bool, std::int64_t>;

/// Descriptors of one product; the row-major x[m,k] w[n,k]^T is, in column order, w^T[n,k] x[k,m].
struct Descriptors {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;

  explicit Descriptors(const MatrixProduct& p) {
    const Library& l = library();
    check(l.desc_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(l.desc_set(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)), "product");
    if (p.bias) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      const cudaDataType_t type = type_of(p.result);
      check(l.desc_set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)), "product");
      check(l.desc_set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias, sizeof(p.bias)), "product");
      check(l.desc_set(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof(type)), "product");
    }
    const auto size = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
    check(l.layout_create(&w, type_of(p.operand), size(p.k), size(p.n), p.w_stride), "product");
    check(l.layout_create(&x, type_of(p.operand), size(p.k), size(p.m), p.x_stride), "product");
    check(l.layout_create(&y, type_of(p.result), size(p.n), size(p.m), p.y_stride), "product");
  }
  ~Descriptors() {
    const Library& l = library();
    l.layout_destroy(y);
    l.layout_destroy(x);
    l.layout_destroy(w);
    l.desc_destroy(product);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
};

cublasLtMatmulAlgo_t choose(cublasLtHandle_t handle, const MatrixProduct& p, const Descriptors& d) {
  const Library& l = library();
  cublasLtMatmulPreference_t preference = nullptr;
  check(l.preference_create(&preference), "product");
  const auto workspace = static_cast<std::size_t>(p.workspace_bytes);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  cublasStatus_t status =
      l.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
  if (status == CUBLAS_STATUS_SUCCESS)
    status = l.heuristic(handle, d.product, d.w, d.x, d.y, d.y, preference, 1, &best, &found);
  l.preference_destroy(preference);
  check(status, "product");
  if (found == 0)
    fail(Status::unsupported, "product [{}, {}] x [{}, {}]: expected an algorithm of cuBLASLt, found none", p.m, p.k,
         p.n, p.k);
  return best.algo;
}

}  // namespace

void multiply_with_cublaslt(const MatrixProduct& p, CUstream stream) {
  if (p.m == 0 || p.n == 0) return;
  static std::mutex mutex;
  static std::map<Key, cublasLtMatmulAlgo_t> chosen;
  const cublasLtHandle_t handle = handle_of_current_context();
  const Descriptors d(p);
  const Key key{handle,           p.m,        p.n,       p.k,      p.x_stride,
                p.w_stride,       p.y_stride, p.operand, p.result, p.bias != nullptr,
                p.workspace_bytes};
  cublasLtMatmulAlgo_t algorithm{};
  {
    const std::lock_guard lock(mutex);
    const auto known = chosen.find(key);
    algorithm = known != chosen.end() ? known->second : chosen.emplace(key, choose(handle, p, d)).first->second;
  }
  const float one = 1, zero = 0;
  check(
      library().matmul(handle, d.product, &one, p.w, d.w, p.x, d.x, &zero, p.y, d.y, p.y, d.y, &algorithm, p.workspace,
                       static_cast<std::size_t>(p.workspace_bytes), reinterpret_cast<cudaStream_t>(stream)),
      "product");
}

std::string cublaslt_problem() { return cublaslt().problem(); }

}  // namespace cermet::cuda

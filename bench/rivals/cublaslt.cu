// Products of cuBLASLt, every algorithm that its heuristics propose measured: a rival of bench/gpu_suite.py.
//
// script/build-rivals builds it. Rows: "product TYPE M N K". bf16 gives bf16; f8 (e4m3, a scale for each row and column) gives bf16; i8 gives int32 sums,
// because this library has no scaled int8 product: less arithmetic than Cermet's, and twice the bytes written.
#include <cublasLt.h>

#include <memory>

#include "rival.cuh"

namespace {

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": " + cublasLtGetStatusString(status));
}

constexpr std::size_t workspace_bytes = 64u << 20;

struct Types {
  cudaDataType_t operand, result, scale;
  cublasComputeType_t compute;
};

template <class T>
struct TypesOf;
template <>
struct TypesOf<__nv_bfloat16> {
  static constexpr Types value{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  using Result = __nv_bfloat16;
};
template <>
struct TypesOf<__nv_fp8_e4m3> {
  static constexpr Types value{CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  using Result = __nv_bfloat16;
};
template <>
struct TypesOf<std::int8_t> {
  static constexpr Types value{CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
  using Result = std::int32_t;
};

/// y[M, N] = a[M, K] b[N, K]^T, which column-major is y^T = b a^T.
template <class T>
class Product {
 public:
  Product(std::int64_t m, std::int64_t n, std::int64_t k)
      : m_(m),
        n_(n),
        k_(k),
        sets_(rival::sets_for((m * k + n * k) * sizeof(T) + m * n * sizeof(Result))),
        a_(sets_ * m * k),
        b_(sets_ * n * k),
        y_(sets_ * m * n),
        a_scale_(m),
        b_scale_(n),
        workspace_(workspace_bytes) {
    rival::fill(a_, 1);
    rival::fill(b_, 2);
    rival::fill(a_scale_, 3);
    rival::fill(b_scale_, 4);
    check(cublasLtCreate(&handle_), "cublasLtCreate");
    const Types types = TypesOf<T>::value;
    check(cublasLtMatmulDescCreate(&product_, types.compute, types.scale), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, static_cast<std::int32_t>(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F));
      set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, static_cast<std::int32_t>(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F));
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(b_scale_.data()));
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(a_scale_.data()));
    }
    check(cublasLtMatrixLayoutCreate(&left_, types.operand, k, n, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&right_, types.operand, k, m, k), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&result_, types.result, n, m, n), "cublasLtMatrixLayoutCreate");
  }
  ~Product() {
    cublasLtMatrixLayoutDestroy(result_);
    cublasLtMatrixLayoutDestroy(right_);
    cublasLtMatrixLayoutDestroy(left_);
    cublasLtMatmulDescDestroy(product_);
    cublasLtDestroy(handle_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  std::string answer(double seconds) const {
    cublasLtMatmulPreference_t preference;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes), "preference");
    std::vector<cublasLtMatmulHeuristicResult_t> found(16);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, product_, left_, right_, result_, result_, preference, static_cast<int>(found.size()), found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    std::vector<rival::Variant> variants;
    for (int i = 0; i < count; ++i) {
      const cublasLtMatmulAlgo_t algorithm = found[static_cast<std::size_t>(i)].algo;
      variants.push_back({"proposal " + std::to_string(i), [this, algorithm](std::int64_t set, cudaStream_t stream) { run(set, stream, algorithm); }});
    }
    return rival::best_of("cuBLASLt", variants, sets_, seconds);
  }

 private:
  using Result = typename TypesOf<T>::Result;

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }

  void run(std::int64_t set, cudaStream_t stream, const cublasLtMatmulAlgo_t& algorithm) const {
    using Scale = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, float>;
    const Scale one = 1, zero = 0;
    Result* const y = y_.at(set * m_ * n_);
    check(cublasLtMatmul(handle_, product_, &one, b_.at(set * n_ * k_), left_, a_.at(set * m_ * k_), right_, &zero, y, result_, y, result_, &algorithm,
                         workspace_.data(), workspace_bytes, stream),
          "cublasLtMatmul");
  }

  std::int64_t m_, n_, k_, sets_;
  rival::Array<T> a_, b_;
  rival::Array<Result> y_;
  rival::Array<float> a_scale_, b_scale_;
  rival::Array<std::uint8_t> workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;
};

std::string answer(const rival::Row& row, double seconds) {
  const std::string type = row.word(1);
  if (row.word(0) != "product") throw std::runtime_error("expected product TYPE M N K");
  const std::int64_t m = row.number(2), n = row.number(3), k = row.number(4);
  if (type == "bf16") return Product<__nv_bfloat16>(m, n, k).answer(seconds);
  if (type == "f8") return Product<__nv_fp8_e4m3>(m, n, k).answer(seconds);
  if (type == "i8") return Product<std::int8_t>(m, n, k).answer(seconds);
  throw std::runtime_error("expected bf16, f8 or i8");
}

}  // namespace

int main() { return rival::serve("cuBLASLt " + std::to_string(cublasLtGetVersion()), answer); }

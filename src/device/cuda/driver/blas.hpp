// Matrix products by cuBLASLt, opened at the first use: the library is larger than everything else together.
#pragma once

#include "device/cuda/driver/driver.hpp"
#include "device/stream.hpp"

namespace cermet::cuda {

/// Enqueues a product. Throws Error where the library is absent or returns an error.
void multiply_with_cublaslt(const MatrixProduct& product, CUstream stream);

/// Why that would fail, as far as is known before the library is opened; empty where it is there.
std::string cublaslt_problem();

}  // namespace cermet::cuda

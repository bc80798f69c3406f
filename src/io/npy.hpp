// NumPy's .npy files: one tensor each. Source: NEP 1, versions 1 to 3 of the format.
#pragma once

#include <filesystem>
#include <optional>

#include "base/buffer.hpp"

namespace cermet {

/// Reads an array in row-major or column-major order, of either byte order of this machine alone. Bytes that NumPy has
/// no type for ("V1", "V2", as the package ml_dtypes saves bf16 and fp8) take `expected`, or bf16 for two bytes. Throws
/// Error(invalid_file) naming the file and what breaks the format.
OwnedTensor read_npy(const std::filesystem::path& path, std::optional<DType> expected = {});
/// Writes a dense tensor: a temporary name in the same folder, then a rename.
void write_npy(const std::filesystem::path& path, const TensorView& tensor);

}  // namespace cermet

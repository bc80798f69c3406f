// Files that are almost ONNX models: real ones with bytes and fields changed, the same ones for the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/onnx/builder.hpp"

namespace cermet::onnx::test {

/// Small models that together use most of what is imported.
std::vector<::onnx::ModelProto> seed_models();
/// The file of a case.
std::string mutated(const std::vector<::onnx::ModelProto>& seeds, std::uint64_t number);

struct FuzzCounts {
  std::int64_t refused = 0, imported = 0, ran = 0;
};
/// Reads, imports and, where that takes little memory and arithmetic, runs `count` cases. Each must succeed or throw
/// one Error that is no internal one, within a second of this thread's time; others are test failures, which name the
/// case.
FuzzCounts fuzz(std::uint64_t first, std::uint64_t count);

}  // namespace cermet::onnx::test

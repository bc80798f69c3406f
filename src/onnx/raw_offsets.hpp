// A model's file without the elements of its large weights, which need not be read before they are wanted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cermet {
class PosixFile;
}

namespace cermet::onnx {

/// Where the file has the elements of an initializer that were left out.
struct RawData {
  std::int64_t offset = -1, bytes = 0;  ///< -1: none were
};

struct ThinModel {
  std::string bytes;         ///< a ModelProto whose initializers of least_left_in_file bytes or more have no raw_data
  std::vector<RawData> raw;  ///< by initializer of the model's graph, in the order of the file
};
inline constexpr std::int64_t least_left_in_file = 1 << 16;

/// Nothing where the bytes are not laid out as expected.
std::optional<ThinModel> read_thin_model(const PosixFile& file);

}  // namespace cermet::onnx

// Where a file has the elements of its weights, so that they need not stay in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace cermet {
class PosixFile;
}

namespace cermet::onnx {

/// Where raw_data is in the file.
struct RawData {
  std::int64_t offset = -1, bytes = 0;  ///< -1: there is none
};

/// By initializer of the model's graph, in the order of the file; shorter, or empty, where the bytes are not laid out as expected.
std::vector<RawData> find_raw_data(const PosixFile& file);

}  // namespace cermet::onnx

// Where the operands of an epilogue are: host and device.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {
enum class DType : uint8_t;  // base/dtype.hpp on the host, types.cuh on the device
}

namespace cermet::epilogue {

/// Most operands that an epilogue reads.
inline constexpr int most_extras = 8;

/// An operand of an epilogue in a launch. Steps count elements; those that its extent does not need are 0.
struct Operand {
  const void* data;
  int64_t row;     ///< from row to row
  int64_t column;  ///< from one column, or group of columns that share a value, to the next
  int64_t group;   ///< from group to group of a grouped product, from batch to batch of a batched one
};

/// Results of a launch as rows, whose columns are neighbours. Steps count elements.
struct ResultRows {
  void* y;
  void* second;               ///< a second result, where the epilogue gives two
  int64_t y_row, second_row;  ///< from row to row
};

}  // namespace cermet::epilogue

// What host and device of a row kernel agree on: how rows lie over threads, where they begin in memory, and the
// parameters of a launch.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {

/// How rows lie over threads: a program's configuration. At most 32 lanes: several rows in a block. More: all threads
/// of a block, or of a cluster of blocks.
struct RowLayout {
  int columns = 0;    ///< of a row in registers; 0: known at run time only, and the row is read again for each pass
  int lanes = 256;    ///< threads of one block that share a row
  int threads = 256;  ///< of a block
  int width = 1;      ///< elements of a vector; divides columns and the length
  int cluster = 1;    ///< blocks that share a row
  int fold = 1;  ///< lanes that each stands for: what is added up has the order, and the bits, of `fold` times as many
  bool preload_columns = false;  ///< parameters for each column are loaded with the row: available sooner, in more
                                 ///< registers
  bool keep_float32 = false;     ///< float32 values are kept between passes, where narrow elements could be converted
                                 ///< again: fewer instructions, more registers
  bool uniform = false;          ///< there is one leading dimension, so that rows lie uniformly apart

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("columns", columns), visit("lanes", lanes), visit("threads", threads), visit("width", width),
        visit("cluster", cluster), visit("fold", fold), visit("preload_columns", preload_columns),
        visit("keep_float32", keep_float32), visit("uniform", uniform);
  }
};

/// Reductions of one program, and warps that share a row: of a cluster's blocks together.
inline constexpr int most_row_reductions = 3, most_row_warps = 64;
/// Shared memory of every program of a row kernel, which its reductions use.
inline constexpr int row_shared_bytes = 2048;

/// Element 0 of row (i0, i1, i2) is at data + i0 * step[0] + i1 * step[1] + i2 * step[2] elements; the innermost
/// leading dimension is the first.
struct RowOperand {
  void* data;
  int64_t step[3];
};

/// Sizes of the two inner leading dimensions; inner 0: there is one, and rows are uniformly apart.
struct RowDims {
  uint32_t inner, middle;
};

struct QuantizedRows {
  RowOperand values, scale, zero_point;  ///< quantized values [.., length]; scale and zero point [..] or [.., groups]
  const float* bound;                    ///< of the magnitudes that scales are made for, where there is one
};

namespace row_region {

inline constexpr int most_operands = 12;

struct Params {
  RowDims dims;
  uint32_t rows;
  int32_t length;
  RowOperand operands[most_operands];  ///< what the region reads, then its results; of what is the same for all rows,
                                       ///< only `data` counts
  QuantizedRows out;                   ///< of a dynamic quantization at the end
};

}  // namespace row_region
}  // namespace cermet

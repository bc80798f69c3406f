// What row kernels need beside tile programs: reductions of tiles, and the quantization of a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/cpu/pointwise/tile_functions.hpp"
#include "kernel/row_program.hpp"
#include "op/quantization.hpp"

namespace cermet::cpu {

/// What a reduction has of a row before it has all of it: four vectors of lanes.
struct RowPart {
  alignas(64) float lanes[4][TileOperand::repeated];
};

/// Where the results of one row go. `zero_points` is null for symmetric formats.
struct QuantizedRow {
  std::byte* quantized;
  float* scales;
  std::int32_t* zero_points;
};

/// Values of one row, up to a tile of them at a time; each may be asked for twice.
struct RowReader {
  void* state;
  const float* (*read)(void* state, std::size_t first, std::size_t count);
};

/// For the active instruction set.
struct RowSteps {
  using Kind = RowProgram::Reduction::Kind;
  void (*begin)(Kind kind, RowPart& part);
  void (*reduce)(Kind kind, const float* values, std::size_t count, RowPart& part);
  float (*end)(Kind kind, const RowPart& part, std::int64_t length, float eps);
  void (*quantize)(const RowReader& values, std::size_t length, const QuantizedFormat& format, const QuantizedRow& out);
};
RowSteps row_steps();

}  // namespace cermet::cpu

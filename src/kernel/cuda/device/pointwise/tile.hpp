// Where the work items of elementwise tasks lie: rows cut into tiles, short rows several to a block.
#pragma once

#include "kernel/cuda/device/rowwise/row_params.hpp"

namespace cermet {

/// How a task moves elements. simple: whole aligned vectors, rows uniformly apart: little code, because code too is
/// fetched in every launch.
enum class Tiling : uint8_t { simple, general };
constexpr const char* name_of(Tiling tiling) {
  switch (tiling) {
    case Tiling::simple: return "cermet::Tiling::simple";
    case Tiling::general: return "cermet::Tiling::general";
  }
  return "";
}

/// A thread has `vectors` vectors of a tile: next to those of its neighbours in a row, or, where rows are short, in
/// rows further down.
struct TileShape {
  RowDims dims;
  uint32_t rows;
  uint32_t vectors;                  ///< of a thread, at most tile_vectors
  uint32_t lanes_shift;              ///< 2^lanes_shift threads lie side by side in a row
  uint32_t item_rows, item_columns;  ///< of a work item; columns count vectors here and below
  uint32_t step_rows, step_columns;  ///< from one vector of a thread to the next
  uint32_t tiles_per_row, magic,
      shift;  ///< for n below 2^31, n / tiles_per_row is (n * magic) >> (32 + shift); magic 0: there is one tile
  uint32_t row_columns;  ///< vectors of a row, the last of which may be cut
  uint32_t aligned;      ///< not 0: vectors may move with one access
  int64_t length;        ///< elements of a row
};

/// An operand of an elementwise task: its rows, and whether one element stands for a whole row.
struct TileOperand {
  RowOperand rows;
  int64_t along;  ///< 1, or 0 where one element is repeated
};

}  // namespace cermet

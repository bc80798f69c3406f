#include "kernel/cpu/gemm/onednn_sums.hpp"

#include <algorithm>

#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/onednn_library.hpp"

namespace cermet::cpu {

Decline onednn_sums_decline(const Region& region, bool quantized) {
  if (region.anchor != 0) return fmt::format("{} comes before the product", region.nodes[0].problem.op->name);
  const TileProgramOrReason epilogue = product_epilogue(region);
  if (epilogue.reason) return epilogue.reason;
  if (epilogue.program.inputs != std::vector{quantized ? DType::i32 : DType::f32})
    return "a zero point or scales of blocks need more than sums";
  if (epilogue.program.results.size() != region.results.size()) return "a result does not come from the product";
  if (Decline reason = BoundTileProgram::declines(epilogue.program)) return reason;
  return onednn_missing();
}

void finish_onednn_sums(const TileRun& epilogue, const TileRange& piece, const float* sums) {
  constexpr std::int64_t tile_columns = BoundTileProgram::least_columns,
                         tile_rows = BoundTileProgram::most_values / tile_columns;
  for (std::int64_t r = 0; r < piece.rows; r += tile_rows)
    for (std::int64_t c = 0; c < piece.columns; c += tile_columns) {
      const TileOperand tile{sums + r * piece.columns + c, static_cast<std::size_t>(piece.columns), 1};
      epilogue(&tile, {piece.row + r, std::min(tile_rows, piece.rows - r), piece.column + c,
                       std::min(tile_columns, piece.columns - c)});
    }
}

}  // namespace cermet::cpu

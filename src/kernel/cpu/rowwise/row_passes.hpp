// A row program on the CPU: the tile programs of its passes over a row, made when a kernel is bound.
#pragma once

#include <optional>
#include <vector>

#include "kernel/cpu/tile_program.hpp"
#include "kernel/row_program.hpp"

namespace cermet::cpu {

/// What the programs of the passes read as inputs: what reductions gave, then values that are the same for a whole row,
/// and values that an earlier pass kept.
struct RowPasses {
  static constexpr std::size_t most_inputs = BoundTileProgram::most_inputs;
  /// A value of whole rows, which becomes an input.
  struct RowValue {
    BoundTileProgram program;
    std::size_t input = 0;
  };
  /// A pass that gives a value at each place.
  struct Pass {
    std::vector<RowValue> row_values;  ///< to be computed before
    BoundTileProgram program;
    std::optional<std::size_t> kept;  ///< the input that its value becomes
  };

  std::vector<Pass> reductions;                     ///< reduction i gives input i
  std::optional<Pass> quantized;                    ///< gives what is quantized
  std::vector<RowValue> row_values;                 ///< before the results
  std::optional<BoundTileProgram> results, by_row;  ///< store the results of places, and those of whole rows
  std::size_t inputs = 0;
  std::vector<std::size_t> kept;  ///< inputs
};

/// keeps: values that later passes read are kept, and not computed again.
RowPasses row_passes(const RowProgram& program, bool keeps);
/// Why there are none.
Decline declines_row_passes(const RowProgram& program);

}  // namespace cermet::cpu

// Tile programs as the types that fill holes in CUDA kernels.
#pragma once

#include <span>
#include <string>

#include "kernel/tile_program.hpp"

namespace cermet::cuda {

/// An operand that an epilogue reads, as its kernel finds it.
struct EpilogueExtra {
  DType dtype = DType::f32;
  TileProgram::Extent extent = TileProgram::Extent::element;
  int columns = 1;  ///< of Extent::column: neighbours that share a value

  /// Whether there is a value for each column.
  bool is_side_by_side() const { return extent == TileProgram::Extent::column && columns == 1; }
};

/// A generated type. Its name has a digest of what it does, because units with other types of its kind may be linked
/// with its own.
struct GeneratedType {
  std::string name, source;
};

/// An epilogue as device/tile/epilogue.cuh describes it, for Program::prelude. `extras` are those of the program, in
/// its order; a second result is that of the type's member Second. `column_sums`: the last of the program's inputs is
/// the sum over the reduction of b's column.
GeneratedType epilogue_type(const TileProgram& program, std::span<const EpilogueExtra> extras, bool column_sums);

}  // namespace cermet::cuda

// The steps of a tile program as CUDA source: what the preludes of all kernel families print into the functions that
// fill their holes.
#pragma once

#include <string>
#include <string_view>

#include "kernel/tile_program.hpp"

namespace cermet::cuda {

/// Header that a prelude with steps includes.
inline constexpr std::string_view step_header = "kernel/cuda/device/pointwise/functions.cuh";

/// What names a source in the text: in0, x1, s2; or a literal.
std::string value_source(const TileProgram::Source& source);
/// One statement for each step, "const float s1 = __fmul_rn(in0, x0);": over in0.. and x0.., which the text around it
/// has defined as float, or as int32_t where program.is_integer() says so. Nothing is contracted across steps, but
/// where a step says so. wanted: which steps, where not all.
std::string step_source(const TileProgram& program, std::string_view indent, const std::vector<bool>& wanted = {});
/// The same for two neighbouring places of one f16 result of one float32 input, where some step takes both at once;
/// ends with the return of both, packed. Empty where none does. Over in0a and in0b, and for every extra x0a and x0b
/// and, of f16, both packed as x0p.
std::string pair_source(const TileProgram& program, std::string_view indent);
/// A result as an expression of the element type it is stored in.
std::string result_source(const TileProgram& program, const TileProgram::Result& result);

}  // namespace cermet::cuda

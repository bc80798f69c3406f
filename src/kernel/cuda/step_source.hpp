// The steps of a tile program as CUDA source: what the preludes of all kernel families print into the functions that fill their holes.
#pragma once

#include <string>
#include <string_view>

#include "kernel/tile_program.hpp"

namespace cermet::cuda {

/// Header that a prelude with steps includes.
inline constexpr std::string_view step_header = "kernel/cuda/device/pointwise/functions.cuh";

/// What names a source in the text: in0, x1, s2; or a literal.
std::string value_source(const TileProgram::Source& source);
/// One statement for each step, "const float s1 = __fmul_rn(in0, x0);": over in0.. and x0.., which the text around it has defined as float, or as int32_t
/// where program.is_integer() says so. Nothing is contracted across steps.
std::string step_source(const TileProgram& program, std::string_view indent);
/// A result as an expression of the element type it is stored in.
std::string result_source(const TileProgram& program, const TileProgram::Result& result);

}  // namespace cermet::cuda

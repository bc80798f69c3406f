// A row program as CUDA source.
#pragma once

#include <string>

#include "kernel/row_program.hpp"

namespace cermet::cuda {

/// The prelude of device/rowwise/region.cuh: `Body`, and the source of its rows. quantization: the device's
/// Quantization, where the program has one. Operand i of the launch is extra i; result j follows the extras.
/// factors_out: see leaves_factor_out().
std::string row_source(const RowProgram& program, const std::string& quantization, bool factors_out);

/// Whether the factor of a norm, which is the same for a whole row, can be left out of the quantized values and enter
/// their scale: both statistics of the row then take one reduction. Quantized values may differ by a step from those of
/// the values as they are defined.
bool leaves_factor_out(const RowProgram& program);

}  // namespace cermet::cuda

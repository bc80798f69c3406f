// A row program as CUDA source.
#pragma once

#include <string>

#include "kernel/row_program.hpp"

namespace cermet::cuda {

/// The prelude of device/rowwise/region.cuh: `Body`, and the source of its rows. quantization: the device's Quantization, where the program has one.
/// Operand i of the launch is extra i; result j follows the extras.
std::string row_source(const RowProgram& program, const std::string& quantization);

}  // namespace cermet::cuda

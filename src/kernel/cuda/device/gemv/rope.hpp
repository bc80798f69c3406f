// GEMV with rope_and_cache behind it (rope.cuh): parameters, for both halves.
#pragma once

#include "kernel/cuda/device/gemv/gemv.hpp"
#include "kernel/cuda/device/tile/rotation.hpp"

namespace cermet::gemv {

/// y are the rotated queries [rows, heads, head size], and columns count pairs of columns.
struct RopeParams : Params, rotation::Operands {};

}  // namespace cermet::gemv

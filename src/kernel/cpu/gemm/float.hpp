// Products of blocks of float32 rows with packed panels, in the instruction set that is in use.
#pragma once

#include "base/dtype.hpp"
#include "kernel/cpu/gemm/prefetch.hpp"

namespace cermet::cpu {

/// tile[r][c] += sum over k of rows[k][r] * panel[k][c] for the `units` units of a panel; tile: [rows][32].
using MultiplyPanel = void (*)(const void* rows, const void* panel, std::int64_t units, Ahead ahead, float* tile);

/// Products of float32 rows [k][row] with panels of f32, bf16, f16 or i8: element r - 1 takes blocks of r rows, up to
/// block_rows of the instruction set.
const MultiplyPanel* float_products(DType panel_type);

}  // namespace cermet::cpu

// Host half of rms_norm, add_rms_norm and layer_norm: how their rows lie over threads.
#include "kernel/cuda/rowwise/row_region_kernel.hpp"

namespace cermet::cuda::rowwise_norm_file {
namespace {

/// Rows that a warp holds, so many that no SM is idle: 4096 rows of 768 f16 elements took 4.8 us in place of 6.3 on an
/// H200.
bool has_many_short_rows(const Problem& p) {
  constexpr std::int64_t most_columns = 1024, least_rows = 2048;
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < p.input(0).rank(); ++axis) rows *= p.size(0, axis);
  return p.size(0, -1) <= most_columns && rows >= least_rows;
}

RowSpec spec_of(const Problem& p) {
  const bool layer = p.op->kind == OpKind::layer_norm, add = p.op->kind == OpKind::add_rms_norm;
  const std::size_t weight = add ? 2 : 1;
  RowSpec spec{.width = vector_width({p.input(0).dtype, p.input(add ? 1 : 0).dtype, p.outputs[0].dtype}),
               .few_cluster = few_cluster(p.target)};
  spec.short_rows.registers = spec.long_rows.registers = spec.width == 8 ? 72 : 96;
  if (!add && size_of(p.input(0).dtype) == 2) {  // held as they are, in half the registers
    const bool narrow_weight = !p.has(weight) || size_of(p.input(weight).dtype) == 2;
    spec.short_rows = {.elements = 16, .registers = layer || !narrow_weight ? 56 : 48};
    spec.long_rows = {.elements = 56, .registers = layer ? 128 : 80};
    if (layer && has_many_short_rows(p)) spec.short_rows = {.elements = 32, .registers = 64};
  }
  return spec;
}

constexpr const char* const summary = "a row in the registers of a block, or of a part of a warp: one pass over memory";

}  // namespace

extern const Kernel rowwise_rms_norm, rowwise_add_rms_norm, rowwise_layer_norm;
const Kernel rowwise_rms_norm = row_kernel("rowwise.rms_norm", OpKind::rms_norm, summary, spec_of);
const Kernel rowwise_add_rms_norm = row_kernel("rowwise.add_rms_norm", OpKind::add_rms_norm, summary, spec_of);
const Kernel rowwise_layer_norm = row_kernel("rowwise.layer_norm", OpKind::layer_norm, summary, spec_of);

}  // namespace cermet::cuda::rowwise_norm_file

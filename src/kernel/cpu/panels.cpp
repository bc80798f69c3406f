#include "kernel/cpu/panels.hpp"

#include <cstring>

namespace cermet::cpu {
namespace {

/// Packs the panel that starts at weight row `first`: [units][32] of `Unit`, each holding sizeof(Unit) / element_bytes reduction steps.
template <class Unit>
void pack_panel(const TensorView& matrix, std::int64_t first, std::byte* destination) {
  const std::int64_t element_bytes = static_cast<std::int64_t>(size_of(matrix.dtype)), row_bytes = matrix.shape[1] * element_bytes;
  const std::int64_t units = div_up(row_bytes, static_cast<std::int64_t>(sizeof(Unit))), whole = row_bytes / static_cast<std::int64_t>(sizeof(Unit));
  const std::int64_t columns = std::min(panel_columns, matrix.shape[0] - first);
  constexpr std::int64_t block = 16;  // units of one row that are written before the next row's: a cache line is read whole
  std::memset(destination, 0, static_cast<std::size_t>(units * panel_columns) * sizeof(Unit));
  for (std::int64_t u = 0; u < units; u += block)
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::byte* const row = matrix.as<std::byte>() + (first + c) * matrix.strides[0] * element_bytes;
      for (std::int64_t i = u; i < std::min(units, u + block); ++i) {
        Unit value = 0;
        std::memcpy(&value, row + i * static_cast<std::int64_t>(sizeof(Unit)),
                    i < whole ? sizeof(Unit) : static_cast<std::size_t>(row_bytes % static_cast<std::int64_t>(sizeof(Unit))));
        std::memcpy(destination + (i * panel_columns + c) * static_cast<std::int64_t>(sizeof(Unit)), &value, sizeof(Unit));
      }
    }
}

std::int64_t layout_bytes(const TensorType& matrix) { return panel_count(matrix.dims[0].constant()) * panel_bytes(matrix.dtype, matrix.dims[1].constant()); }

template <class Unit>
void pack(const TensorView& matrix, std::byte* destination, ThreadPool& pool) {
  const std::int64_t step = panel_bytes(matrix.dtype, matrix.shape[1]);
  pool.parallel_for(panel_count(matrix.shape[0]), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) pack_panel<Unit>(matrix, panel * panel_columns, destination + panel * step);
  });
}

constexpr WeightLayout f32_panels{"panels.f32", layout_bytes, pack<std::uint32_t>};
constexpr WeightLayout f16_panels{"panels.f16", layout_bytes, pack<std::uint16_t>};
constexpr WeightLayout bf16_panels{"panels.bf16", layout_bytes, pack<std::uint32_t>};

}  // namespace

const WeightLayout* panel_layout(DType dtype) {
  switch (dtype) {
    case DType::f32: return &f32_panels;
    case DType::f16: return &f16_panels;
    case DType::bf16: return &bf16_panels;
    default: return nullptr;
  }
}

}  // namespace cermet::cpu

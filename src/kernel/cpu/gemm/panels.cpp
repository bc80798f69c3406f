#include "kernel/cpu/gemm/panels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "format/element.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

constexpr std::int64_t sums_bytes = panel_columns * static_cast<std::int64_t>(sizeof(std::int32_t));

/// Packs the panel that starts at weight row `first`: [units][32] of `Unit`, each holding sizeof(Unit) / element_bytes
/// reduction steps.
template <class Unit>
void pack_units(const TensorView& matrix, std::int64_t first, std::byte* destination) {
  constexpr auto unit_bytes = static_cast<std::int64_t>(sizeof(Unit));
  constexpr std::int64_t block = 64 / unit_bytes;  // units of one row that are read before the next row's: a cache line
  const auto element_bytes = byte_size(matrix.dtype);
  const std::int64_t row_bytes = matrix.shape[1] * element_bytes, whole = row_bytes / unit_bytes,
                     columns = std::min(panel_columns, matrix.shape[0] - first);
  const auto source = [&](std::int64_t c, std::int64_t u) {
    return matrix.as<std::byte>() + (first + c) * matrix.strides[0] * element_bytes + u * unit_bytes;
  };
  const auto target = [&](std::int64_t c, std::int64_t u) {
    return destination + (u * panel_columns + c) * unit_bytes;
  };
  for (std::int64_t begin = 0; begin < whole; begin += block)
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t u = begin; u < std::min(whole, begin + block); ++u)
        std::memcpy(target(c, u), source(c, u), sizeof(Unit));
  if (const std::int64_t tail = row_bytes - whole * unit_bytes; tail > 0)
    for (std::int64_t c = 0; c < columns; ++c)
      std::memcpy(target(c, whole), source(c, whole), static_cast<std::size_t>(tail));
}

/// Sums of the columns of an int8 panel: over everything, and over blocks of 128.
void sum_columns(const TensorView& matrix, std::int64_t first, std::int32_t* sums, std::int32_t* block_sums) {
  const std::int64_t columns = std::min(panel_columns, matrix.shape[0] - first), length = matrix.shape[1];
  for (std::int64_t c = 0; c < panel_columns; ++c) {
    const std::int64_t used = c < columns ? length : 0;  // columns of padding have none
    std::int32_t total = 0;
    for (std::int64_t k = 0; k < length; k += sum_block) {
      std::int32_t sum = 0;
      for (std::int64_t i = k; i < std::min(used, k + sum_block); ++i)
        sum += matrix.as<const std::int8_t>()[(first + c) * matrix.strides[0] + i];
      block_sums[k / sum_block * panel_columns + c] = sum;
      total += sum;
    }
    sums[c] = total;
  }
}

/// fp8 as pairs of bf16.
void pack_fp8(const TensorView& matrix, std::int64_t first, std::byte* destination) {
  const float* const values = fp8_values(matrix.dtype);
  const std::int64_t columns = std::min(panel_columns, matrix.shape[0] - first);
  auto* const to = reinterpret_cast<format::bf16*>(destination);
  for (std::int64_t c = 0; c < columns; ++c) {
    const std::uint8_t* const row = matrix.as<const std::uint8_t>() + (first + c) * matrix.strides[0];
    for (std::int64_t k = 0; k < matrix.shape[1]; ++k)
      to[(k / 2 * panel_columns + c) * 2 + k % 2] = format::to_bf16(values[row[k]]);
  }
}

/// Writes a panel of the packed matrix at `packed`.
void pack_panel(const TensorView& matrix, std::int64_t panel, std::byte* packed) {
  const std::int64_t first = panel * panel_columns;
  std::byte* const destination = packed + panel * panel_bytes(matrix.dtype, matrix.shape[1]);
  std::fill_n(destination, panel_bytes(matrix.dtype, matrix.shape[1]),
              std::byte{0});  // memset would not take the null of an empty one
  switch (matrix.dtype) {
    case DType::f32:
    case DType::bf16: return pack_units<std::uint32_t>(matrix, first, destination);
    case DType::f16: return pack_units<std::uint16_t>(matrix, first, destination);
    case DType::i8:
      pack_units<std::uint32_t>(matrix, first, destination);
      return sum_columns(
          matrix, first, reinterpret_cast<std::int32_t*>(destination + panel_element_bytes(DType::i8, matrix.shape[1])),
          reinterpret_cast<std::int32_t*>(packed + block_sums_offset(matrix.shape[0], matrix.shape[1], panel)));
    case DType::f8_e4m3:
    case DType::f8_e5m2: return pack_fp8(matrix, first, destination);
    default: assertion_failed("a type with a panel layout", __FILE_NAME__, __LINE__);
  }
}

void pack(const TensorView& matrix, std::byte* destination, ThreadPool& pool) {
  pool.parallel_for(panel_count(matrix.shape[0]), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) pack_panel(matrix, panel, destination);
  });
}

std::int64_t layout_bytes(const TensorType& matrix) {
  return panels_bytes(matrix.dtype, matrix.dims[0].constant(), matrix.dims[1].constant());
}

constexpr WeightLayout f32_panels{"panels.f32", layout_bytes, pack};
constexpr WeightLayout f16_panels{"panels.f16", layout_bytes, pack};
constexpr WeightLayout bf16_panels{"panels.bf16", layout_bytes, pack};
constexpr WeightLayout i8_panels{"panels.i8", layout_bytes, pack};
constexpr WeightLayout fp8_panels{"panels.fp8_as_bf16", layout_bytes, pack};

std::array<float, 256> decode_all(DType dtype) {
  std::array<float, 256> values{};
  for (std::size_t code = 0; code < values.size(); ++code) {
    const auto byte = static_cast<unsigned char>(code);
    values[code] = static_cast<float>(format::load_element(&byte, dtype, 0));
  }
  return values;
}

}  // namespace

const WeightLayout* panel_layout(DType dtype) {
  switch (dtype) {
    case DType::f32: return &f32_panels;
    case DType::f16: return &f16_panels;
    case DType::bf16: return &bf16_panels;
    case DType::i8: return &i8_panels;
    case DType::f8_e4m3:
    case DType::f8_e5m2: return &fp8_panels;
    default: return nullptr;
  }
}

std::int64_t panel_element_bytes(DType dtype, std::int64_t length) {
  return round_up(length, panel_unit(dtype)) * panel_columns * byte_size(panel_type(dtype));
}

std::int64_t panel_bytes(DType dtype, std::int64_t length) {
  return panel_element_bytes(dtype, length) + (dtype == DType::i8 ? sums_bytes : 0);
}

std::int64_t block_sums_offset(std::int64_t columns, std::int64_t length, std::int64_t panel) {
  return panel_count(columns) * panel_bytes(DType::i8, length) + panel * div_up(length, sum_block) * sums_bytes;
}

std::int64_t panels_bytes(DType dtype, std::int64_t columns, std::int64_t length) {
  const std::int64_t panels = panel_count(columns);
  return dtype == DType::i8 ? block_sums_offset(columns, length, panels) : panels * panel_bytes(dtype, length);
}

const float* fp8_values(DType dtype) {
  static const std::array<float, 256> e4m3 = decode_all(DType::f8_e4m3), e5m2 = decode_all(DType::f8_e5m2);
  return dtype == DType::f8_e4m3 ? e4m3.data() : e5m2.data();
}

}  // namespace cermet::cpu

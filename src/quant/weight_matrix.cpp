#include "quant/weight_matrix.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/text.hpp"
#include "format/element.hpp"
#include "quant/row_loops.hpp"

namespace cermet {
namespace {

constexpr std::uint32_t infinite_weight_bits = 0x7f800000u;
constexpr std::int64_t finite_block = 1 << 16;  // elements that are read and checked at once

/// Of a row's scale to that of its largest value.
constexpr std::array<double, 8> clip_ratios{1, 0.97, 0.94, 0.91, 0.88, 0.84, 0.79, 0.73};

void widen(const std::byte* from, DType dtype, std::span<float> to) {
  const auto convert = [&](auto zero) {
    const auto* source = reinterpret_cast<const decltype(zero)*>(from);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = format::to_float(source[i]);
  };
  switch (dtype) {
    case DType::f32: std::memcpy(to.data(), from, to.size_bytes()); break;
    case DType::bf16: convert(format::bf16{}); break;
    case DType::f16: convert(format::f16{}); break;
    default: CERMET_ASSERT(false);
  }
}

void narrow(std::span<const float> from, DType dtype, std::byte* to) {
  switch (dtype) {
    case DType::f32: std::memcpy(to, from.data(), from.size_bytes()); break;
    case DType::bf16:
      for (std::size_t i = 0; i < from.size(); ++i) reinterpret_cast<format::bf16*>(to)[i] = format::to_bf16(from[i]);
      break;
    case DType::f16:
      for (std::size_t i = 0; i < from.size(); ++i) reinterpret_cast<format::f16*>(to)[i] = format::to_f16(from[i]);
      break;
    default: CERMET_ASSERT(false);
  }
}

void multiply(std::span<float> row, const WeightFactors& factors, std::int64_t index) {
  if (!factors.columns.empty())
    for (std::size_t k = 0; k < row.size(); ++k) row[k] *= factors.columns[k];
  if (factors.rows.empty()) return;
  const float factor = factors.rows[static_cast<std::size_t>(index)];
  for (float& x : row) x *= factor;
}

void store_quantized(std::span<const float> values, DType dtype, std::byte* quantized) {
  if (dtype == DType::i8)
    for (std::size_t k = 0; k < values.size(); ++k)
      reinterpret_cast<std::int8_t*>(quantized)[k] = static_cast<std::int8_t>(values[k]);
  else
    for (std::size_t k = 0; k < values.size(); ++k)
      reinterpret_cast<format::e4m3*>(quantized)[k] = format::to_e4m3(values[k]);
}

/// The scale of one row, and in `ratio` its ratio to that of the largest value.
float search_scale(std::span<const float> row, const QuantizationGrid& grid, DType scale_dtype, const float* importance,
                   double& ratio) {
  const double widest =
      static_cast<double>(format::float_from_bits(row_loops::largest_bits(row))) / static_cast<double>(grid.range);
  ratio = 1;
  if (widest == 0) return 1;
  if (!importance) return stored_scale(widest, scale_dtype);
  std::array<float, clip_ratios.size()> scales;
  std::array<double, clip_ratios.size()> errors;
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = stored_scale(widest * clip_ratios[i], scale_dtype);
  row_loops::quantization_errors(grid, row, importance, scales, errors);
  const auto best = static_cast<std::size_t>(std::ranges::min_element(errors) - errors.begin());
  ratio = clip_ratios[best];
  return scales[best];
}

const StoredTensor& existing(const Checkpoint& checkpoint, const std::string& name) {
  const StoredTensor* stored = checkpoint.find(name);
  CERMET_ASSERT(stored != nullptr);  // expected tensors were checked when the checkpoint was opened
  return *stored;
}

}  // namespace

OwnedTensor read_tensor(const Checkpoint& checkpoint, const std::string& name, ThreadPool& pool) {
  const StoredTensor& stored = existing(checkpoint, name);
  CERMET_ASSERT(stored.shape.size() <= Shape::max_rank);
  Shape shape;
  for (const std::int64_t dim : stored.shape) shape.push_back(dim);
  OwnedTensor tensor(stored.dtype, shape);
  pool.parallel_for(stored.bytes(), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    checkpoint.read(stored, begin, {tensor.memory.data() + begin, static_cast<std::size_t>(end - begin)});
  });
  return tensor;
}

void check_finite(const Checkpoint& checkpoint, const std::string& name, ThreadPool& pool) {
  const StoredTensor& stored = existing(checkpoint, name);
  std::atomic<bool> finite{true};
  pool.parallel_for(stored.elements(), finite_block, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> values(finite_block);
    AlignedBuffer bytes(finite_block * byte_size(stored.dtype));
    for (; begin < end; begin += finite_block) {
      const std::int64_t count = std::min(finite_block, end - begin);
      const std::span<float> part(values.data(), static_cast<std::size_t>(count));
      checkpoint.read(stored, begin * byte_size(stored.dtype),
                      {bytes.data(), static_cast<std::size_t>(count * byte_size(stored.dtype))});
      widen(bytes.data(), stored.dtype, part);
      if (row_loops::largest_bits(part) >= infinite_weight_bits) finite = false;
    }
  });
  if (!finite)
    fail(Status::invalid_file, "{}: {}: expected finite values, found NaN or infinity",
         checkpoint.file_of(stored).path().string(), quote(name));
}

void widen_row(const TensorView& matrix, std::int64_t row, const WeightFactors& factors, std::span<float> destination) {
  widen(matrix.as<std::byte>() + row * matrix.shape.back() * byte_size(matrix.dtype), matrix.dtype, destination);
  multiply(destination, factors, row);
}

OwnedTensor scaled_tensor(const TensorView& tensor, const WeightFactors& factors, ThreadPool& pool) {
  OwnedTensor scaled(tensor.dtype, tensor.shape);
  const std::int64_t columns = tensor.shape.back(), rows = columns == 0 ? 0 : tensor.elements() / columns;
  pool.parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t r = begin; r < end; ++r) {
      widen_row(tensor, r, factors, row);
      narrow(row, tensor.dtype, scaled.memory.data() + r * columns * byte_size(tensor.dtype));
    }
  });
  return scaled;
}

std::vector<float> column_absmax(const TensorView& matrix, ThreadPool& pool) {
  const std::int64_t columns = matrix.shape[1];
  std::vector<float> largest(static_cast<std::size_t>(columns));
  pool.parallel_for(columns, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> part(static_cast<std::size_t>(end - begin));
    for (std::int64_t r = 0; r < matrix.shape[0]; ++r) {
      widen(matrix.as<std::byte>() + (r * columns + begin) * byte_size(matrix.dtype), matrix.dtype, part);
      for (std::int64_t c = begin; c < end; ++c)
        largest[static_cast<std::size_t>(c)] =
            std::max(largest[static_cast<std::size_t>(c)], std::abs(part[static_cast<std::size_t>(c - begin)]));
    }
  });
  return largest;
}

QuantizedWeight quantize_weight(const TensorView& matrix, const WeightFactors& factors, const QuantizationGrid& grid,
                                DType scale_dtype, std::span<const float> importance, ThreadPool& pool) {
  const std::int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  QuantizedWeight result{OwnedTensor(grid.dtype, matrix.shape), std::vector<float>(static_cast<std::size_t>(rows)), 1};
  std::vector<double> ratios(static_cast<std::size_t>(rows));
  pool.parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(columns)), quantized(static_cast<std::size_t>(columns));
    for (std::int64_t r = begin; r < end; ++r) {
      widen_row(matrix, r, factors, row);
      const auto index = static_cast<std::size_t>(r);
      result.scales[index] =
          search_scale(row, grid, scale_dtype, importance.empty() ? nullptr : importance.data(), ratios[index]);
      row_loops::encode(grid, row, result.scales[index], quantized.data());
      store_quantized(quantized, grid.dtype, result.quantized.memory.data() + r * columns);
    }
  });
  double sum = 0;
  for (const double ratio : ratios) sum += ratio;
  if (rows > 0) result.clip_ratio = sum / static_cast<double>(rows);
  return result;
}

float stored_scale(double scale, DType dtype) {
  const double rounded = format::rounded_to(dtype, scale);
  if (!std::isfinite(rounded))
    fail(Status::unsupported, "scale: expected one that {} holds, found {}", name_of(dtype), scale);
  if (rounded > 0) return static_cast<float>(rounded);
  const double smallest = dtype == DType::f16 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-133 : 0x1p-149;
  return static_cast<float>(smallest);
}

}  // namespace cermet

#include "model/weight_loader.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "format/half.hpp"

namespace cermet {
namespace {

constexpr std::int64_t chunk_elements = 1 << 18;

float widen(float x) { return x; }
float widen(format::bf16 x) { return format::to_float(x); }
float widen(format::f16 x) { return format::to_float(x); }
void narrow(float x, float& y) { y = x; }
void narrow(float x, format::bf16& y) { y = format::to_bf16(x); }
void narrow(float x, format::f16& y) { y = format::to_f16(x); }

template <class From, class To>
void convert_elements(const std::byte* from, std::byte* to, std::int64_t count) {
  const From* source = reinterpret_cast<const From*>(from);
  To* destination = reinterpret_cast<To*>(to);
  for (std::int64_t i = 0; i < count; ++i) narrow(widen(source[i]), destination[i]);
}

using Convert = void (*)(const std::byte*, std::byte*, std::int64_t);

template <class From>
Convert converter_from(DType to) {
  switch (to) {
    case DType::f32: return convert_elements<From, float>;
    case DType::bf16: return convert_elements<From, format::bf16>;
    case DType::f16: return convert_elements<From, format::f16>;
    default: return nullptr;
  }
}

Convert converter(DType from, DType to) {
  switch (from) {
    case DType::f32: return converter_from<float>(to);
    case DType::bf16: return converter_from<format::bf16>(to);
    case DType::f16: return converter_from<format::f16>(to);
    default: return nullptr;
  }
}

void check_type(const StoredTensor& tensor) {
  if (dtypes::real.contains(tensor.dtype)) return;
  fail(Status::unsupported, "tensor {}: expected F32, BF16 or F16, found {}", tensor.name, stored_name_of(tensor.dtype));
}

/// Reads a whole tensor to `destination` as `dtype`.
void load_tensor(const Checkpoint& checkpoint, const StoredTensor& tensor, DType dtype, std::byte* destination) {
  check_type(tensor);
  if (tensor.dtype == dtype) return checkpoint.read(tensor, 0, {destination, static_cast<std::size_t>(tensor.bytes())});
  const Convert convert = converter(tensor.dtype, dtype);
  CERMET_ASSERT(convert != nullptr);
  const auto from_bytes = static_cast<std::int64_t>(size_of(tensor.dtype)), to_bytes = static_cast<std::int64_t>(size_of(dtype));
  AlignedBuffer chunk(std::min(chunk_elements, tensor.elements()) * from_bytes);
  for (std::int64_t begin = 0; begin < tensor.elements(); begin += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, tensor.elements() - begin);
    checkpoint.read(tensor, begin * from_bytes, {chunk.data(), static_cast<std::size_t>(count * from_bytes)});
    convert(chunk.data(), destination + begin * to_bytes, count);
  }
}

/// Fills one matrix or vector from its parts, stacked along the first axis.
void load_slice(const Checkpoint& checkpoint, const std::vector<std::string>& parts, const TensorView& destination,
                const std::function<void(std::int64_t)>& on_bytes) {
  std::byte* at = destination.as<std::byte>();
  for (const std::string& part : parts) {
    const StoredTensor* tensor = checkpoint.find(part);
    CERMET_ASSERT(tensor != nullptr);  // expected_tensors was checked when the engine opened the checkpoint
    load_tensor(checkpoint, *tensor, destination.dtype, at);
    at += tensor->elements() * static_cast<std::int64_t>(size_of(destination.dtype));
    if (on_bytes) on_bytes(tensor->bytes());
  }
  CERMET_ASSERT(at - destination.as<std::byte>() == destination.elements() * static_cast<std::int64_t>(size_of(destination.dtype)));
}

/// One row of float32 values as int8 codes. Returns the scale, absmax / 127; a row of zeros has scale 0. A value that is not finite has no code.
float quantize_row(const float* row, std::int64_t count, std::int8_t* codes, const std::string& name) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(row[i])) fail(Status::invalid_file, "tensor {}: expected finite values to quantize, found {}", name, row[i]);
    largest = std::max(largest, std::abs(row[i]));
  }
  const float scale = largest / 127;
  for (std::int64_t i = 0; i < count; ++i)
    codes[i] = scale > 0 ? static_cast<std::int8_t>(std::nearbyint(std::clamp(row[i] / scale, -128.0f, 127.0f))) : std::int8_t{0};
  return scale;
}

/// Codes and scales of one matrix made of parts; either destination may be null.
void quantize_slice(const Checkpoint& checkpoint, const std::vector<std::string>& parts, std::int8_t* codes, float* scales, std::int64_t columns,
                    const std::function<void(std::int64_t)>& on_bytes) {
  std::vector<std::int8_t> unused(codes ? 0 : static_cast<std::size_t>(columns));
  std::int64_t row = 0;
  for (const std::string& part : parts) {
    const StoredTensor* tensor = checkpoint.find(part);
    CERMET_ASSERT(tensor != nullptr && tensor->elements() % std::max<std::int64_t>(columns, 1) == 0);
    const OwnedTensor values(DType::f32, {tensor->elements()});
    load_tensor(checkpoint, *tensor, DType::f32, values.memory.data());
    for (std::int64_t r = 0; r < tensor->elements() / std::max<std::int64_t>(columns, 1); ++r, ++row) {
      const float scale = quantize_row(values.view.as<float>() + r * columns, columns, codes ? codes + row * columns : unused.data(), part);
      if (scales) scales[row] = scale;
    }
    if (on_bytes) on_bytes(tensor->bytes());
  }
}

/// Fills a quantized weight, or its scales, slice by slice.
void load_quantized(const Checkpoint& checkpoint, const WeightSource& source, std::int64_t slice, const TensorView& destination,
                    const std::function<void(std::int64_t)>& on_bytes) {
  const bool codes = source.form == WeightSource::Form::codes;
  const auto columns_of = [&](const std::vector<std::string>& parts) {
    const StoredTensor* tensor = checkpoint.find(parts.front());
    CERMET_ASSERT(tensor != nullptr && tensor->shape.size() == 2);
    return tensor->shape[1];
  };
  const std::size_t first = slice >= 0 ? static_cast<std::size_t>(slice) : 0, last = slice >= 0 ? first + 1 : source.slices.size();
  const std::int64_t step = destination.elements() / static_cast<std::int64_t>(last - first);
  for (std::size_t s = first; s < last; ++s) {
    const std::int64_t at = static_cast<std::int64_t>(s - first) * step;
    quantize_slice(checkpoint, source.slices.at(s), codes ? destination.as<std::int8_t>() + at : nullptr, codes ? nullptr : destination.as<float>() + at,
                   columns_of(source.slices.at(s)), codes ? on_bytes : nullptr);
  }
}

}  // namespace

DType storage_type(const Checkpoint& checkpoint) {
  std::optional<DType> common;
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config())) {
    const StoredTensor& tensor = checkpoint.require(expected.name, expected.shape);
    check_type(tensor);
    if (common && *common != tensor.dtype) return DType::f32;
    common = tensor.dtype;
  }
  return common.value_or(DType::f32);
}

LoadWeight make_weight_loader(const Checkpoint& checkpoint, std::unordered_map<std::string, WeightSource> sources, std::function<void(std::int64_t)> on_bytes) {
  return
      [&checkpoint, sources = std::move(sources), on_bytes = std::move(on_bytes)](const std::string& name, std::int64_t slice, const TensorView& destination) {
        const auto source = sources.find(name);
        CERMET_ASSERT(source != sources.end());
        const auto& slices = source->second.slices;
        if (source->second.form != WeightSource::Form::plain) return load_quantized(checkpoint, source->second, slice, destination, on_bytes);
        if (slice >= 0 || slices.size() == 1)
          return load_slice(checkpoint, slices.at(static_cast<std::size_t>(std::max<std::int64_t>(slice, 0))), destination, on_bytes);
        for (std::size_t e = 0; e < slices.size(); ++e) {
          const std::int64_t step = destination.strides[0] * static_cast<std::int64_t>(size_of(destination.dtype));
          const TensorView matrix(destination.as<std::byte>() + static_cast<std::int64_t>(e) * step, destination.dtype,
                                  {destination.shape[1], destination.shape[2]});
          load_slice(checkpoint, slices[e], matrix, on_bytes);
        }
      };
}

}  // namespace cermet

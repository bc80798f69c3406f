#include "model/weight_loader.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "format/fp8.hpp"
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

const StoredTensor& existing(const TensorReader& reader, std::string_view name) {
  const StoredTensor* tensor = reader.find(name);
  if (tensor == nullptr) fail(Status::invalid_file, "tensor {}: expected one of this name, found none", name);
  return *tensor;
}

/// Reads a whole tensor to `destination` as `dtype`.
void load_tensor(const TensorReader& reader, const StoredTensor& tensor, DType dtype, std::byte* destination) {
  if (tensor.dtype == dtype) return reader.read(tensor, 0, {destination, static_cast<std::size_t>(tensor.bytes())});
  check_type(tensor);
  const Convert convert = converter(tensor.dtype, dtype);
  CERMET_ASSERT(convert != nullptr);
  const auto from_bytes = static_cast<std::int64_t>(size_of(tensor.dtype)), to_bytes = static_cast<std::int64_t>(size_of(dtype));
  AlignedBuffer chunk(std::min(chunk_elements, tensor.elements()) * from_bytes);
  for (std::int64_t begin = 0; begin < tensor.elements(); begin += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, tensor.elements() - begin);
    reader.read(tensor, begin * from_bytes, {chunk.data(), static_cast<std::size_t>(count * from_bytes)});
    convert(chunk.data(), destination + begin * to_bytes, count);
  }
}

bool is_codes(DType dtype) { return dtype == DType::i8 || dtype == DType::f8_e4m3; }

std::string_view module_of(std::string_view tensor) { return tensor.substr(0, tensor.rfind('.')); }

/// Stored scales of the rows of "X.weight", "X.weight_scale" or of another name: as many as rows, or one for all.
std::vector<float> channel_scales(const TensorReader& reader, const std::string& name) {
  const StoredTensor& weight = existing(reader, fmt::format("{}.weight", module_of(name)));
  const StoredTensor& tensor = existing(reader, name);
  CERMET_ASSERT(!weight.shape.empty() && (tensor.elements() == 1 || tensor.elements() == weight.shape[0]));
  std::vector<float> scales(static_cast<std::size_t>(tensor.elements()));
  load_tensor(reader, tensor, DType::f32, reinterpret_cast<std::byte*>(scales.data()));
  if (scales.size() == 1) scales.assign(static_cast<std::size_t>(weight.shape[0]), scales.front());
  return scales;
}

/// Scales of modules whose weights are stacked.
void load_channel_scales(const TensorReader& reader, const std::vector<std::string>& parts, const TensorView& destination) {
  float* at = destination.as<float>();
  for (const std::string& part : parts) {
    const std::vector<float> scales = channel_scales(reader, part);
    CERMET_ASSERT(at + scales.size() <= destination.as<float>() + destination.elements());
    at = std::ranges::copy(scales, at).out;
  }
  CERMET_ASSERT(at == destination.as<float>() + destination.elements());
}

/// A stored weight of codes as real values: code times the scale of its row, in float32, rounded once.
void load_dequantized(const TensorReader& reader, const StoredTensor& tensor, DType dtype, std::byte* destination) {
  const std::vector<float> scales = channel_scales(reader, fmt::format("{}.weight_scale", module_of(tensor.name)));
  const std::int64_t columns = tensor.elements() / std::max<std::int64_t>(tensor.shape[0], 1);
  const Convert convert = converter(DType::f32, dtype);
  CERMET_ASSERT(convert != nullptr);
  std::vector<std::byte> codes(static_cast<std::size_t>(columns));
  std::vector<float> values(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < tensor.shape[0]; ++row) {
    reader.read(tensor, row * columns, codes);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float code = tensor.dtype == DType::i8 ? static_cast<float>(static_cast<std::int8_t>(codes[i]))
                                                   : format::to_float(format::e4m3{static_cast<std::uint8_t>(codes[i])});
      values[i] = code * scales[static_cast<std::size_t>(row)];
    }
    convert(reinterpret_cast<const std::byte*>(values.data()), destination + row * columns * static_cast<std::int64_t>(size_of(dtype)), columns);
  }
}

/// Fills one matrix or vector from its parts, stacked along the first axis.
void load_slice(const TensorReader& reader, const std::vector<std::string>& parts, const TensorView& destination,
                const std::function<void(std::int64_t)>& on_bytes) {
  std::byte* at = destination.as<std::byte>();
  for (const std::string& part : parts) {
    const StoredTensor& tensor = existing(reader, part);
    if (is_codes(tensor.dtype) && dtypes::real.contains(destination.dtype)) load_dequantized(reader, tensor, destination.dtype, at);
    else load_tensor(reader, tensor, destination.dtype, at);
    at += tensor.elements() * static_cast<std::int64_t>(size_of(destination.dtype));
    if (on_bytes) on_bytes(tensor.bytes());
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
void quantize_slice(const TensorReader& reader, const std::vector<std::string>& parts, std::int8_t* codes, float* scales, std::int64_t columns,
                    const std::function<void(std::int64_t)>& on_bytes) {
  std::vector<std::int8_t> unused(codes ? 0 : static_cast<std::size_t>(columns));
  std::int64_t row = 0;
  for (const std::string& part : parts) {
    const StoredTensor& tensor = existing(reader, part);
    CERMET_ASSERT(tensor.elements() % std::max<std::int64_t>(columns, 1) == 0);
    const OwnedTensor values(DType::f32, {tensor.elements()});
    load_tensor(reader, tensor, DType::f32, values.memory.data());
    for (std::int64_t r = 0; r < tensor.elements() / std::max<std::int64_t>(columns, 1); ++r, ++row) {
      const float scale = quantize_row(values.view.as<float>() + r * columns, columns, codes ? codes + row * columns : unused.data(), part);
      if (scales) scales[row] = scale;
    }
    if (on_bytes) on_bytes(tensor.bytes());
  }
}

/// Fills a quantized weight, or its scales, slice by slice.
void load_quantized(const TensorReader& reader, const WeightSource& source, std::int64_t slice, const TensorView& destination,
                    const std::function<void(std::int64_t)>& on_bytes) {
  const bool codes = source.form == WeightSource::Form::codes;
  const auto columns_of = [&](const std::vector<std::string>& parts) {
    const StoredTensor& tensor = existing(reader, parts.front());
    CERMET_ASSERT(tensor.shape.size() == 2);
    return tensor.shape[1];
  };
  const std::size_t first = slice >= 0 ? static_cast<std::size_t>(slice) : 0, last = slice >= 0 ? first + 1 : source.slices.size();
  const std::int64_t step = destination.elements() / static_cast<std::int64_t>(last - first);
  for (std::size_t s = first; s < last; ++s) {
    const std::int64_t at = static_cast<std::int64_t>(s - first) * step;
    quantize_slice(reader, source.slices.at(s), codes ? destination.as<std::int8_t>() + at : nullptr, codes ? nullptr : destination.as<float>() + at,
                   columns_of(source.slices.at(s)), codes ? on_bytes : nullptr);
  }
}

}  // namespace

DType storage_type(const Checkpoint& checkpoint) {
  std::optional<DType> common;
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config(), checkpoint.quantization())) {
    const StoredTensor& tensor = checkpoint.require(expected);
    if (!expected.is_parameter || !dtypes::real.contains(tensor.dtype)) continue;
    if (common && *common != tensor.dtype) return DType::f32;
    common = tensor.dtype;
  }
  return common.value_or(DType::f32);
}

TensorReader reader_of(const Checkpoint& checkpoint) {
  return {[&checkpoint](std::string_view name) { return checkpoint.find(name); },
          [&checkpoint](const StoredTensor& tensor, std::int64_t offset, std::span<std::byte> destination) { checkpoint.read(tensor, offset, destination); }};
}

LoadWeight make_weight_loader(TensorReader reader, std::unordered_map<std::string, WeightSource> sources, std::function<void(std::int64_t)> on_bytes) {
  return [reader = std::move(reader), sources = std::move(sources), on_bytes = std::move(on_bytes)](const std::string& name, std::int64_t slice,
                                                                                                    const TensorView& destination) {
    const auto source = sources.find(name);
    CERMET_ASSERT(source != sources.end());
    const WeightSource::Form form = source->second.form;
    if (form == WeightSource::Form::codes || form == WeightSource::Form::scales) return load_quantized(reader, source->second, slice, destination, on_bytes);
    const auto& slices = source->second.slices;
    const std::size_t first = slice >= 0 ? static_cast<std::size_t>(slice) : 0, last = slice >= 0 ? first + 1 : slices.size();
    const std::int64_t elements = destination.elements() / static_cast<std::int64_t>(last - first);
    for (std::size_t s = first; s < last; ++s) {
      std::byte* at = destination.as<std::byte>() + static_cast<std::int64_t>(s - first) * elements * static_cast<std::int64_t>(size_of(destination.dtype));
      const TensorView part(at, destination.dtype, {elements});
      if (form == WeightSource::Form::channel_scales) load_channel_scales(reader, slices.at(s), part);
      else load_slice(reader, slices.at(s), part, on_bytes);
    }
  };
}

}  // namespace cermet

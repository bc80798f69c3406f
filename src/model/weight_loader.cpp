#include "model/weight_loader.hpp"
#include "model/convert_elements.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "model/row_quantization.hpp"

namespace cermet {
namespace {

constexpr std::int64_t piece_elements = 1 << 18;  // what a thread reads and converts at a time

bool is_quantized(DType dtype) { return dtype == DType::i8 || dtype == DType::f8_e4m3; }

/// "X" of "X.weight".
std::string_view module_of(std::string_view tensor) { return tensor.substr(0, tensor.rfind('.')); }

class WeightLoader {
 public:
  WeightLoader(TensorReader reader, std::unordered_map<std::string, WeightSource> sources,
               std::function<void(std::int64_t)> on_bytes, ThreadPool* pool)
      : reader_(std::move(reader)), sources_(std::move(sources)), on_bytes_(std::move(on_bytes)), pool_(pool) {}

  void load(const std::string& name, std::int64_t slice, const TensorView& destination) {
    const auto source = sources_.find(name);
    CERMET_ASSERT(source != sources_.end());
    const auto& slices = source->second.slices;
    const std::size_t first = slice >= 0 ? static_cast<std::size_t>(slice) : 0,
                      last = slice >= 0 ? first + 1 : slices.size();
    std::byte* at = destination.as<std::byte>();
    for (std::size_t s = first; s < last; ++s)
      for (const std::string& part : slices.at(s))
        at += load_part(source->second, part, destination.dtype, at) * byte_size(destination.dtype);
    CERMET_ASSERT(at - destination.as<std::byte>() == destination.elements() * byte_size(destination.dtype));
  }

 private:
  /// One tensor, converted. Returns the elements written.
  std::int64_t load_part(const WeightSource& source, const std::string& part, DType dtype, std::byte* at) {
    const WeightSource::Form form = source.form;
    const auto write_scales = [&](const std::vector<float>& scales) {
      CERMET_ASSERT(dtype == DType::f32);
      std::ranges::copy(scales, reinterpret_cast<float*>(at));
      return static_cast<std::int64_t>(scales.size());
    };
    if (form == WeightSource::Form::channel_scales) return write_scales(channel_scales(part));
    if (reader_.find(part) == nullptr) {
      if (const StoredTensor* packed = reader_.find(part + "_packed")) return load_packed(*packed, part, dtype, at);
    }
    const StoredTensor& tensor = existing(part);
    if (form == WeightSource::Form::scales) {
      if (!made_scales_.contains(part)) quantize(tensor, source.quantized_type, nullptr);
      return write_scales(made_scales_.at(part));
    }
    const bool rounded = form == WeightSource::Form::rounded && stored_reals.contains(tensor.dtype);
    if (rounded && reader_.find(fmt::format("{}.weight_scale", module_of(part))))
      round(tensor, source.quantized_type, dtype, at);
    else if (form == WeightSource::Form::quantized) quantize(tensor, source.quantized_type, at);
    else if (is_quantized(tensor.dtype) && dtypes::real.contains(dtype)) dequantize(tensor, dtype, at);
    else convert(tensor, dtype, at);
    if (on_bytes_) on_bytes_(tensor.bytes());
    return tensor.elements();
  }

  /// 8-bit quantized values, each + 128, four to an int32; rows are padded to whole words. As they are, or dequantized.
  /// Returns the elements written.
  std::int64_t load_packed(const StoredTensor& packed, const std::string& name, DType dtype,
                           std::byte* destination) const {
    std::int64_t shape[2];
    read(existing(name + "_shape"), 0, 2, DType::i64, reinterpret_cast<std::byte*>(shape));
    const std::int64_t rows = packed.shape.at(0), row_bytes = 4 * packed.shape.at(1), columns = shape[1];
    CERMET_ASSERT(shape[0] == rows && columns <= row_bytes && (dtypes::real.contains(dtype) || dtype == DType::i8));
    const std::vector<float> scales = scales_of_rows(existing(name + "_scale"), rows);
    for_pieces(rows, columns, [&](std::int64_t begin, std::int64_t count) {
      std::vector<std::byte> quantized(static_cast<std::size_t>(count * row_bytes));
      reader_.read(packed, begin * row_bytes, quantized);
      for (std::byte& code : quantized) code ^= std::byte{0x80};
      for (std::int64_t r = 0; r < count; ++r) {
        const auto row =
            std::span(quantized).subspan(static_cast<std::size_t>(r * row_bytes), static_cast<std::size_t>(columns));
        std::byte* out = destination + (begin + r) * columns * byte_size(dtype);
        if (dtype == DType::i8) std::ranges::copy(row, out);
        else dequantize_row(DType::i8, row, scales[static_cast<std::size_t>(begin + r)], dtype, out);
      }
    });
    if (on_bytes_) on_bytes_(packed.bytes());
    return rows * columns;
  }

  const StoredTensor& existing(std::string_view name) const {
    const StoredTensor* tensor = reader_.find(name);
    if (tensor == nullptr) fail(Status::invalid_file, "tensor {}: expected one of this name, found none", name);
    return *tensor;
  }

  /// Calls body(first row, rows) for pieces of a tensor seen as rows of `columns`, on all threads.
  void for_pieces(std::int64_t rows, std::int64_t columns, FunctionRef<void(std::int64_t, std::int64_t)> body) const {
    const std::int64_t step = std::max<std::int64_t>(1, piece_elements / std::max<std::int64_t>(columns, 1));
    if (rows <= step || pool_ == nullptr) return body(0, rows);
    pool_->dynamic_for(div_up(rows, step),
                       [&](std::int64_t piece) { body(piece * step, std::min(step, rows - piece * step)); });
  }

  /// Part of a tensor, from element `begin` on, as another type.
  void read(const StoredTensor& tensor, std::int64_t begin, std::int64_t count, DType dtype,
            std::byte* destination) const {
    if (tensor.dtype == dtype)
      return reader_.read(tensor, begin * byte_size(dtype),
                          {destination, static_cast<std::size_t>(count * byte_size(dtype))});
    if (!stored_reals.contains(tensor.dtype) && !(tensor.dtype == DType::i64 && tensor.name.ends_with(".deq_scale")))
      fail(Status::unsupported, "tensor {}: expected F32, BF16 or F16, found {}", tensor.name,
           stored_name_of(tensor.dtype));
    AlignedBuffer stored(count * byte_size(tensor.dtype));
    reader_.read(tensor, begin * byte_size(tensor.dtype), {stored.data(), static_cast<std::size_t>(stored.size())});
    convert_elements(tensor.dtype, stored.data(), dtype, destination, count);
  }

  void convert(const StoredTensor& tensor, DType dtype, std::byte* destination) const {
    for_pieces(tensor.elements(), 1, [&](std::int64_t begin, std::int64_t count) {
      read(tensor, begin, count, dtype, destination + begin * byte_size(dtype));
    });
  }

  /// Stored scales of the rows of "X.weight", "X.weight_scale" or of another name: as many as rows, or one for all.
  std::vector<float> channel_scales(const std::string& name) const {
    const std::string weight = fmt::format("{}.weight", module_of(name));
    const StoredTensor* packed = reader_.find(weight + "_packed");
    return scales_of_rows(existing(name), (packed ? *packed : existing(weight)).shape.at(0));
  }
  std::vector<float> scales_of_rows(const StoredTensor& tensor, std::int64_t rows) const {
    CERMET_ASSERT(tensor.elements() == 1 || tensor.elements() == rows);
    std::vector<float> scales(static_cast<std::size_t>(tensor.elements()));
    read(tensor, 0, tensor.elements(), DType::f32, reinterpret_cast<std::byte*>(scales.data()));
    if (scales.size() == 1) scales.assign(static_cast<std::size_t>(rows), scales.front());
    return scales;
  }

  /// A stored quantized weight, dequantized.
  void dequantize(const StoredTensor& tensor, DType dtype, std::byte* destination) const {
    const std::vector<float> scales = channel_scales(fmt::format("{}.weight_scale", module_of(tensor.name)));
    const std::int64_t columns = tensor.shape.at(1);
    for_pieces(tensor.shape[0], columns, [&](std::int64_t begin, std::int64_t rows) {
      std::vector<std::byte> quantized(static_cast<std::size_t>(rows * columns));
      reader_.read(tensor, begin * columns, quantized);
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto row =
            std::span(quantized).subspan(static_cast<std::size_t>(r * columns), static_cast<std::size_t>(columns));
        dequantize_row(tensor.dtype, row, scales[static_cast<std::size_t>(begin + r)], dtype,
                       destination + (begin + r) * columns * byte_size(dtype));
      }
    });
  }

  /// An unquantized weight that has stored scales, as quantized values or dequantized again.
  void round(const StoredTensor& tensor, DType quantized_type, DType dtype, std::byte* destination) const {
    const std::vector<float> scales = channel_scales(fmt::format("{}.weight_scale", module_of(tensor.name)));
    const std::int64_t columns = tensor.shape.at(1);
    for_pieces(tensor.shape[0], columns, [&](std::int64_t begin, std::int64_t count) {
      std::vector<float> values(static_cast<std::size_t>(count * columns));
      std::vector<std::byte> quantized(static_cast<std::size_t>(columns));
      read(tensor, begin * columns, count * columns, DType::f32, reinterpret_cast<std::byte*>(values.data()));
      for (std::int64_t r = 0; r < count; ++r) {
        const float scale = scales[static_cast<std::size_t>(begin + r)];
        std::byte* row = destination + (begin + r) * columns * byte_size(dtype);
        round_row(std::span(values).subspan(static_cast<std::size_t>(r * columns), static_cast<std::size_t>(columns)),
                  quantized_type, scale, quantized.data());
        if (is_quantized(dtype)) std::ranges::copy(quantized, row);
        else dequantize_row(quantized_type, quantized, scale, dtype, row);
      }
    });
  }

  /// Quantizes an unquantized weight; keeps the scales, which are requested next. `quantized values` may be null.
  void quantize(const StoredTensor& tensor, DType quantized_type, std::byte* quantized) {
    CERMET_ASSERT(tensor.shape.size() == 2);
    const std::int64_t rows = tensor.shape[0], columns = tensor.shape[1];
    std::vector<float> scales(static_cast<std::size_t>(rows));
    for_pieces(rows, columns, [&](std::int64_t begin, std::int64_t count) {
      std::vector<float> values(static_cast<std::size_t>(count * columns));
      std::vector<std::byte> unused(quantized ? 0 : static_cast<std::size_t>(columns));
      read(tensor, begin * columns, count * columns, DType::f32, reinterpret_cast<std::byte*>(values.data()));
      for (std::int64_t r = 0; r < count; ++r) {
        const auto row =
            std::span(values).subspan(static_cast<std::size_t>(r * columns), static_cast<std::size_t>(columns));
        const float scale =
            quantize_row(row, quantized_type, quantized ? quantized + (begin + r) * columns : unused.data());
        if (std::isnan(scale))
          fail(Status::invalid_file, "tensor {}: expected finite values to quantize, found others in row {}",
               tensor.name, begin + r);
        scales[static_cast<std::size_t>(begin + r)] = scale;
      }
    });
    made_scales_[tensor.name] = std::move(scales);
  }

  TensorReader reader_;
  std::unordered_map<std::string, WeightSource> sources_;
  std::function<void(std::int64_t)> on_bytes_;
  ThreadPool* pool_;
  std::map<std::string, std::vector<float>> made_scales_;  ///< of weights that were quantized
};

}  // namespace

DType storage_type(const Checkpoint& checkpoint) {
  std::optional<DType> common;
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config(), checkpoint.quantization())) {
    const StoredTensor& tensor = checkpoint.require(expected);
    if (!expected.is_parameter || !stored_reals.contains(tensor.dtype)) continue;
    if (tensor.dtype == DType::f64) return DType::f32;
    if (common && *common != tensor.dtype) return DType::f32;
    common = tensor.dtype;
  }
  return common.value_or(DType::f32);
}

TensorReader reader_of(const Checkpoint& checkpoint) {
  return {[&checkpoint](std::string_view name) { return checkpoint.find(name); },
          [&checkpoint](const StoredTensor& tensor, std::int64_t offset, std::span<std::byte> destination) {
            checkpoint.read(tensor, offset, destination);
          }};
}

LoadWeight make_weight_loader(TensorReader reader, std::unordered_map<std::string, WeightSource> sources,
                              std::function<void(std::int64_t)> on_bytes, ThreadPool* pool) {
  return [loader = std::make_shared<WeightLoader>(std::move(reader), std::move(sources), std::move(on_bytes), pool)](
             const std::string& name, std::int64_t slice, const TensorView& destination) {
    loader->load(name, slice, destination);
  };
}

}  // namespace cermet

#include "model/checkpoint/quantization_check.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "format/element.hpp"
#include "model/linear_modules.hpp"

namespace cermet {
namespace {

constexpr std::int64_t check_piece_bytes =
    1 << 16;  // a file may be sparse, so that a tensor's size says nothing about memory

/// Calls visit(value) for every element, reading in pieces.
template <class Visit>
void for_values(const Checkpoint& checkpoint, const StoredTensor& tensor, Visit visit) {
  const auto element = byte_size(tensor.dtype);
  const bool packed_scale = tensor.dtype == DType::i64 && tensor.name.ends_with("_scale");
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(check_piece_bytes, tensor.bytes())));
  for (std::int64_t at = 0; at < tensor.bytes(); at += check_piece_bytes) {
    const std::int64_t bytes = std::min(check_piece_bytes, tensor.bytes() - at);
    checkpoint.read(tensor, at, std::span(piece).first(static_cast<std::size_t>(bytes)));
    for (std::int64_t i = 0; i < bytes / element; ++i) {
      const double value = format::load_element(piece.data(), tensor.dtype, i);
      visit(packed_scale ? static_cast<double>(
                               format::float_from_bits(static_cast<std::uint32_t>(static_cast<std::int64_t>(value))))
                         : value);
    }
  }
}

/// All elements of a tensor whose shape was checked to be small.
std::vector<double> values_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  std::vector<double> values;
  for_values(checkpoint, tensor, [&](double value) { values.push_back(value); });
  return values;
}

[[noreturn]] void bad_value(const Checkpoint& checkpoint, const StoredTensor& tensor, std::string_view expected,
                            double found) {
  fail(Status::invalid_file, "{}: {}: expected {}, found {}", checkpoint.file_of(tensor).path().string(),
       quote(tensor.name), expected, found);
}

void expect_zeros(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  for_values(checkpoint, tensor, [&](double value) {
    if (value != 0)
      fail(Status::unsupported, "{}: {}: expected zeros, because quantization is symmetric here, found {}",
           checkpoint.file_of(tensor).path().string(), quote(tensor.name), value);
  });
}

/// Rows of the weights of a model, by the tensor's name without ".weight".
std::unordered_map<std::string, std::int64_t> weight_rows(const ModelConfig& config) {
  std::unordered_map<std::string, std::int64_t> rows;
  for (const ExpectedTensor& expected : expected_tensors(config))
    if (expected.name.ends_with(".weight"))
      rows.emplace(expected.name.substr(0, expected.name.rfind('.')), expected.shape[0]);
  return rows;
}

/// Tensors that other tools add where a model is not what its configuration says: harmless only as zeros. Those of
/// modules that the model does not have change nothing.
void check_extra_tensors(const Checkpoint& checkpoint) {
  const std::unordered_map<std::string, std::int64_t> rows = weight_rows(checkpoint.config());
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    if (tensor.name.ends_with(".weight_g_idx"))
      fail(Status::unsupported, "{}: {}: expected no such tensor", checkpoint.file_of(tensor).path().string(),
           quote(tensor.name));
    const bool of_input = tensor.name.ends_with(".input_zero_point");
    if (!of_input && !tensor.name.ends_with(".weight_zero_point") && !tensor.name.ends_with("norm.bias")) continue;
    const auto module = rows.find(tensor.name.substr(0, tensor.name.rfind('.')));
    if (module == rows.end()) continue;
    const std::int64_t most = of_input ? 1 : module->second;
    if (tensor.elements() > most)
      fail(Status::invalid_file, "{}: {}: expected at most {} elements, found shape {}",
           checkpoint.file_of(tensor).path().string(), quote(tensor.name), most, shape_to_string(tensor.shape));
    expect_zeros(checkpoint, tensor);
  }
}

/// "X.weight_shape" must be that of the module, which "X.weight_packed" has but for the padding of its rows.
void check_packed_shapes(const Checkpoint& checkpoint, const Quantization& quantization) {
  if (quantization.packed.empty()) return;
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config())) {
    if (!expected.name.ends_with(".weight") ||
        !quantization.packed.contains(expected.name.substr(0, expected.name.rfind('.'))))
      continue;
    const StoredTensor& tensor = *checkpoint.find(expected.name + "_shape");
    const std::vector<double> found = values_of(checkpoint, tensor);
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i] != static_cast<double>(expected.shape[i]))
        bad_value(checkpoint, tensor, shape_to_string(expected.shape), found[i]);
  }
}

/// The scale of a module's input, and its offset where there is one.
struct StaticInput {
  double scale, offset = 0;
  friend bool operator==(const StaticInput&, const StaticInput&) = default;
};

StaticInput input_of(const Checkpoint& checkpoint, const std::string& module, bool has_offset) {
  const auto one = [&](const char* kind) {
    return values_of(checkpoint, *checkpoint.find(fmt::format("{}.{}", module, kind))).front();
  };
  return {one("input_scale"), has_offset ? one("input_offset") : 0};
}

/// Static inputs; modules that share one, or a grouped GEMM, must have the same.
void read_inputs(const Checkpoint& checkpoint, Quantization& quantization) {
  const bool has_offset = quantization.format == Quantization::Format::modelslim;
  std::map<std::pair<std::string, LinearModule::Role>, std::pair<std::string, StaticInput>> first;
  for (const LinearModule& module : linear_modules(checkpoint.config())) {
    if (quantization.of(module.name).input != LinearScheme::Input::fixed) continue;
    const StaticInput input = input_of(checkpoint, module.name, has_offset);
    const auto& [name, known] =
        first.try_emplace({module.group, module.role}, std::pair(module.name, input)).first->second;
    if (known != input)
      fail(Status::unsupported,
           "{}: {}: expected the input scale of {}, because both take the same input: {}, found {}",
           checkpoint.folder().string(), module.name, name, known.scale, input.scale);
    if (input.offset != 0) quantization.input_offsets[module.name] = static_cast<float>(input.offset);
  }
}

}  // namespace

Quantization checked_quantization(const Checkpoint& checkpoint) {
  Quantization quantization = checkpoint.quantization();
  if (!quantization.stored()) return quantization;
  for (const ExpectedTensor& expected : expected_tensors(checkpoint.config(), quantization)) {
    const StoredTensor& tensor = checkpoint.require(expected);
    if (expected.is_parameter) continue;
    if (tensor.name.ends_with(".weight_offset")) expect_zeros(checkpoint, tensor);
    if (tensor.name.ends_with("_scale"))
      for_values(checkpoint, tensor, [&](double scale) {
        // A row of zeros may have a scale of 0; so may one that is too small for the scale's type, which is then zeros
        // for every reader.
        const bool may_be_zero = tensor.name.ends_with(".weight_scale");
        if (!std::isfinite(scale) || scale < 0 || (scale == 0 && !may_be_zero))
          bad_value(checkpoint, tensor, may_be_zero ? "finite scales of at least 0" : "finite scales above 0", scale);
      });
    if (tensor.name.ends_with(".input_offset"))
      if (const double offset = values_of(checkpoint, tensor).front(); !(std::abs(offset) <= 128))
        bad_value(checkpoint, tensor, "an offset from -128 to 128", offset);
  }
  check_packed_shapes(checkpoint, quantization);
  check_extra_tensors(checkpoint);
  read_inputs(checkpoint, quantization);
  return quantization;
}

}  // namespace cermet

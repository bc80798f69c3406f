#include "model/checkpoint/modelslim_tensors.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "format/element.hpp"
#include "model/checkpoint/modelslim.hpp"

namespace cermet {
namespace {

using Input = LinearScheme::Input;

/// Tensors by name, some of them replaced by others.
class Table {
 public:
  explicit Table(const std::vector<OutputTensor>& tensors) : tensors_(tensors) {
    for (const OutputTensor& tensor : tensors) by_name_.emplace(tensor.spec.name, &tensor);
  }
  const OutputTensor* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const OutputTensor& at(const std::string& name) const {
    const OutputTensor* tensor = find(name);
    if (!tensor) fail(Status::invalid_file, "{}: expected this tensor, found none", name);
    return *tensor;
  }
  /// The tensor's name is left out of rest().
  void used(const std::string& name) { used_.insert(name); }
  bool is_used(const std::string& name) const { return used_.contains(name); }

  const std::vector<OutputTensor>& all() const { return tensors_; }

 private:
  const std::vector<OutputTensor>& tensors_;
  std::unordered_map<std::string, const OutputTensor*> by_name_;
  std::unordered_set<std::string> used_;
};

std::vector<std::byte> bytes_of(const OutputTensor& tensor) {
  if (!tensor.file) return tensor.bytes;
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size()));
  tensor.file->read(*tensor.stored, 0, bytes);
  return bytes;
}

std::int64_t elements_of(const TensorSpec& spec) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : spec.shape) elements *= dim;
  return elements;
}

std::vector<double> values_of(const OutputTensor& tensor) {
  const std::vector<std::byte> bytes = bytes_of(tensor);
  std::vector<double> values(static_cast<std::size_t>(elements_of(tensor.spec)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = format::load_element(bytes.data(), tensor.spec.dtype, static_cast<std::int64_t>(i));
  return values;
}

OutputTensor made(std::string name, DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  OutputTensor tensor{
      .spec = {std::move(name), dtype, std::move(shape)}, .file = nullptr, .stored = nullptr, .bytes = {}};
  CERMET_ASSERT(elements_of(tensor.spec) == static_cast<std::int64_t>(values.size()));
  tensor.bytes.resize(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i)
    format::store_element(tensor.bytes.data(), dtype, static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

bool holds(DType dtype, const std::vector<double>& values) {
  for (const double value : values)
    if (format::rounded_to(dtype, value) != value) return false;
  return true;
}

// Where activations are float16, the NPU's products read the scale's float32 bits out of the low half of an int64.
OutputTensor deq_scale_tensor(const std::string& name, DType activations, const std::vector<double>& values) {
  const auto rows = static_cast<std::int64_t>(values.size());
  if (activations != DType::f16) return made(name, DType::f32, {rows}, values);
  std::vector<double> bits;
  for (const double value : values) bits.push_back(format::float_bits(static_cast<float>(value)));
  return made(name, DType::i64, {rows}, bits);
}

std::vector<double> deq_scales_of(const OutputTensor& tensor) {
  std::vector<double> values = values_of(tensor);
  if (tensor.spec.dtype != DType::i64) return values;
  for (double& value : values) {
    if (!(value >= 0 && value <= std::numeric_limits<std::uint32_t>::max()))
      fail(Status::unsupported, "{}: expected the bits of a float32 in each int64, found {}", tensor.spec.name, value);
    value = format::float_from_bits(static_cast<std::uint32_t>(value));
  }
  return values;
}

/// What weight scales a product came from: in `dtype` where all of these give the product again, in float32 where only
/// those do; nothing where neither does.
std::optional<std::pair<DType, std::vector<double>>> recovered_scales(const std::vector<double>& products,
                                                                      double input_scale, DType dtype) {
  for (const DType candidate : {dtype, DType::f32}) {
    std::vector<double> scales;
    bool good = true;
    for (const double product : products) {
      scales.push_back(format::rounded_to(candidate, product / input_scale));
      good &= static_cast<float>(scales.back() * input_scale) == static_cast<float>(product);
    }
    if (good) return std::pair(candidate, std::move(scales));
  }
  return std::nullopt;
}

/// Refuses, or reports what was rounded.
void not_exact(const std::string& name, std::string_view what, std::vector<std::string>* rounded) {
  const std::string line = fmt::format("{}: {}", name, what);
  if (!rounded) fail(Status::unsupported, "{}", line);
  rounded->push_back(line);
}

/// The tensors of a module with a static input scale; the others stay in place.
void add_fixed(const std::string& module, Table& table, std::vector<OutputTensor>& out,
               std::vector<std::string>* rounded) {
  const OutputTensor &input = table.at(module + ".input_scale"), &weight = table.at(module + ".weight_scale");
  const DType dtype = weight.spec.dtype;
  const double input_scale = values_of(input).at(0);
  const std::vector<double> scales = values_of(weight);
  std::vector<double> products;
  for (const double scale : scales) products.push_back(static_cast<float>(scale * input_scale));
  const auto back = recovered_scales(products, input_scale, dtype);
  if (!back || back->first != dtype || back->second != scales)
    not_exact(module + ".weight_scale",
              "expected scales that their product with input_scale in float32 gives back, found others", rounded);
  const auto rows = static_cast<std::int64_t>(scales.size());
  std::vector<double> bias(scales.size());
  if (const OutputTensor* real = table.find(module + ".bias")) {
    const std::vector<double> values = values_of(*real);
    bool exact = true;
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] = std::nearbyint(values.at(i) / products[i]);
      if (!(std::abs(bias[i]) <= std::numeric_limits<std::int32_t>::max()))
        fail(Status::unsupported, "{}.bias: expected a multiple of deq_scale that fits 32 bits, found {}", module,
             values[i]);
      exact &= bias[i] * products[i] == values[i];
    }
    if (!exact)
      not_exact(module + ".bias", "expected multiples of deq_scale, as quant_bias holds, found others", rounded);
    table.used(module + ".bias");
  }
  table.used(module + ".weight_scale");
  out.push_back(made(module + ".input_offset", input.spec.dtype, input.spec.shape, {0}));
  out.push_back(deq_scale_tensor(module + ".deq_scale", dtype, products));
  out.push_back(made(module + ".quant_bias", DType::i32, {rows}, bias));
}

void require_zero(const OutputTensor* offsets) {
  if (!offsets) return;
  for (const double value : values_of(*offsets))
    if (value != 0)
      fail(Status::unsupported, "{}: expected 0 (symmetric quantization), found {}", offsets->spec.name, value);
}

/// The inverse of add_fixed.
void restore_fixed(const std::string& module, Table& table, std::vector<OutputTensor>& out, DType dtype) {
  const OutputTensor &input = table.at(module + ".input_scale"), &deq = table.at(module + ".deq_scale");
  require_zero(table.find(module + ".input_offset"));
  const std::vector<double> products = deq_scales_of(deq);
  const auto scales = recovered_scales(products, values_of(input).at(0), dtype);
  if (!scales)
    fail(Status::unsupported, "{}: expected products of input_scale and a {} or f32 weight_scale, found others",
         deq.spec.name, name_of(dtype));
  const auto rows = static_cast<std::int64_t>(products.size());
  std::vector<double> bias = values_of(table.at(module + ".quant_bias"));
  bool any = false;
  for (std::size_t i = 0; i < bias.size(); ++i) {
    any |= bias[i] != 0;
    bias[i] *= products.at(i);
  }
  out.push_back(made(module + ".weight_scale", scales->first, {rows, 1}, scales->second));
  if (any) {
    if (table.find(module + ".bias"))
      fail(Status::unsupported, "{}: expected a bias or a quant_bias, found both", module);
    if (!holds(dtype, bias) && !holds(DType::f32, bias))
      fail(Status::unsupported, "{}.quant_bias: expected multiples of deq_scale that {} or f32 holds, found others",
           module, name_of(dtype));
    out.push_back(made(module + ".bias", holds(dtype, bias) ? dtype : DType::f32, {rows}, bias));
  }
  for (const char* gone : {".input_offset", ".deq_scale", ".quant_bias", ".weight_scale", ".weight_offset"})
    table.used(module + gone);
}

/// The tensors in their order, each module's new ones after its weight, without those that were used up.
std::vector<OutputTensor> merged(Table& table,
                                 std::unordered_map<std::string, std::vector<OutputTensor>> after_weight) {
  std::vector<OutputTensor> out;
  for (const OutputTensor& tensor : table.all()) {
    if (!table.is_used(tensor.spec.name)) out.push_back(tensor);
    if (const auto added = after_weight.find(tensor.spec.name); added != after_weight.end())
      for (OutputTensor& more : added->second) out.push_back(std::move(more));
  }
  return out;
}

}  // namespace

std::vector<OutputTensor> to_modelslim(const std::vector<OutputTensor>& tensors, std::span<const LinearModule> modules,
                                       const SchemeMap& schemes, std::vector<std::string>* rounded) {
  require_modelslim_schemes(modules, schemes);
  Table table(tensors);
  std::unordered_map<std::string, std::vector<OutputTensor>> added;
  for (const LinearModule& module : modules) {
    const LinearScheme scheme = scheme_of(schemes, module.name);
    if (scheme == LinearScheme{}) continue;
    std::vector<OutputTensor>& out = added[module.name + ".weight"];
    if (scheme.input == Input::fixed) {
      add_fixed(module.name, table, out, rounded);
    } else {
      const TensorSpec& scale = table.at(module.name + ".weight_scale").spec;
      out.push_back(made(module.name + ".weight_offset", scale.dtype, scale.shape,
                         std::vector<double>(static_cast<std::size_t>(elements_of(scale)))));
    }
  }
  return merged(table, std::move(added));
}

std::vector<OutputTensor> from_modelslim(const std::vector<OutputTensor>& tensors,
                                         std::span<const LinearModule> modules, const SchemeMap& schemes, DType dtype) {
  Table table(tensors);
  std::unordered_map<std::string, std::vector<OutputTensor>> added;
  for (const LinearModule& module : modules) {
    const LinearScheme scheme = scheme_of(schemes, module.name);
    if (scheme == LinearScheme{}) continue;
    if (scheme.input == Input::fixed) {
      restore_fixed(module.name, table, added[module.name + ".weight"], dtype);
    } else {
      require_zero(table.find(module.name + ".weight_offset"));
      table.used(module.name + ".weight_offset");
    }
  }
  return merged(table, std::move(added));
}

}  // namespace cermet

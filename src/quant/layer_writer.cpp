#include "quant/layer_writer.hpp"

#include <algorithm>

#include "format/element.hpp"

namespace cermet {

std::vector<ExpectedTensor> layer_tensors(const ModelConfig& config, std::int64_t layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  std::vector<ExpectedTensor> tensors = expected_tensors(config);
  std::erase_if(tensors, [&](const ExpectedTensor& tensor) { return !tensor.name.starts_with(prefix); });
  return tensors;
}

LayerWriter::LayerWriter(const std::filesystem::path& file, const Checkpoint& checkpoint, std::int64_t layer,
                         std::span<const LinearModule> modules, const Policy& policy) {
  std::map<std::string, LinearScheme> schemes;  // by the weight's name
  for (const LinearModule& module : modules) schemes[module.name + ".weight"] = policy.scheme_of(module.name);
  for (const ExpectedTensor& tensor : layer_tensors(checkpoint.config(), layer)) {
    const DType stored = checkpoint.require(tensor.name, tensor.shape).dtype;
    const auto scheme = schemes.find(tensor.name);
    if (scheme == schemes.end() || scheme->second.weight == LinearScheme::Weight::real) {
      specs_.push_back({tensor.name, stored, tensor.shape});
      continue;
    }
    const DType quantized = scheme->second.weight == LinearScheme::Weight::fp8 ? DType::f8_e4m3 : DType::i8;
    specs_.push_back({tensor.name, quantized, tensor.shape});
    specs_.push_back({tensor.name + "_scale", stored, {tensor.shape[0], 1}});
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    if (scheme->second.input == LinearScheme::Input::fixed) specs_.push_back({module + ".input_scale", stored, {1}});
  }
  for (std::size_t i = 0; i < specs_.size(); ++i) index_[specs_[i].name] = i;
  written_.resize(specs_.size());
  writer_ = std::make_unique<SafetensorsWriter>(file, specs_);
}

std::vector<std::string> LayerWriter::unwritten() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < specs_.size(); ++i)
    if (!written_[i]) names.push_back(specs_[i].name);
  return names;
}

void LayerWriter::put(const std::string& name, std::span<const std::byte> bytes, ThreadPool& pool) {
  const std::size_t i = index_.at(name);
  CERMET_ASSERT(!written_[i] && static_cast<std::int64_t>(bytes.size()) == writer_->bytes_of(i));
  pool.parallel_for(static_cast<std::int64_t>(bytes.size()), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    writer_->write(i, begin, bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  });
  written_[i] = true;
}

void LayerWriter::put_scales(const std::string& name, std::span<const float> scales, ThreadPool& pool) {
  const DType dtype = specs_[index_.at(name)].dtype;
  std::vector<std::byte> bytes(scales.size() * size_of(dtype));
  for (std::size_t i = 0; i < scales.size(); ++i)
    format::store_element(bytes.data(), dtype, static_cast<std::int64_t>(i), static_cast<double>(scales[i]));
  put(name, bytes, pool);
}

}  // namespace cermet

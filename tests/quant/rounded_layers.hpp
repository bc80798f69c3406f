// Layer files as the pipeline leaves them, made by rounding alone: enough for the steps after it.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>

#include "format/element.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "quant/assemble.hpp"
#include "quant/pipeline.hpp"

namespace cermet::test {

/// Writes the layer files of a checkpoint into a working folder: weights absmax / `range` (fp8: absmax / 448), input
/// scales of 1/16.
inline void write_rounded_layers(const std::filesystem::path& model, const std::filesystem::path& working,
                                 const Policy& policy, double range = 127.5) {
  const Checkpoint source = Checkpoint::open(model);
  std::filesystem::create_directory(working);
  std::map<std::string, LinearModule> modules;
  for (const LinearModule& module : linear_modules(source.config())) modules.emplace(module.name + ".weight", module);
  for (std::int64_t layer = 0; layer < source.config().layers; ++layer) {
    std::vector<TensorSpec> specs;
    std::vector<std::vector<std::byte>> bytes;
    const auto add = [&](std::string name, DType dtype, std::vector<std::int64_t> shape,
                         const std::vector<double>& values) {
      specs.push_back({std::move(name), dtype, std::move(shape)});
      bytes.emplace_back(values.size() * size_of(dtype));
      for (std::size_t i = 0; i < values.size(); ++i)
        format::store_element(bytes.back().data(), dtype, static_cast<std::int64_t>(i), values[i]);
    };
    for (const StoredTensor& tensor : source.tensors()) {
      if (tensor.name.rfind(fmt::format("model.layers.{}.", layer), 0) != 0) continue;
      std::vector<std::byte> data(static_cast<std::size_t>(tensor.bytes()));
      source.read(tensor, 0, data);
      std::vector<double> values(static_cast<std::size_t>(tensor.elements()));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = format::load_element(data.data(), tensor.dtype, static_cast<std::int64_t>(i));
      const auto module = modules.find(tensor.name);
      const LinearScheme scheme = module == modules.end() ? LinearScheme{} : policy.scheme_of(module->second.name);
      if (scheme == LinearScheme{}) {
        add(tensor.name, tensor.dtype, tensor.shape, values);
        continue;
      }
      const bool fp8 = scheme.weight == LinearScheme::Weight::fp8;
      const std::size_t rows = static_cast<std::size_t>(tensor.shape[0]),
                        columns = static_cast<std::size_t>(tensor.shape[1]);
      std::vector<double> scales(rows);
      for (std::size_t row = 0; row < rows; ++row) {
        double largest = 0;
        for (std::size_t i = 0; i < columns; ++i) largest = std::max(largest, std::abs(values[row * columns + i]));
        scales[row] = format::rounded_to(tensor.dtype, largest / (fp8 ? 448 : range));
        for (std::size_t i = 0; i < columns; ++i) values[row * columns + i] /= scales[row];
      }
      add(tensor.name, fp8 ? DType::f8_e4m3 : DType::i8, tensor.shape, values);
      add(module->second.name + ".weight_scale", tensor.dtype, {tensor.shape[0], 1}, scales);
      if (scheme.input == LinearScheme::Input::fixed)
        add(module->second.name + ".input_scale", tensor.dtype, {1}, {0.0625});
    }
    SafetensorsWriter writer(layer_file(working, layer), specs);
    for (std::size_t i = 0; i < specs.size(); ++i) writer.write(i, 0, bytes[i]);
    writer.commit();
  }
}

/// A record of a policy and nothing else.
inline QuantizationRecord record_of(const Policy& policy) {
  QuantizationRecord record;
  record.policy = policy.text();
  record.anti_outlier = "none";
  return record;
}

/// Rounds a checkpoint and puts it together as MODEL's quantized form at `out`.
inline void round_checkpoint(const std::filesystem::path& model, const std::filesystem::path& out, const Policy& policy,
                             const ExportOptions& options = {}) {
  const std::filesystem::path working = working_folder(out);
  write_rounded_layers(model, working, policy, options.format == ExportFormat::modelslim ? 127 : 127.5);
  rename_file(assemble(model, working, record_of(policy), options), out);
  std::filesystem::remove_all(working);
}

}  // namespace cermet::test

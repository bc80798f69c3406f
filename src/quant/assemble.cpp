#include "quant/assemble.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <iterator>
#include <system_error>
#include <unordered_set>

#include "base/error.hpp"
#include "io/json_numbers.hpp"
#include "io/new_folder.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/compressed_tensors.hpp"
#include "model/checkpoint/modelslim.hpp"
#include "model/checkpoint/modelslim_tensors.hpp"
#include "quant/pipeline.hpp"

namespace cermet {
namespace {

/// config.json with its keys in their order, and `quantization` under "quantization_config", or nothing where that is
/// null.
std::string config_text(const std::filesystem::path& folder, const JsonValue& quantization) {
  const std::filesystem::path file = folder / "config.json";
  const std::string source = read_file(file);
  const std::optional<std::string> marked = mark_python_numbers(source);
  std::optional<JsonValue> config = JsonValue::parse(marked.value_or(source));
  if (!config || !config->is_object())
    fail(Status::invalid_file, "{}: expected a JSON object, found something else", file.string());
  config->erase("quantization_config");
  if (!quantization.is_null()) (*config)["quantization_config"] = quantization;
  std::string text = config->dump(2) + "\n";
  if (marked) unmark_python_numbers(text);
  return text;
}

std::vector<OutputTensor> with_packed_experts(std::vector<OutputTensor> tensors, std::span<const LinearModule> modules,
                                              const SchemeMap& schemes) {
  std::unordered_set<std::string> weights;
  for (const LinearModule& module : modules)
    if (is_written_packed(module, schemes)) weights.insert(module.name + ".weight");
  std::vector<OutputTensor> out;
  for (OutputTensor& tensor : tensors) {
    if (weights.contains(tensor.spec.name)) std::ranges::move(packed(std::move(tensor)), std::back_inserter(out));
    else out.push_back(std::move(tensor));
  }
  return out;
}

/// The layer that a tensor belongs to; -1: none.
std::int64_t layer_of(std::string_view name, std::int64_t layers) {
  constexpr std::string_view prefix = "model.layers.";
  if (!name.starts_with(prefix)) return -1;
  std::int64_t layer = -1;
  const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
  return error == std::errc() && layer < layers && end != name.data() + name.size() && *end == '.' ? layer : -1;
}

/// The source's tensors in the order of a forward pass, those of each layer replaced by the layer file's, and at last
/// what no forward pass reads.
std::vector<OutputTensor> tensors_of(const Checkpoint& source, const std::deque<SafetensorsFile>& layers) {
  std::vector<OutputTensor> tensors;
  const ModelConfig& config = source.config();
  const auto copy = [&](const StoredTensor& tensor) { tensors.push_back(copy_of(source.file_of(tensor), tensor)); };
  std::unordered_map<std::string_view, bool> expected;
  std::int64_t next_layer = 0;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    const StoredTensor& stored = source.require(tensor.name, tensor.shape);
    expected.emplace(stored.name, true);
    const std::int64_t layer = layer_of(stored.name, config.layers);
    if (layer < 0) copy(stored);
    if (layer != next_layer) continue;  // the layer's first tensor brings all
    const SafetensorsFile& file = layers[static_cast<std::size_t>(next_layer++)];
    for (const StoredTensor& quantized : file.tensors()) tensors.push_back(copy_of(file, quantized));
  }
  for (const StoredTensor& stored : source.tensors())
    if (!expected.contains(stored.name) && layer_of(stored.name, config.layers) < 0) copy(stored);
  return tensors;
}

}  // namespace

std::string_view name_of(ExportFormat format) {
  return format == ExportFormat::modelslim ? "modelslim" : "compressed-tensors";
}

SchemeMap scheme_map(const Policy& policy, std::span<const LinearModule> modules) {
  policy.check(modules);
  SchemeMap schemes;
  for (const LinearModule& module : modules)
    if (const LinearScheme scheme = policy.scheme_of(module.name); scheme != LinearScheme{})
      schemes.emplace(module.name, scheme);
  return schemes;
}

std::vector<std::string> write_checkpoint(const std::filesystem::path& folder, const std::filesystem::path& config_from,
                                          std::vector<OutputTensor> tensors, std::span<const LinearModule> modules,
                                          const SchemeMap& schemes, std::optional<QuantizationRecord> record,
                                          const ExportOptions& options) {
  std::vector<std::string> rounded;
  ShardOptions shards = options.shards;
  JsonValue quantization;
  if (options.format == ExportFormat::modelslim) {
    tensors = to_modelslim(tensors, modules, schemes, options.allow_rounding ? &rounded : nullptr);
    shards.stem = modelslim_stem;
    write_file_atomically(folder / modelslim_description_file, modelslim_description(tensors, schemes).dump(2) + "\n");
  } else {
    quantization = compressed_tensors_config(modules, schemes, options.pack_experts);
    if (options.pack_experts) tensors = with_packed_experts(std::move(tensors), modules, schemes);
  }
  write_shards(folder, tensors, shards);
  copy_side_files(config_from, folder);
  write_file_atomically(folder / "config.json", config_text(config_from, quantization));
  if (record) {
    record->rounded = rounded;
    write_file_atomically(folder / QuantizationRecord::file_name, record->to_json());
  }
  return rounded;
}

std::filesystem::path assemble(const std::filesystem::path& model, const std::filesystem::path& working,
                               const QuantizationRecord& record, const ExportOptions& options) {
  const Checkpoint source = Checkpoint::open(model);
  const std::vector<LinearModule> modules = linear_modules(source.config());
  const SchemeMap schemes = scheme_map(Policy::parse(record.policy, QuantizationRecord::file_name), modules);
  std::deque<SafetensorsFile> layers;
  for (std::int64_t layer = 0; layer < source.config().layers; ++layer)
    layers.push_back(SafetensorsFile::open(layer_file(working, layer)));

  std::filesystem::path result = working / "result";
  std::error_code error;
  std::filesystem::remove_all(result, error);
  if (!std::filesystem::create_directory(result, error))
    fail(Status::io, "{}: cannot be created: {}", result.string(), error.message());
  write_checkpoint(result, model, tensors_of(source, layers), modules, schemes, record, options);
  return result;
}

}  // namespace cermet

// A case of tests/model/cases, edited: its configuration as text, its tensors by name.
#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "format/element.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/safetensors.hpp"
#include "model/engine.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {

struct EditedTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes.size() / size_of(dtype)); }
  double value(std::int64_t i) const { return format::load_element(bytes.data(), dtype, i); }
  EditedTensor as(DType type) const {
    EditedTensor made{type, shape, std::vector<std::byte>(static_cast<std::size_t>(elements()) * size_of(type))};
    for (std::int64_t i = 0; i < elements(); ++i) format::store_element(made.bytes.data(), type, i, value(i));
    return made;
  }
  EditedTensor reshaped(std::vector<std::int64_t> to) const { return {dtype, std::move(to), bytes}; }
};

using EditedTensors = std::map<std::string, EditedTensor>;

class EditedCase {
 public:
  explicit EditedCase(const std::string& name) {
    const std::filesystem::path folder = source / "tests/model/cases" / name;
    const JsonDocument document = JsonDocument::read(folder / "case.json");
    const std::optional<Json> shared = document.root().find("weights");
    config = *JsonValue::parse(content_of(folder / "config.json"));
    read(shared ? folder.parent_path() / "weights" / shared->as_string() : folder / "model.safetensors");
  }

  JsonValue config;
  EditedTensors tensors;
  std::string more_config = {};  ///< fields as text, for what JsonValue does not write

  void set(std::string_view key, std::string_view json) { config[key] = *JsonValue::parse(json); }

  /// Renames every tensor for which `rename` gives another name.
  void rename(const std::function<std::string(const std::string&)>& rename) {
    EditedTensors renamed;
    for (auto& [name, tensor] : tensors) renamed.emplace(rename(name), std::move(tensor));
    tensors = std::move(renamed);
  }

  static void write_tensors(const std::filesystem::path& file, const EditedTensors& tensors) {
    std::vector<TensorSpec> specs;
    for (const auto& [name, tensor] : tensors) specs.push_back({name, tensor.dtype, tensor.shape});
    SafetensorsWriter writer(file, specs);
    std::size_t i = 0;
    for (const auto& [name, tensor] : tensors) writer.write(i++, 0, tensor.bytes);
    writer.commit();
  }

  std::string config_text() const {
    std::string text = config.dump();
    if (!more_config.empty()) text.insert(text.rfind('}'), "," + more_config);
    return text;
  }

  /// Writes the folder as it is; the tensors into one file.
  void write(const ScratchFolder& scratch) const {
    scratch.file("config.json", config_text());
    write_tensors(scratch / "model.safetensors", tensors);
  }

  /// Logits of a few tokens, [tokens * vocabulary].
  static std::vector<float> logits(const std::filesystem::path& folder) {
    EngineOptions options;
    options.dtype = DType::f32;
    options.threads = 2;
    options.max_context = 64;
    Engine engine = Engine::load(folder, options);
    const std::vector<std::int32_t> ids{1, 5, 9, 33, 96, 4, 4, 17, 60, 2, 8, 41};
    const SequenceTokens all{0, ids};
    const TensorView found = engine.forward({&all, 1}, Engine::Logits::all);
    return {found.as<const float>(), found.as<const float>() + found.elements()};
  }
  std::vector<float> logits() const {
    const ScratchFolder scratch;
    write(scratch);
    return logits(scratch.path());
  }

 private:
  void read(const std::filesystem::path& file) {
    const SafetensorsFile opened = SafetensorsFile::open(file);
    for (const StoredTensor& tensor : opened.tensors()) {
      EditedTensor& edited = tensors[tensor.name];
      edited = {tensor.dtype, tensor.shape, std::vector<std::byte>(static_cast<std::size_t>(tensor.bytes()))};
      opened.read(tensor, 0, edited.bytes);
    }
  }
};

/// The largest difference of two lists of logits.
inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

}  // namespace cermet::test

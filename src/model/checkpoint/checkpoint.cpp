#include "model/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "io/json_file.hpp"

namespace cermet {
namespace {

constexpr std::string_view suffix = ".safetensors", index_suffix = ".safetensors.index.json";
constexpr std::size_t max_files = 4096;

/// Where an index says that tensors are: tensor -> file name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// The name of a file in the checkpoint's own folder; anything that could lead elsewhere is refused.
std::string plain_file_name(Json field) {
  const std::string_view name = field.as_string();
  const bool plain =
      !name.empty() && name.size() <= 255 && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  if (!plain) field.unexpected("the plain name of a file in the same folder");
  return std::string(name);
}

WeightMap read_index(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::read(path);
  WeightMap map;
  const Json weights = document.root().as_object().at("weight_map").as_object();
  for (Json field : weights) map.emplace(field.key(), plain_file_name(field));
  if (map.empty()) weights.unexpected("at least one tensor");
  return map;
}

/// What lies in a folder that has no safetensors, for a message.
std::string other_weights(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".gguf" || extension == ".safetensors") {
      return fmt::format("{} only", quote(entry.path().filename().string()));
    }
  }
  return "neither";
}

}  // namespace

struct Checkpoint::State {
  std::filesystem::path folder;
  ModelConfig config;
  Quantization quantization;
  std::vector<SafetensorsFile> files;
  std::vector<StoredTensor> tensors;  ///< sorted by name
  std::vector<std::size_t> file_of;   ///< of each of `tensors`
  std::int64_t total_bytes = 0;

  void gather();
  void check_against(const WeightMap& map, const std::filesystem::path& index) const;
  std::size_t position(const StoredTensor& tensor) const;
};

// All tensors of all files in one list; a name that two files have is refused.
void Checkpoint::State::gather() {
  std::vector<std::pair<const StoredTensor*, std::size_t>> all;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (const StoredTensor& tensor : files[file].tensors()) all.emplace_back(&tensor, file);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first->name < b.first->name; });
  for (const auto& [tensor, file] : all) {
    if (!tensors.empty() && tensors.back().name == tensor->name) {
      fail(Status::invalid_file, "{}: {}: expected a tensor in one file, found it also in {}", files[file].path().string(), quote(tensor->name),
           files[file_of.back()].path().filename().string());
    }
    tensors.push_back(*tensor);
    file_of.push_back(file);
    total_bytes += tensor->bytes();
  }
}

void Checkpoint::State::check_against(const WeightMap& map, const std::filesystem::path& index) const {
  for (const auto& [name, file] : map) {
    const auto found =
        std::lower_bound(tensors.begin(), tensors.end(), name, [](const StoredTensor& tensor, std::string_view key) { return tensor.name < key; });
    if (found == tensors.end() || found->name != name) {
      fail(Status::invalid_file, "{}: weight_map: {}: expected the tensor in {}, found no such tensor", index.string(), quote(name), quote(file));
    }
    const std::string place = files[file_of[static_cast<std::size_t>(found - tensors.begin())]].path().filename().string();
    if (place != file)
      fail(Status::invalid_file, "{}: weight_map: {}: expected the tensor in {}, found it in {}", index.string(), quote(name), quote(file), quote(place));
  }
}

std::size_t Checkpoint::State::position(const StoredTensor& tensor) const {
  CERMET_ASSERT(&tensor >= tensors.data() && &tensor < tensors.data() + tensors.size());
  return static_cast<std::size_t>(&tensor - tensors.data());
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Checkpoint Checkpoint::open(const std::filesystem::path& folder) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->config = load_config(folder);
  state->quantization = read_quantization(folder, state->config);
  const std::string stem = state->quantization.format == Quantization::Format::modelslim ? "quant_model_weights" : "model";
  const std::string single_file = fmt::format("{}{}", stem, suffix), index_file = fmt::format("{}{}", stem, index_suffix);
  if (is_there(folder / single_file)) {
    state->files.push_back(SafetensorsFile::open(folder / single_file));
    state->gather();
    return Checkpoint(std::move(state));
  }
  const std::filesystem::path index = folder / index_file;
  if (!is_there(index)) fail(Status::io, "{}: expected {} or {}, found {}", folder.string(), single_file, index_file, other_weights(folder));
  const WeightMap map = read_index(index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  if (names.size() > max_files) fail(Status::invalid_file, "{}: weight_map: expected at most {} files, found {}", index.string(), max_files, names.size());
  for (const std::string& name : names) {
    if (!is_there(folder / name)) fail(Status::io, "{}: weight_map: expected the file {}, found none of that name", index.string(), quote(name));
    state->files.push_back(SafetensorsFile::open(folder / name));
  }
  state->gather();
  state->check_against(map, index);
  return Checkpoint(std::move(state));
}

const ModelConfig& Checkpoint::config() const { return state_->config; }
const Quantization& Checkpoint::quantization() const { return state_->quantization; }
const std::filesystem::path& Checkpoint::folder() const { return state_->folder; }
std::int64_t Checkpoint::total_bytes() const { return state_->total_bytes; }
std::span<const StoredTensor> Checkpoint::tensors() const { return state_->tensors; }
std::span<const SafetensorsFile> Checkpoint::files() const { return state_->files; }

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const std::vector<StoredTensor>& all = state_->tensors;
  const auto found = std::lower_bound(all.begin(), all.end(), name, [](const StoredTensor& tensor, std::string_view key) { return tensor.name < key; });
  return found == all.end() || found->name != name ? nullptr : &*found;
}

const StoredTensor& Checkpoint::require(std::string_view name, std::span<const std::int64_t> shape) const {
  return require(ExpectedTensor{std::string(name), {shape.begin(), shape.end()}});
}

const StoredTensor& Checkpoint::require(const ExpectedTensor& expected) const {
  const StoredTensor* tensor = find(expected.name);
  if (tensor == nullptr) {
    fail(Status::invalid_file, "{}: expected the tensor {} of shape {}, found none of that name", state_->folder.string(), quote(expected.name),
         shape_to_string(expected.shape));
  }
  const std::string file = file_of(*tensor).path().string();
  const bool one = expected.or_one && tensor->shape.size() <= 1 && tensor->elements() == 1;
  if (tensor->shape != expected.shape && !one) {
    fail(Status::invalid_file, "{}: {}: expected shape {}{}, found {}", file, quote(expected.name), shape_to_string(expected.shape),
         expected.or_one ? " or one element" : "", shape_to_string(tensor->shape));
  }
  if (!expected.dtypes.contains(tensor->dtype)) {
    fail(Status::unsupported, "{}: {}: expected {}, found {}", file, quote(expected.name), expected.dtypes.to_string(), name_of(tensor->dtype));
  }
  return *tensor;
}

const SafetensorsFile& Checkpoint::file_of(const StoredTensor& tensor) const { return state_->files[state_->file_of[state_->position(tensor)]]; }

void Checkpoint::read(const StoredTensor& tensor, std::int64_t byte_offset, std::span<std::byte> destination) const {
  file_of(tensor).read(tensor, byte_offset, destination);
}

}  // namespace cermet

#include "model/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "io/json_file.hpp"
#include "model/checkpoint/model_folder.hpp"
#include "model/checkpoint/tensor_names.hpp"

namespace cermet {
namespace {

constexpr std::string_view suffix = ".safetensors", index_suffix = ".safetensors.index.json";
constexpr std::size_t max_files = 4096;
constexpr std::int64_t compared_bytes = std::int64_t{1} << 20;

/// Where an index says that tensors are: tensor -> file name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// The name of a file in the checkpoint's own folder; anything that could lead elsewhere is refused.
std::string plain_file_name(Json field) {
  const std::string_view name = field.as_string();
  const bool plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
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

/// STEM-00001-of-00002.safetensors and so on, where all of them are there.
std::vector<std::string> shards_without_index(const std::filesystem::path& folder, const std::string& stem) {
  std::error_code ignored;
  std::set<std::string> found;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder, ignored))
    found.insert(entry.path().filename().string());
  for (std::size_t count = 1; count <= std::min(found.size(), max_files); ++count) {
    std::vector<std::string> names;
    for (std::size_t shard = 1; shard <= count; ++shard)
      names.push_back(fmt::format("{}-{:05}-of-{:05}{}", stem, shard, count, suffix));
    if (std::ranges::all_of(names, [&](const std::string& name) { return found.contains(name); })) return names;
  }
  return {};
}

/// Scales may lie flat, and one may stand for all rows, whatever its shape.
bool has_shape(const StoredTensor& tensor, const ExpectedTensor& expected) {
  if (tensor.shape == expected.shape) return true;
  if (!expected.or_one) return false;
  return tensor.elements() == 1 || (expected.shape.size() == 2 && tensor.shape == std::vector{expected.shape[0]});
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

  void open_files(const std::string& stem);
  void gather();
  void tie_head();
  bool has_same_bytes(const StoredTensor& a, const StoredTensor& b) const;
  const StoredTensor* find(std::string_view name) const;
  std::size_t position(const StoredTensor& tensor) const;
};

// All tensors of all files in one list. Of a name that several files have, the last file's counts: transformers and
// vLLM load one file after the other.
void Checkpoint::State::gather() {
  std::map<std::string_view, PlacedTensor> last;
  std::string first_twice;
  std::int64_t twice = 0;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (const StoredTensor& tensor : files[file].tensors()) {
      const auto [place, is_new] = last.insert_or_assign(tensor.name, PlacedTensor{tensor, file});
      if (!is_new && ++twice == 1) first_twice = tensor.name;
    }
  }
  if (twice > 0)
    log().warn("{}: {} tensors are in several files, {} the first; the last file counts, whatever the index says",
               folder.string(), twice, quote(first_twice));
  std::vector<PlacedTensor> all;
  for (const auto& [name, placed] : last) all.push_back(placed);
  use_expected_names(config, all);
  std::ranges::sort(all, {}, [](const PlacedTensor& placed) -> const std::string& { return placed.tensor.name; });
  for (const PlacedTensor& placed : all) {
    if (!tensors.empty() && tensors.back().name == placed.tensor.name)
      fail(Status::invalid_file, "{}: {}: expected one tensor of this meaning, found it under two names",
           files[placed.file].path().string(), quote(placed.tensor.name));
    tensors.push_back(placed.tensor);
    file_of.push_back(placed.file);
    total_bytes += placed.tensor.bytes();
  }
}

// A head that is stored beside the embeddings that it is said to share is one of its own where it differs.
void Checkpoint::State::tie_head() {
  if (!config.decoder.is_tied()) return;
  const StoredTensor *head = find("lm_head.weight"), *embeddings = find("model.embed_tokens.weight");
  if (head == nullptr || embeddings == nullptr) return;
  const bool alike = head->dtype == embeddings->dtype && head->shape == embeddings->shape;
  if (alike && has_same_bytes(*head, *embeddings)) return;
  log().warn("{}: a head is stored that differs from the embeddings; it is used, whatever tie_word_embeddings says",
             folder.string());
  config.decoder.head.name = "lm_head";
}

bool Checkpoint::State::has_same_bytes(const StoredTensor& a, const StoredTensor& b) const {
  std::vector<std::byte> first(compared_bytes), second(compared_bytes);
  for (std::int64_t at = 0; at < a.bytes(); at += compared_bytes) {
    const auto count = static_cast<std::size_t>(std::min(compared_bytes, a.bytes() - at));
    files[file_of[position(a)]].read(a, at, std::span(first).first(count));
    files[file_of[position(b)]].read(b, at, std::span(second).first(count));
    if (!std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(count), second.begin())) return false;
  }
  return true;
}

const StoredTensor* Checkpoint::State::find(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors.begin(), tensors.end(), name,
                       [](const StoredTensor& tensor, std::string_view key) { return tensor.name < key; });
  return found == tensors.end() || found->name != name ? nullptr : &*found;
}

std::size_t Checkpoint::State::position(const StoredTensor& tensor) const {
  CERMET_ASSERT(&tensor >= tensors.data() && &tensor < tensors.data() + tensors.size());
  return static_cast<std::size_t>(&tensor - tensors.data());
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

// Files are those of the index, or all shards of a set without one. An index may name tensors that are not there: what
// is needed is required by name.
void Checkpoint::State::open_files(const std::string& stem) {
  const std::string single_file = fmt::format("{}{}", stem, suffix),
                    index_file = fmt::format("{}{}", stem, index_suffix);
  if (is_there(folder / single_file)) {
    files.push_back(SafetensorsFile::open(folder / single_file));
    return gather();
  }
  const std::filesystem::path index = folder / index_file;
  if (!is_there(index)) {
    for (const std::string& name : shards_without_index(folder, stem))
      files.push_back(SafetensorsFile::open(folder / name));
    if (!files.empty()) return gather();
    fail(Status::io, "{}: expected {} or {}, found {}", folder.string(), single_file, index_file,
         other_weights(folder));
  }
  const WeightMap map = read_index(index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  if (names.size() > max_files)
    fail(Status::invalid_file, "{}: weight_map: expected at most {} files, found {}", index.string(), max_files,
         names.size());
  for (const std::string& name : names) {
    if (!is_there(folder / name))
      fail(Status::io, "{}: weight_map: expected the file {}, found none of that name", index.string(), quote(name));
    files.push_back(SafetensorsFile::open(folder / name));
  }
  gather();
}

Checkpoint Checkpoint::open(const std::filesystem::path& folder) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->config = load_config(folder);
  state->quantization = read_quantization(folder, state->config);
  state->open_files(state->quantization.format == Quantization::Format::modelslim ? "quant_model_weights" : "model");
  const bool tied = state->config.decoder.is_tied();
  state->tie_head();
  if (state->config.decoder.is_tied() != tied) state->quantization = read_quantization(folder, state->config);
  const State& opened = *state;
  as_stored(state->quantization, state->config, [&](const std::string& name) { return opened.find(name); });
  return Checkpoint(std::move(state));
}

const ModelConfig& Checkpoint::config() const { return state_->config; }
const Quantization& Checkpoint::quantization() const { return state_->quantization; }
const std::filesystem::path& Checkpoint::folder() const { return state_->folder; }
std::int64_t Checkpoint::total_bytes() const { return state_->total_bytes; }
std::span<const StoredTensor> Checkpoint::tensors() const { return state_->tensors; }
std::span<const SafetensorsFile> Checkpoint::files() const { return state_->files; }

const StoredTensor* Checkpoint::find(std::string_view name) const { return state_->find(name); }

const StoredTensor& Checkpoint::require(std::string_view name, std::span<const std::int64_t> shape) const {
  return require(ExpectedTensor{std::string(name), {shape.begin(), shape.end()}});
}

const StoredTensor& Checkpoint::require(const ExpectedTensor& expected) const {
  const StoredTensor* tensor = find(expected.name);
  if (tensor == nullptr) {
    fail(Status::invalid_file, "{}: expected the tensor {} of shape {}, found none of that name",
         state_->folder.string(), quote(expected.name), shape_to_string(expected.shape));
  }
  const std::string file = file_of(*tensor).path().string();
  if (!has_shape(*tensor, expected)) {
    fail(Status::invalid_file, "{}: {}: expected shape {}{}, found {}", file, quote(expected.name),
         shape_to_string(expected.shape), expected.or_one ? " or one element" : "", shape_to_string(tensor->shape));
  }
  if (!expected.dtypes.contains(tensor->dtype)) {
    fail(Status::unsupported, "{}: {}: expected {}, found {}", file, quote(expected.name), expected.dtypes.to_string(),
         name_of(tensor->dtype));
  }
  return *tensor;
}

const SafetensorsFile& Checkpoint::file_of(const StoredTensor& tensor) const {
  return state_->files[state_->file_of[state_->position(tensor)]];
}

void Checkpoint::read(const StoredTensor& tensor, std::int64_t byte_offset, std::span<std::byte> destination) const {
  file_of(tensor).read(tensor, byte_offset, destination);
}

}  // namespace cermet

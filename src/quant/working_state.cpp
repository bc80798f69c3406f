#include "quant/working_state.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <system_error>

#include "base/text.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"
#include "io/safetensors.hpp"

namespace cermet {
namespace {

namespace fs = std::filesystem;

constexpr int format_version = 1;
constexpr const char* state_name = "state.json";

std::string hash_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_of(const std::vector<std::vector<std::int32_t>>& prompts) {
  std::string all;
  for (const std::vector<std::int32_t>& prompt : prompts) {
    const std::uint64_t count = prompt.size();
    all.append(reinterpret_cast<const char*>(&count), sizeof count);
    all.append(reinterpret_cast<const char*>(prompt.data()), prompt.size() * sizeof(std::int32_t));
  }
  return hash_of(all);
}

std::string stamp_of(const fs::path& file) {
  const PosixFile::Stamp stamp = PosixFile::open_for_reading(file).stamp();
  return fmt::format("{} bytes, changed at {}", stamp.bytes, stamp.modified_ns);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The first field in which two fingerprints differ, with both values: "policy: expected ..., found ...".
std::string difference(const JsonValue& expected, const JsonValue& found, const std::string& path = "") {
  for (const auto& [key, value] : expected.items()) {
    const std::string name = path.empty() ? key : path + "." + key;
    if (!found.contains(key)) return fmt::format("{}: expected {}, found none", name, value.dump());
    if (value.is_object() && found[key].is_object()) {
      std::string inner = difference(value, found[key], name);
      if (!inner.empty()) return inner;
    } else if (value != found[key]) {
      return fmt::format("{}: expected {}, found {}", name, value.dump(), found[key].dump());
    }
  }
  for (const auto& [key, value] : found.items())
    if (!expected.contains(key))
      return fmt::format("{}: expected none, found {}", path.empty() ? key : path + "." + key, value.dump());
  return "";
}

void check_same_run(const std::string& ours, const fs::path& file) {
  constexpr std::string_view advice = "; finish it as it was begun, or start afresh (--restart)";
  const std::string theirs = read_file(file);
  const std::optional<JsonValue> expected = JsonValue::parse(ours), found = JsonValue::parse(theirs);
  if (!found || !found->is_object())
    fail(Status::invalid_file, "{}: expected the state of an interrupted run, found something else{}", file.string(),
         advice);
  const std::string fault = difference(*expected, *found);
  if (!fault.empty())
    fail(Status::invalid_argument, "{}: another run was interrupted here; {}{}", file.string(), fault, advice);
}

}  // namespace

std::string fingerprint(const QuantizeOptions& options, const Checkpoint& checkpoint) {
  JsonValue sources = JsonValue::object();
  sources["config.json"] = stamp_of(checkpoint.folder() / "config.json");
  for (const SafetensorsFile& file : checkpoint.files())
    sources[file.path().filename().string()] = stamp_of(file.path());
  const JsonValue all{{"format", format_version},
                      {"tool", CERMET_VERSION},
                      {"device", options.device},
                      {"policy", hash_of(options.policy.text())},
                      {"anti_outlier", name_of(options.anti_outlier)},
                      {"clamp_percentile", options.clamp_percentile},
                      {"range", options.range},
                      {"every_scheme", options.every_scheme},
                      {"min_expert_tokens", options.min_expert_tokens},
                      {"seed", options.seed},
                      {"calibration", hash_of(options.calibration)},
                      {"heldout", hash_of(options.heldout)},
                      {"extra", options.fingerprint_extra},
                      {"sources", sources}};
  return all.dump(1) + "\n";
}

WorkingState::WorkingState(const QuantizeOptions& options, const Checkpoint& checkpoint)
    : folder_(working_folder(options.out)), layers_(checkpoint.config().layers) {
  const std::string ours = fingerprint(options, checkpoint);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) fail(Status::io, "{}: expected a folder to work in, found: {}", folder_.string(), error.message());
  lock_.emplace(folder_);
  if (options.restart) remove_contents();
  const fs::path state = folder_ / state_name;
  if (!is_there(state)) {
    if (!fs::is_empty(folder_, error)) {
      remove_leftovers();  // a run that was stopped before it had said what it was
      if (!fs::is_empty(folder_, error))
        fail(Status::io, "{}: expected an empty folder or that of an interrupted run, found other files",
             folder_.string());
    }
    write_file_atomically(state, ours);
    return;
  }
  check_same_run(ours, state);
  remove_leftovers();
  read_results(layers_);
}

fs::path WorkingState::hidden_file(std::int64_t layer) const {
  return folder_ / fmt::format("hidden-{:04}.safetensors", layer);
}

void WorkingState::remove_contents() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    if (!error) fs::remove_all(entry.path(), error);
    if (error) fail(Status::io, "{}: cannot be removed: {}", entry.path().string(), error.message());
  }
}

/// Temporary files of writes that were not finished.
void WorkingState::remove_leftovers() const {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored))
    if (entry.path().filename().string().find(".tmp-") != std::string::npos) fs::remove(entry.path(), ignored);
}

void WorkingState::read_results(std::int64_t layers) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const fs::path file = result_file(folder_, layer);
    if (!is_there(file) || !is_there(layer_file(folder_, layer))) break;
    results_.push_back(LayerResult::from_json(read_file(file), file.string()));
  }
  const auto done = static_cast<std::int64_t>(results_.size());
  if (done == 0 || done == layers) return;
  if (!is_there(hidden_file(done - 1)))
    fail(Status::invalid_file, "{}: expected the hidden states after layer {}, found none; start afresh (--restart)",
         folder_.string(), done - 1);
}

std::vector<float> WorkingState::load_hidden(std::int64_t elements) const {
  const auto done = static_cast<std::int64_t>(results_.size());
  CERMET_ASSERT(done > 0 && done < layers_);
  const SafetensorsFile file = SafetensorsFile::open(hidden_file(done - 1));
  const StoredTensor* tensor = file.find("hidden");
  if (!tensor || tensor->dtype != DType::f32 || tensor->elements() != elements)
    fail(Status::invalid_file, "{}: expected {} hidden states, found others; start afresh (--restart)",
         file.path().string(), elements);
  std::vector<float> hidden(static_cast<std::size_t>(elements));
  file.read(*tensor, 0, std::as_writable_bytes(std::span(hidden)));
  return hidden;
}

void WorkingState::complete(const LayerResult& result, std::span<const float> hidden) {
  const std::int64_t layer = result.layer;
  if (!hidden.empty()) {
    const std::vector<TensorSpec> specs{{"hidden", DType::f32, {static_cast<std::int64_t>(hidden.size())}}};
    SafetensorsWriter writer(hidden_file(layer), specs);
    writer.write(0, 0, std::as_bytes(hidden));
    writer.commit();
  }
  write_file_atomically(result_file(folder_, layer), result.to_json());  // from here on the layer is complete
  std::error_code ignored;
  fs::remove(hidden_file(layer - 1), ignored);
  results_.push_back(result);
}

}  // namespace cermet

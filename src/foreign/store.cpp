#include "foreign/store.hpp"

#include <fcntl.h>
#include <stdio.h>  // NOLINT(modernize-deprecated-headers): renameat2

#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/env.hpp"
#include "base/text.hpp"
#include "foreign/code.hpp"
#include "foreign/own_names.hpp"
#include "io/cache_folder.hpp"
#include "io/digest.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"

namespace cermet::foreign {
namespace {

namespace fs = std::filesystem;

constexpr const char *manifest_name = "manifest.json", *entry_name = "entry.json", *temporary_mark = ".tmp-";
constexpr JsonLimits entry_limits{.max_bytes = 1 << 18, .max_values = 1 << 12, .max_depth = 4};

std::string digest_of(const std::map<std::string, std::string>& digests) {
  std::string text;
  for (const auto& [file, value] : digests) text += fmt::format("{} {}\n", value, file);
  return digest(text);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> list;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.find('.') != std::string::npos && name.find(temporary_mark) == std::string::npos)
      list.push_back(at->path());
  }
  std::ranges::sort(list);
  return list;
}

void read_entry(StoredKernel& kernel) {
  const auto document = JsonDocument::read(kernel.folder / entry_name, entry_limits);
  const Json root = document.root().as_object();
  root.at("cermet_kernel_entry").as_integer(1, 1);
  kernel.added = root.at("added").as_string();
  for (const Json file : root.at("files").as_object()) kernel.digests.emplace(file.key(), file.as_string());
  kernel.digest = digest_of(kernel.digests);
  Manifest manifest = read_manifest(kernel.folder / manifest_name);
  const auto stored = kernel.digests.find(manifest_name);
  if (stored == kernel.digests.end() || digest(manifest.text) != stored->second)
    fail(Status::invalid_file, "{}: expected the manifest that was stored, found another",
         (kernel.folder / manifest_name).string());
  if (manifest.name != kernel.name)
    fail(Status::invalid_file, "{}: expected a kernel of this name, found {}", kernel.folder.string(),
         quote(manifest.name));
  for (const std::string& file : manifest.files())
    if (!kernel.digests.contains(file))
      fail(Status::invalid_file, "{}: expected a digest of {}, found none", (kernel.folder / entry_name).string(),
           file);
  kernel.manifest = std::move(manifest);
}

StoredKernel read_stored(const fs::path& folder) {
  StoredKernel kernel;
  kernel.folder = folder;
  kernel.name = folder.filename().string();
  try {
    read_entry(kernel);
  } catch (const Error& error) {
    kernel.problem = error.what();
  }
  return kernel;
}

/// What an interrupted process left behind.
void delete_abandoned(const fs::path& store) {
  std::error_code error;
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (fs::directory_iterator at(store, error), end; !error && at != end; at.increment(error)) {
    const bool is_temporary = at->path().filename().string().find(temporary_mark) != std::string::npos;
    std::error_code ignored;
    if (is_temporary && at->last_write_time(ignored) < before) fs::remove_all(at->path(), ignored);
  }
}

void write_new_file(const fs::path& path, std::string_view content) {
  PosixFile file = PosixFile::create(path);
  file.write(0, std::as_bytes(std::span(content.data(), content.size())));
  file.sync_and_close();
}

fs::path checked_store() {
  fs::path store = own_store();
  if (store.empty())
    fail(Status::io,
         "cache folder: expected CERMET_CACHE_DIR, XDG_CACHE_HOME or HOME to say where kernels are kept, found none of "
         "them");
  std::error_code error;
  fs::create_directories(store, error);
  if (error) fail(Status::io, "{}: cannot be created: {}", store.string(), error.message());
  return store;
}

}  // namespace

std::string time_text(std::int64_t seconds_since_1970) {
  const std::time_t seconds = seconds_since_1970;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%F %T", &parts)};
}

fs::path own_store() {
  const fs::path cache = cache_folder();
  return cache.empty() ? fs::path() : cache / foreign_kernels_folder;
}

std::vector<fs::path> store_folders() {
  std::vector<fs::path> list;
  if (fs::path own = own_store(); !own.empty()) list.push_back(std::move(own));
  std::string_view text = env::value(env::Name::CERMET_KERNELS);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (end > 0) list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return list;
}

std::vector<StoredKernel> stored_kernels() {
  std::vector<StoredKernel> list;
  for (const fs::path& store : store_folders())
    for (const fs::path& folder : entries_of(store)) {
      StoredKernel& kernel = list.emplace_back(read_stored(folder));
      const auto first = std::ranges::find(list, kernel.name, &StoredKernel::name);
      if (first->folder == kernel.folder) continue;
      kernel.problem = fmt::format("{} has this name before it", first->folder.string());
      kernel.manifest.reset();
    }
  return list;
}

StoredKernel stored_kernel(std::string_view name) {
  std::vector<StoredKernel> all = stored_kernels();
  const auto found = std::ranges::find(all, name, &StoredKernel::name);
  if (found != all.end()) return std::move(*found);
  std::vector<std::string> names;
  for (const StoredKernel& kernel : all) names.push_back(kernel.name);
  fail(Status::invalid_argument, "kernel: expected {}, found {}",
       names.empty() ? "one that was added; there is none" : fmt::format("one of {}", fmt::join(names, ", ")),
       quote(name));
}

void remove_kernel(std::string_view name) {
  const StoredKernel kernel = stored_kernel(name);
  if (kernel.folder.parent_path() != own_store())
    fail(Status::unsupported, "kernel {}: expected one in {}, found it in {}, which is only read", name,
         own_store().string(), kernel.folder.string());
  const fs::path away = temporary_sibling(kernel.folder);
  rename_file(kernel.folder, away);  // gone at once for readers
  std::error_code error;
  fs::remove_all(away, error);
  if (error) fail(Status::io, "{}: cannot be deleted: {}", away.string(), error.message());
}

StagedKernel::StagedKernel(const fs::path& manifest_file, bool replace) {
  const Manifest manifest = read_manifest(manifest_file);
  if (is_own_kernel(manifest.name))
    fail(Status::invalid_argument, "{}: name: expected none of Cermet's own kernels', found {}", manifest_file.string(),
         manifest.name);
  const fs::path store = checked_store();
  final_ = store / manifest.name;
  for (const StoredKernel& other : stored_kernels()) {
    if (other.name != manifest.name) continue;
    if (other.folder != final_)
      fail(Status::invalid_argument, "{}: name: expected one that is not taken, found that of {}",
           manifest_file.string(), other.folder.string());
    require(replace,
            "kernel {}: expected a name that is not taken, found one that was added on {}; --replace replaces it",
            manifest.name, other.added.empty() ? "an unknown day" : other.added);
  }
  delete_abandoned(store);
  temporary_ = temporary_sibling(final_);
  std::error_code error;
  if (!fs::create_directory(temporary_, error))
    fail(Status::io, "{}: cannot be created: {}", temporary_.string(), error.message());
  try {
    copy(manifest_file, manifest);
  } catch (...) {
    fs::remove_all(temporary_, error);
    throw;
  }
}

void StagedKernel::copy(const fs::path& manifest_file, const Manifest& manifest) {
  std::map<std::string, std::string> contents{{manifest_name, manifest.text}};
  for (const std::string& file : manifest.files())
    contents.emplace(file, read_file(manifest_file.parent_path() / file, Manifest::most_file_bytes));
  for (const Instance& instance : manifest.instances)
    check_code(manifest.kind, contents.at(instance.file), instance.entry,
               (manifest_file.parent_path() / instance.file).string());
  kernel_.name = manifest.name;
  kernel_.folder = temporary_;
  kernel_.added = time_text(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  JsonValue files = JsonValue::object();
  for (const auto& [name, content] : contents) {
    write_new_file(temporary_ / name, content);
    kernel_.digests.emplace(name, digest(content));
    files[name] = digest(content);
  }
  kernel_.digest = digest_of(kernel_.digests);
  kernel_.manifest = manifest;
  write_new_file(temporary_ / entry_name,
                 JsonValue{{"cermet_kernel_entry", 1}, {"added", kernel_.added}, {"files", files}}.dump(1) + "\n");
}

StagedKernel::~StagedKernel() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void StagedKernel::commit() {
  std::error_code error;
  if (!fs::exists(final_, error)) rename_file(temporary_, final_);
  else if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0)
    fs::remove_all(temporary_, error);
  else {  // a file system that cannot exchange two names
    const fs::path old = temporary_sibling(final_);
    rename_file(final_, old);
    rename_file(temporary_, final_);
    fs::remove_all(old, error);
  }
  temporary_.clear();
  kernel_.folder = final_;
}

}  // namespace cermet::foreign

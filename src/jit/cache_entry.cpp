#include "jit/cache_entry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.hpp"
#include "jit/digest.hpp"

namespace cermet::jit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int format = 1;
constexpr const char *source_file = "source.cu", *image_file = "image", *description_file = "entry.json";
constexpr std::array files{source_file, image_file, description_file};
constexpr std::int64_t max_description = 16 << 20, max_file = std::int64_t{1} << 30;  ///< bytes; larger files are not entries

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

/// A file's bytes; throws Error saying what is wrong with it.
std::string read_file(int folder, const char* name, std::int64_t largest) {
  const Descriptor file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) fail(Status::invalid_file, "{}: {}", name, std::strerror(errno));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) fail(Status::invalid_file, "{}: expected a regular file", name);
  if (status.st_size > largest) fail(Status::invalid_file, "{}: expected at most {} bytes, found {}", name, largest, std::int64_t{status.st_size});
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = read(file.get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(Status::invalid_file, "{}: expected {} bytes, found {}", name, text.size(), done);
    done += static_cast<std::size_t>(got);
  }
  return text;
}

std::int64_t file_size(int folder, const char* name) {
  struct stat status {};
  return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) ? std::int64_t{status.st_size} : 0;
}

/// A field of the description; throws Error naming it.
template <class T>
T field(const Json& json, const char* name) {
  const auto found = json.find(name);
  try {
    if (found != json.end()) return found->get<T>();
  } catch (const Json::exception&) {
  }
  fail(Status::invalid_file, "{}: expected a field '{}' of another type", description_file, name);
}

void check_digest(const char* name, std::string_view content, const std::string& expected) {
  const std::string found = digest(content);
  if (found != expected) fail(Status::invalid_file, "{}: expected checksum {}, found {}", name, expected, found);
}

void read_files(int folder, const fs::path& path, bool whole, ReadEntry& entry) {
  const Json json = Json::parse(read_file(folder, description_file, max_description), nullptr, false);
  if (!json.is_object()) fail(Status::invalid_file, "{}: expected a JSON object", description_file);
  if (const int found = field<int>(json, "format"); found != format)
    fail(Status::invalid_file, "{}: expected format {}, found {}", description_file, format, found);
  entry.name = field<std::string>(json, "name");
  entry.image.seconds = field<double>(json, "seconds");
  entry.image.log = field<std::string>(json, "log");
  entry.key = read_file(folder, source_file, max_file);
  check_digest(source_file, entry.key, path.filename().string());
  const std::int64_t bytes = field<std::int64_t>(json, "image_bytes"), found = file_size(folder, image_file);
  if (found != bytes) fail(Status::invalid_file, "{}: expected {} bytes, found {}", image_file, bytes, found);
  if (!whole) return;
  const std::string image = read_file(folder, image_file, max_file);
  check_digest(image_file, image, field<std::string>(json, "image_xxh3"));
  const auto span = std::as_bytes(std::span(image));
  entry.image.bytes.assign(span.begin(), span.end());
}

/// Whether a path still leads to the folder that is open.
bool is_same(const fs::path& path, const struct stat& open) {
  struct stat now {};
  return lstat(path.c_str(), &now) == 0 && now.st_dev == open.st_dev && now.st_ino == open.st_ino;
}

void write_file(const fs::path& path, std::string_view content) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) fail(Status::io, "{}: {}", path.string(), std::strerror(errno));
  while (!content.empty()) {
    const ssize_t put = write(file.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(Status::io, "{}: {}", path.string(), std::strerror(errno));
    content.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace

ReadEntry read_entry(const fs::path& folder, bool whole) {
  ReadEntry entry;
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened) {
    const int error = errno;
    if (error == ENOENT || lstat(folder.c_str(), &status) != 0) return entry;  // another may have put it there since
    entry.state = ReadEntry::State::damaged;
    entry.problem = fmt::format("expected a folder: {}", std::strerror(error));
    return entry;
  }
  if (fstat(opened.get(), &status) != 0) return entry;
  entry.last_used_ns = nanoseconds(status.st_mtim);
  for (const char* name : files) entry.bytes += file_size(opened.get(), name);
  try {
    read_files(opened.get(), folder, whole, entry);
    entry.state = ReadEntry::State::sound;
  } catch (const Error& error) {
    if (!is_same(folder, status)) return {};  // replaced or deleted while it was read
    entry.state = ReadEntry::State::damaged;
    entry.problem = error.what();
  }
  return entry;
}

void write_entry(const fs::path& folder, const std::string& key, const std::string& name, const StoredImage& image) {
  const std::string_view bytes(reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size());
  const Json json{{"format", format},         {"name", name},    {"image_bytes", image.bytes.size()}, {"image_xxh3", digest(bytes)},
                  {"seconds", image.seconds}, {"log", image.log}};
  write_file(folder / source_file, key);
  write_file(folder / image_file, bytes);
  write_file(folder / description_file, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void touch_entry(const fs::path& folder) { utimensat(AT_FDCWD, folder.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

bool delete_entry(const fs::path& folder) {
  for (const char* name : files) unlink((folder / name).c_str());
  return rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

}  // namespace cermet::jit

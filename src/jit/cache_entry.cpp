#include "jit/cache_entry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/error.hpp"
#include "io/digest.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"

namespace cermet::jit {
namespace {

namespace fs = std::filesystem;

constexpr int format = 1;
constexpr const char *source_file = "source.cu", *image_file = "image", *description_file = "entry.json";
constexpr std::array files{source_file, image_file, description_file};
constexpr std::int64_t max_description = 16 << 20,
                       max_file = std::int64_t{1} << 30;  ///< bytes; larger files are not entries

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

std::string read_file(int folder, const char* name, std::int64_t largest) {
  return cermet::read_file(PosixFile::open_for_reading(folder, name), largest);
}

std::int64_t file_size(int folder, const char* name) {
  struct stat status {};
  return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)
             ? std::int64_t{status.st_size}
             : 0;
}

void check_digest(const char* name, std::string_view content, const std::string& expected) {
  const std::string found = digest(content);
  if (found != expected) fail(Status::invalid_file, "{}: expected checksum {}, found {}", name, expected, found);
}

void read_files(int folder, const fs::path& path, bool whole, ReadEntry& entry) {
  const JsonDocument document =
      JsonDocument::parse(read_file(folder, description_file, max_description), description_file);
  const Json json = document.root().as_object();
  json.at("format").as_integer(format, format);
  entry.name = json.at("name").as_string();
  entry.image.seconds = json.at("seconds").as_number();
  entry.image.log = json.at("log").as_string();
  entry.key = read_file(folder, source_file, max_file);
  check_digest(source_file, entry.key, path.filename().string());
  const std::int64_t bytes = json.at("image_bytes").as_integer(0), found = file_size(folder, image_file);
  if (found != bytes) fail(Status::invalid_file, "{}: expected {} bytes, found {}", image_file, bytes, found);
  if (!whole) return;
  const std::string image = read_file(folder, image_file, max_file);
  check_digest(image_file, image, std::string(json.at("image_xxh3").as_string()));
  const auto span = std::as_bytes(std::span(image));
  entry.image.bytes.assign(span.begin(), span.end());
}

/// Whether a path still leads to the folder that is open.
bool is_same(const fs::path& path, const struct stat& open) {
  struct stat now {};
  return lstat(path.c_str(), &now) == 0 && now.st_dev == open.st_dev && now.st_ino == open.st_ino;
}

void write_file(const fs::path& path, std::string_view content) {
  PosixFile::create(path).write(0, std::as_bytes(std::span(content.data(), content.size())));
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
  const JsonValue json{
      {"format", format},         {"name", name},    {"image_bytes", image.bytes.size()}, {"image_xxh3", digest(bytes)},
      {"seconds", image.seconds}, {"log", image.log}};
  write_file(folder / source_file, key);
  write_file(folder / image_file, bytes);
  write_file(folder / description_file, json.dump(1) + "\n");
}

void touch_entry(const fs::path& folder) { utimensat(AT_FDCWD, folder.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

bool delete_entry(const fs::path& folder) {
  for (const char* name : files) unlink((folder / name).c_str());
  return rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

}  // namespace cermet::jit

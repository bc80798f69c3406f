// One safetensors file: a strict reader and an atomic writer. Format: https://github.com/huggingface/safetensors (a
// length of 8 bytes, a JSON header, the tensors' bytes); docs/formats.md lists what is checked. Data is read into the
// caller's memory and not mapped: a file that is cut while it is open becomes an error and not a signal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "io/posix_file.hpp"

namespace cermet {

/// A tensor's entry in a header.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< rank 0 and zero-size dimensions are legal
  std::int64_t begin = 0, end = 0;  ///< bytes, from the start of the data section

  std::int64_t bytes() const { return end - begin; }
  std::int64_t elements() const { return bytes() / byte_size(dtype); }
};

/// "[320, 96]".
std::string shape_to_string(std::span<const std::int64_t> shape);

class SafetensorsFile {
 public:
  static constexpr std::int64_t max_header_bytes = 100'000'000;

  /// Opens a file and checks its whole header; reads no tensor data. Throws Error(io) where the file cannot be read,
  /// Error(invalid_file) where it breaks the format, Error(unsupported) for an element type that is not known; the
  /// message names file, tensor and field.
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  /// Sorted by position in the file.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  /// Nothing (nullptr) where no tensor has the name.
  const StoredTensor* find(std::string_view name) const;
  /// The entries of "__metadata__".
  std::span<const std::pair<std::string, std::string>> metadata() const { return metadata_; }
  std::int64_t file_bytes() const { return stamp_.bytes; }

  /// Copies bytes [byte_offset, byte_offset + destination.size()) of one of tensors(). Thread-safe. Throws
  /// Error(invalid_file) where the file was changed since it was opened, Error(invalid_argument) where the range leaves
  /// the tensor.
  void read(const StoredTensor& tensor, std::int64_t byte_offset, std::span<std::byte> destination) const;

 private:
  explicit SafetensorsFile(PosixFile file) : file_(std::move(file)) {}
  void parse_header(std::string_view text);
  void check_coverage();
  void read_whole(std::int64_t offset, std::span<std::byte> destination) const;

  PosixFile file_;
  PosixFile::Stamp stamp_;
  std::int64_t data_begin_ = 0;  ///< of the data section, in the file
  std::vector<StoredTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

/// What a file will hold, in the order of its data section.
struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

/// Writes a file under a temporary name in the same folder and renames it when complete. Destroyed before commit(), it
/// leaves nothing behind. Failures of the disk are Error(io) naming the path.
class SafetensorsWriter {
 public:
  /// Writes the header and claims the disk space. Names must be unique UTF-8.
  SafetensorsWriter(std::filesystem::path path, std::span<const TensorSpec> tensors,
                    std::span<const std::pair<std::string, std::string>> metadata = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// Bytes of tensor `index`.
  std::int64_t bytes_of(std::size_t index) const { return offsets_[index + 1] - offsets_[index]; }
  std::int64_t data_bytes() const { return offsets_.back(); }
  /// Writes part of tensor `index`. Parts may come in any order and from several threads, each byte once.
  void write(std::size_t index, std::int64_t byte_offset, std::span<const std::byte> source);
  /// Brings the file to disk and gives it its name. Every byte must have been written.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  std::vector<std::int64_t> offsets_;  ///< of each tensor in the data section, and the section's size
  std::int64_t data_begin_ = 0;
  std::atomic<std::int64_t> written_{0};
  PosixFile file_;
  bool committed_ = false;
};

/// Writes the index beside the files of a checkpoint that has several: the file of every tensor, by the tensor's name.
void write_safetensors_index(const std::filesystem::path& path, const std::map<std::string, std::string>& files,
                             std::int64_t total_bytes);

}  // namespace cermet

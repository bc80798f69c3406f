#include "io/safetensors.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "io/git_lfs.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"

namespace cermet {
namespace {

constexpr std::int64_t length_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";

std::int64_t decode_length(std::span<const std::byte, length_bytes> bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(length, largest));  // anything near the limit is refused alike
}

/// Bytes of a dense tensor; nothing where they do not fit 63 bits.
std::optional<std::int64_t> dense_bytes(DType dtype, std::span<const std::int64_t> shape) {
  std::optional<std::int64_t> bytes = 1;
  for (const std::int64_t dim : shape) {
    bytes = checked_mul(*bytes, dim);
    if (!bytes) return bytes;
  }
  return checked_mul(*bytes, byte_size(dtype));
}

DType parse_dtype(Json field) {
  const std::string_view name = field.as_string();
  if (const std::optional<DType> dtype = dtype_from_stored_name(name); dtype && !name.empty()) return *dtype;
  field.unexpected(
      "an element type that is known (BOOL, U8, I8, F8_E4M3, F8_E5M2, U16, I16, F16, BF16, U32, I32, F32, U64, I64 or "
      "F64)",
      Status::unsupported);
}

StoredTensor parse_tensor(Json entry) {
  StoredTensor tensor;
  tensor.name = entry.key();
  tensor.dtype = parse_dtype(entry.at("dtype"));
  for (Json dim : entry.at("shape").as_array()) tensor.shape.push_back(dim.as_integer(0));
  const Json offsets = entry.at("data_offsets").as_array();
  if (offsets.size() != 2) offsets.unexpected("[begin, end]");
  tensor.begin = offsets.at(std::size_t{0}).as_integer(0);
  tensor.end = offsets.at(std::size_t{1}).as_integer(0);
  if (tensor.begin > tensor.end)
    offsets.refuse(fmt::format("expected begin <= end, found [{}, {}]", tensor.begin, tensor.end));
  const std::optional<std::int64_t> bytes = dense_bytes(tensor.dtype, tensor.shape);
  const std::string type = fmt::format("{}{}", stored_name_of(tensor.dtype), shape_to_string(tensor.shape));
  if (!bytes) entry.refuse(fmt::format("expected a size below 2^63 bytes, found {}", type));
  if (*bytes != tensor.bytes())
    offsets.refuse(fmt::format("expected {} bytes for {}, found {}", *bytes, type, tensor.bytes()));
  return tensor;
}

/// Where the tensors of a file will lie, and the text that says so.
struct Layout {
  std::vector<std::int64_t> offsets{0};
  std::string header;
};

std::string json_string(const std::string& text, const char* what) {
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(first_utf8_unit(rest).size))
    if (!first_utf8_unit(rest).valid)
      fail(Status::invalid_argument, "safetensors: {}: expected UTF-8, found {}", what, quote(text));
  return JsonValue(text).dump();
}

Layout lay_out(std::span<const TensorSpec> tensors, std::span<const std::pair<std::string, std::string>> metadata) {
  Layout layout;
  std::string& header = layout.header;
  header = "{";
  if (!metadata.empty()) {
    header += fmt::format("\"{}\":{{", metadata_key);
    for (const auto& [key, value] : metadata) {
      header += fmt::format("{}{}:{}", header.back() == '{' ? "" : ",", json_string(key, "metadata key"),
                            json_string(value, "metadata value"));
    }
    header += '}';
  }
  for (const TensorSpec& tensor : tensors) {
    const std::optional<std::int64_t> bytes = dense_bytes(tensor.dtype, tensor.shape);
    const std::optional<std::int64_t> end = bytes ? checked_add(layout.offsets.back(), *bytes) : bytes;
    require(
        end.has_value() && std::all_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t d) { return d >= 0; }),
        "safetensors: {}: expected a size from 0 to 2^63 bytes, found {}", quote(tensor.name),
        shape_to_string(tensor.shape));
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() == 1 ? "" : ",", json_string(tensor.name, "tensor name"),
                          stored_name_of(tensor.dtype), fmt::join(tensor.shape, ","), layout.offsets.back(), *end);
    layout.offsets.push_back(*end);
  }
  header += '}';
  header.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(header.size()), length_bytes)),
                ' ');  // data begins aligned
  require(static_cast<std::int64_t>(header.size()) <= SafetensorsFile::max_header_bytes,
          "safetensors: expected a header of at most {} bytes, found {}", SafetensorsFile::max_header_bytes,
          header.size());
  return layout;
}

void refuse_same_names(std::span<const TensorSpec> tensors) {
  std::vector<std::string_view> names;
  for (const TensorSpec& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  require(twice == names.end(), "safetensors: expected each name once, found {} twice",
          twice == names.end() ? "" : quote(*twice));
  require(!std::binary_search(names.begin(), names.end(), metadata_key),
          "safetensors: expected a tensor's name, found {}", quote(metadata_key));
}

}  // namespace

std::string shape_to_string(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile result(PosixFile::open_for_reading(path));
  result.stamp_ = result.file_.stamp();
  const std::int64_t size = result.file_bytes();
  const auto refuse = [&](std::string_view expected, std::int64_t found) {
    fail(Status::invalid_file, "{}: expected {}, found {}", path.string(), expected, found);
  };
  if (size < length_bytes) refuse("at least 8 bytes", size);
  std::array<std::byte, length_bytes> prefix{};
  result.read_whole(0, prefix);
  const std::int64_t header_bytes = decode_length(prefix);
  if (header_bytes > max_header_bytes && size >= std::ssize(lfs_pointer_start)) {
    std::string start(lfs_pointer_start.size(), '\0');
    result.read_whole(0, std::as_writable_bytes(std::span(start)));
    refuse_lfs_pointer(path, start);
  }
  if (header_bytes > max_header_bytes) refuse("a header length of at most 100000000 bytes", header_bytes);
  if (header_bytes > size - length_bytes)
    refuse(fmt::format("a header length of at most {} bytes (the file has {})", size - length_bytes, size),
           header_bytes);
  std::string header(static_cast<std::size_t>(header_bytes), '\0');
  result.read_whole(length_bytes, std::as_writable_bytes(std::span(header)));
  result.data_begin_ = length_bytes + header_bytes;
  result.parse_header(header);
  result.check_coverage();
  for (std::size_t i = 0; i < result.tensors_.size(); ++i) result.by_name_.emplace(result.tensors_[i].name, i);
  return result;
}

void SafetensorsFile::parse_header(std::string_view text) {
  const JsonDocument header =
      JsonDocument::parse(text, path().string(), {.max_bytes = max_header_bytes, .max_depth = 8});
  for (Json entry : header.root().as_object()) {
    if (entry.key() != metadata_key) {
      tensors_.push_back(parse_tensor(entry.as_object()));
      continue;
    }
    for (Json item : entry.as_object()) metadata_.emplace_back(item.key(), item.as_string());
  }
}

// Sorted by offset, each tensor begins where the one before ended, and the last ends with the file.
void SafetensorsFile::check_coverage() {
  std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const std::int64_t data_bytes = file_bytes() - data_begin_;
  std::int64_t covered = 0;
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.begin != covered) {
      fail(Status::invalid_file, "{}: {}: expected data from byte {} on, found {} of it at byte {}", path().string(),
           quote(tensor.name), covered, tensor.begin < covered ? "an overlap: the begin" : "a hole: the begin",
           tensor.begin);
    }
    if (tensor.end > data_bytes) {
      fail(Status::invalid_file, "{}: {}: expected data within {} bytes, found its end at byte {} (the file is cut)",
           path().string(), quote(tensor.name), data_bytes, tensor.end);
    }
    covered = tensor.end;
  }
  if (covered != data_bytes)
    fail(Status::invalid_file, "{}: expected {} bytes of data, found {}", path().string(), covered, data_bytes);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::read(const StoredTensor& tensor, std::int64_t byte_offset,
                           std::span<std::byte> destination) const {
  const auto count = static_cast<std::int64_t>(destination.size());
  require(byte_offset >= 0 && byte_offset <= tensor.bytes() && count <= tensor.bytes() - byte_offset,
          "{}: {}: expected a range within {} bytes, found {} bytes at {}", path().string(), quote(tensor.name),
          tensor.bytes(), count, byte_offset);
  read_whole(data_begin_ + tensor.begin + byte_offset, destination);
}

void SafetensorsFile::read_whole(std::int64_t offset, std::span<std::byte> destination) const {
  const std::size_t got = file_.read(offset, destination);
  const PosixFile::Stamp now = file_.stamp();
  if (now.bytes != stamp_.bytes || got != destination.size()) {
    fail(Status::invalid_file, "{}: expected {} bytes as when the file was opened, found {}: it is being changed",
         path().string(), stamp_.bytes, now.bytes);
  }
  if (now != stamp_)
    fail(Status::invalid_file, "{}: expected the file as it was when it was opened, found it changed", path().string());
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::span<const TensorSpec> tensors,
                                     std::span<const std::pair<std::string, std::string>> metadata)
    : path_(std::move(path)),
      temporary_(temporary_sibling(path_)),
      file_((refuse_same_names(tensors), PosixFile::create(temporary_))) {
  try {
    Layout layout = lay_out(tensors, metadata);
    offsets_ = std::move(layout.offsets);
    data_begin_ = length_bytes + static_cast<std::int64_t>(layout.header.size());
    file_.reserve(data_begin_ + offsets_.back());
    std::array<std::byte, length_bytes> prefix{};
    for (std::size_t i = 0; i < prefix.size(); ++i) prefix[i] = static_cast<std::byte>(layout.header.size() >> (8 * i));
    file_.write(0, prefix);
    file_.write(length_bytes, std::as_bytes(std::span(layout.header)));
  } catch (...) {
    unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!committed_) unlink(temporary_.c_str());
}

void SafetensorsWriter::write(std::size_t index, std::int64_t byte_offset, std::span<const std::byte> source) {
  const auto count = static_cast<std::int64_t>(source.size());
  CERMET_ASSERT(index + 1 < offsets_.size() && byte_offset >= 0 && count <= bytes_of(index) - byte_offset);
  file_.write(data_begin_ + offsets_[index] + byte_offset, source);
  written_ += count;
}

void SafetensorsWriter::commit() {
  CERMET_ASSERT(!committed_ && written_ == data_bytes());
  file_.sync_and_close();
  rename_file(temporary_, path_);
  committed_ = true;
}

void write_safetensors_index(const std::filesystem::path& path, const std::map<std::string, std::string>& files,
                             std::int64_t total_bytes) {
  JsonValue weight_map = JsonValue::object();
  for (const auto& [tensor, file] : files) weight_map.append(tensor, file);
  write_file_atomically(
      path,
      JsonValue{{"metadata", {{"total_size", total_bytes}}}, {"weight_map", std::move(weight_map)}}.dump(2) + "\n");
}

}  // namespace cermet

#include "io/npy.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <string>

#include "io/posix_file.hpp"

namespace cermet {
namespace {

struct Spelling {
  DType dtype;
  const char* text;
};

const Spelling spellings[]{{DType::boolean, "|b1"},     {DType::u8, "|u1"},          {DType::i8, "|i1"},
                           {DType::u16, "<u2"},         {DType::i16, "<i2"},         {DType::f16, "<f2"},
                           {DType::u32, "<u4"},         {DType::i32, "<i4"},         {DType::f32, "<f4"},
                           {DType::u64, "<u8"},         {DType::i64, "<i8"},         {DType::f64, "<f8"},
                           {DType::bf16, "<V2"},        {DType::f8_e4m3, "|V1"},     {DType::f8_e5m2, "|V1"},
                           {DType::f8_e4m3fnuz, "|V1"}, {DType::f8_e5m2fnuz, "|V1"}, {DType::f8_e8m0, "|V1"}};

constexpr std::string_view magic("\x93NUMPY", 6);

class HeaderReader {
 public:
  HeaderReader(const std::filesystem::path& path, std::string_view text) : path_(path), text_(text) {}

  /// What follows 'key': up to a comma, or a closing parenthesis where it begins with one.
  std::string_view entry(std::string_view key) const {
    const std::size_t at = text_.find(fmt::format("'{}':", key));
    if (at == std::string_view::npos) bad(fmt::format("a header with '{}'", key), text_);
    std::string_view remaining = text_.substr(at + key.size() + 3);
    remaining.remove_prefix(std::min(remaining.find_first_not_of(' '), remaining.size()));
    const std::size_t end = remaining.starts_with('(') ? remaining.find(')') : remaining.find_first_of(",}");
    if (end == std::string_view::npos) bad("a complete header", text_);
    return remaining.substr(0, remaining.starts_with('(') ? end + 1 : end);
  }

  Shape shape() const {
    std::string_view list = entry("shape");
    if (!list.starts_with('(')) bad("a shape in parentheses", list);
    Shape shape;
    list = list.substr(1, list.size() - 2);
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(','), list.size());
      std::string_view number = list.substr(0, end);
      number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
      list.remove_prefix(std::min(end + 1, list.size()));
      if (number.empty()) continue;
      std::int64_t size = 0;
      const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), size);
      const std::string_view remaining = number.substr(static_cast<std::size_t>(stop - number.data()));
      if (error != std::errc() || size < 0 || remaining.find_first_not_of(' ') != std::string_view::npos)
        bad("non-negative dimensions", number);
      if (shape.rank() == Shape::max_rank) bad(fmt::format("at most {} dimensions", Shape::max_rank), entry("shape"));
      shape.push_back(size);
    }
    return shape;
  }

  DType dtype(std::optional<DType> expected) const {
    std::string descr(entry("descr"));
    std::erase_if(descr, [](char c) { return c == '\'' || c == '"' || c == ' '; });
    if (descr.size() >= 3 && descr[1] == 'V') {
      const std::size_t bytes = descr[2] == '1' ? 1 : descr[2] == '2' ? 2 : 0;
      if (expected && size_of(*expected) == bytes) return *expected;
      if (bytes == 2) return DType::bf16;
    }
    if (descr.size() > 1 && (descr[0] == '=' || (descr[0] == '<' && descr.back() == '1')))
      descr[0] = descr.back() == '1' ? '|' : '<';
    for (const Spelling& spelling : spellings)
      if (descr == spelling.text && descr[1] != 'V') return spelling.dtype;
    bad("an element type of numbers in this machine's byte order", descr);
  }

  bool is_column_major() const { return entry("fortran_order").starts_with("True"); }

 private:
  [[noreturn]] void bad(std::string_view expected, std::string_view found) const {
    fail(Status::invalid_file, "{}: expected {}, found '{}'", path_.string(), expected, found.substr(0, 80));
  }
  const std::filesystem::path& path_;
  std::string_view text_;
};

/// Elements of a column-major array in row-major order.
void reorder(const TensorView& from, const TensorView& to) {
  const Shape& shape = to.shape;
  const std::size_t bytes = size_of(to.dtype);
  for (std::int64_t i = 0; i < to.elements(); ++i) {
    std::int64_t remaining = i, at = 0;
    Shape position = shape;
    for (int a = shape.rank() - 1; a >= 0; --a) {
      position[a] = remaining % shape[a];
      remaining /= shape[a];
    }
    for (int a = shape.rank() - 1; a >= 0; --a) at = at * shape[a] + position[a];
    std::memcpy(to.as<char>() + static_cast<std::size_t>(i) * bytes,
                from.as<const char>() + static_cast<std::size_t>(at) * bytes, bytes);
  }
}

}  // namespace

OwnedTensor read_npy(const std::filesystem::path& path, std::optional<DType> expected) {
  const PosixFile file = PosixFile::open_for_reading(path);
  std::array<char, 12> head{};
  const std::size_t found = file.read(0, std::as_writable_bytes(std::span(head)));
  if (found < 10 || std::string_view(head.data(), 6) != magic)
    fail(Status::invalid_file, "{}: expected a .npy file, found other bytes", path.string());
  const bool is_long = head[6] >= 2;
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(head[i])); };
  if (is_long && found < 12)
    fail(Status::invalid_file, "{}: expected a .npy file, found one that ends in its header", path.string());
  const std::size_t start = is_long ? 12 : 10,
                    length = byte(8) | byte(9) << 8 | (is_long ? byte(10) << 16 | byte(11) << 24 : 0);
  if (length > (1u << 20) || static_cast<std::int64_t>(start + length) > file.stamp().bytes)
    fail(Status::invalid_file, "{}: expected a header of at most 1 MiB inside the file, found {} bytes", path.string(),
         length);
  std::string text(length, '\0');
  file.read(static_cast<std::int64_t>(start), std::as_writable_bytes(std::span(text)));
  const HeaderReader header(path, text);
  const DType dtype = header.dtype(expected);
  const Shape shape = header.shape();
  const std::int64_t have = file.stamp().bytes - static_cast<std::int64_t>(start + length), bytes = [&] {
    try {
      return dense_bytes(dtype, shape);
    } catch (const Error& error) {
      fail(Status::invalid_file, "{}: {}", path.string(), error.what());
    }
  }();
  if (bytes != have)
    fail(Status::invalid_file, "{}: expected {} bytes of elements, found {}", path.string(), bytes, have);
  OwnedTensor tensor(dtype, shape);
  file.read(static_cast<std::int64_t>(start + length), {tensor.view.as<std::byte>(), static_cast<std::size_t>(bytes)});
  if (!header.is_column_major() || shape.rank() < 2) return tensor;
  OwnedTensor rows(dtype, shape);
  reorder(tensor.view, rows.view);
  return rows;
}

void write_npy(const std::filesystem::path& path, const TensorView& tensor) {
  CERMET_ASSERT(tensor.is_dense());
  std::string shape;
  for (const std::int64_t d : tensor.shape) shape += fmt::format("{}, ", d);
  if (tensor.shape.rank() > 1) shape.resize(shape.size() - 2);
  const char* descr = nullptr;
  for (const Spelling& spelling : spellings)
    if (spelling.dtype == tensor.dtype) descr = spelling.text;
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string content(magic);
  content += std::string("\x01\x00", 2);
  content += static_cast<char>(header.size() & 255);
  content += static_cast<char>(header.size() >> 8);
  content += header;
  const auto bytes = static_cast<std::size_t>(dense_bytes(tensor.dtype, tensor.shape));
  if (bytes > 0) content.append(tensor.as<const char>(), bytes);
  write_file_atomically(path, content);
}

}  // namespace cermet

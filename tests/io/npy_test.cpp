// NumPy's files: what is written is read again, and what other programs write; files that lie are refused.
#include "io/npy.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

class Npy : public ::testing::Test {
 protected:
  ~Npy() override { std::filesystem::remove(path_); }
  /// A file of version 1 with this header, padded as NumPy does, and these bytes of elements.
  void write(const std::string& header, const std::string& elements, char version = 1) {
    std::string text = header;
    text.append(63 - (10 + text.size()) % 64, ' ');
    text += '\n';
    std::string bytes("\x93NUMPY", 6);
    bytes += version;
    bytes += '\0';
    bytes += static_cast<char>(text.size() & 255);
    bytes += static_cast<char>(text.size() >> 8);
    if (version > 1) bytes += std::string(2, '\0');
    raw(bytes + text + elements);
  }
  void raw(const std::string& bytes) { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes; }
  std::string text() {
    std::string message = error_text([&] { read_npy(path_); });
    if (const std::string prefix = path_.string() + ": "; message.starts_with(prefix)) message.erase(0, prefix.size());
    return message;
  }
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("cermet_npy_test." + std::to_string(getpid()) + ".npy");
};

std::string floats(std::initializer_list<float> values) {
  std::string bytes;
  for (const float v : values) bytes.append(reinterpret_cast<const char*>(&v), 4);
  return bytes;
}

TEST_F(Npy, ReadsWhatItWrites) {
  for (const DType dtype :
       {DType::boolean, DType::u8, DType::i8, DType::u16, DType::i16, DType::f16, DType::u32, DType::i32, DType::f32,
        DType::u64, DType::i64, DType::f64, DType::bf16, DType::f8_e4m3, DType::f8_e5m2})
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{1, 2, 1, 3, 1, 1, 1, 2}}) {
      OwnedTensor made(dtype, shape);
      const auto bytes = static_cast<std::size_t>(dense_bytes(dtype, shape));
      for (std::size_t i = 0; i < bytes; ++i) made.view.as<unsigned char>()[i] = static_cast<unsigned char>(i % 2);
      write_npy(path_, made.view);
      const OwnedTensor read = read_npy(path_, dtype);
      EXPECT_EQ(read.view.dtype, dtype);
      EXPECT_EQ(read.view.shape, shape);
      EXPECT_TRUE(bytes == 0 || std::memcmp(read.view.data, made.view.data, bytes) == 0);
    }
}

TEST_F(Npy, AlignsElementsTo64Bytes) {
  OwnedTensor made(DType::f32, Shape{1});
  *made.view.as<float>() = 7;
  write_npy(path_, made.view);
  EXPECT_EQ((std::filesystem::file_size(path_) - 4) % 64, 0u);
}

TEST_F(Npy, ReadsColumnMajorArrays) {
  write("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", floats({1, 4, 2, 5, 3, 6}));
  const OwnedTensor read = read_npy(path_);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(read.view.as<float>()[i], static_cast<float>(i + 1));
}

TEST_F(Npy, ReadsOtherSpellingsAndVersions) {
  write("{\"descr\": \"<f4\", 'shape': (1,), 'fortran_order': False}", floats({1}));
  EXPECT_NE(text(), "no error") << "keys of NumPy's own writer are in single quotes";
  write("{'descr': \"=f4\", 'shape':(1,), 'fortran_order':False}", floats({1}), 2);
  EXPECT_EQ(text(), "no error");
  write("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", "ab");
  EXPECT_EQ(read_npy(path_).view.dtype, DType::bf16);
  EXPECT_EQ(read_npy(path_, DType::f16).view.dtype, DType::f16);
}

TEST_F(Npy, RefusesWhatIsNoArray) {
  raw("");
  EXPECT_EQ(text(), "expected a .npy file, found other bytes");
  raw("PK\3\4 an archive of arrays");
  EXPECT_EQ(text(), "expected a .npy file, found other bytes");
  raw(std::string("\x93NUMPY\x01\x00\xff\xff", 10));
  EXPECT_EQ(text(), "expected a header of at most 1 MiB inside the file, found 65535 bytes");
  raw(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12));
  EXPECT_EQ(text(), "expected a header of at most 1 MiB inside the file, found 4294967295 bytes");
  raw(std::string("\x93NUMPY\x02\x00\x01\x00", 10));
  EXPECT_NE(text(), "no error") << "the length of version 2 has four bytes";
}

TEST_F(Npy, RefusesHeadersThatLie) {
  const auto header = [&](const std::string& descr, const std::string& shape) {
    write("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }", floats({1, 2}));
    return text();
  };
  EXPECT_EQ(header("'<f4'", "(2,)"), "no error");
  EXPECT_EQ(header("'<f4'", "(3,)"), "expected 12 bytes of elements, found 8");
  EXPECT_EQ(header("'<f4'", "(1,)"), "expected 4 bytes of elements, found 8");
  EXPECT_EQ(header("'<f4'", "(-2,)"), "expected non-negative dimensions, found '-2'");
  EXPECT_EQ(header("'<f4'", "(9223372036854775808,)"), "expected non-negative dimensions, found '9223372036854775808'");
  EXPECT_EQ(header("'<f4'", "(2x,)"), "expected non-negative dimensions, found '2x'");
  EXPECT_EQ(header("'<f4'", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"),
            "expected at most 8 dimensions, found '(1, 1, 1, 1, 1, 1, 1, 1, 2)'");
  EXPECT_EQ(header("'<f4'", "(4611686018427387904, 4611686018427387904)"),
            "tensor f32[4611686018427387904, 4611686018427387904]: expected fewer than 2^63 bytes");
  EXPECT_EQ(header("'<f4'", "2"), "expected a shape in parentheses, found '2'");
  EXPECT_NE(header("'<f4'", "(2").find("expected a complete header"), std::string::npos);
  for (const char* descr : {"'>f4'", "'|O'", "'<U2'", "'<c8'", "[('a', '<f4')]", "''", "'|V3'", "'<V'"})
    EXPECT_NE(header(descr, "(2,)"), "no error") << descr;
  write("{'descr': '<f4', 'shape': (2,)}", floats({1, 2}));
  EXPECT_NE(text().find("expected a header with 'fortran_order'"), std::string::npos);
}

TEST_F(Npy, RefusesFilesThatEndEarly) {
  OwnedTensor made(DType::f32, Shape{3});
  for (int i = 0; i < 3; ++i) made.view.as<float>()[i] = 1;
  write_npy(path_, made.view);
  std::string whole(std::filesystem::file_size(path_), '\0');
  std::ifstream(path_, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(whole.size()));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    raw(whole.substr(0, length));
    EXPECT_NE(text(), "no error") << length;
  }
}

}  // namespace
}  // namespace cermet

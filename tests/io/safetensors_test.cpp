#include "io/safetensors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::expect_error;
using test::ScratchFolder;

std::string with_length(std::uint64_t length, std::string_view header, std::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes.append(header).append(data);
}

/// A file with a truthful length.
std::string file_of(std::string_view header, std::string_view data) { return with_length(header.size(), header, data); }

std::string zeros(std::size_t count) { return std::string(count, '\0'); }

std::vector<float> floats_of(const SafetensorsFile& file, const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  file.read(tensor, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Safetensors, ReadsTensorsSortedByPosition) {
  const ScratchFolder scratch;
  const float values[] = {1.5f, -2.0f, std::numeric_limits<float>::quiet_NaN()};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  const auto path =
      scratch.file("a.safetensors",
                   file_of(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
                           R"("a":{"data_offsets":[0,4],"shape":[],"dtype":"F32"}}   )",
                           data));
  const SafetensorsFile file = SafetensorsFile::open(path);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_TRUE(file.tensors()[0].shape.empty());  // rank 0 holds one element
  EXPECT_EQ(file.tensors()[1].name, "b");
  EXPECT_EQ(file.tensors()[1].shape, (std::vector<std::int64_t>{2, 1}));
  ASSERT_EQ(file.metadata().size(), 1u);
  EXPECT_EQ(file.metadata()[0], (std::pair<std::string, std::string>("format", "pt")));
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(floats_of(file, *file.find("a")), std::vector<float>{1.5f});
  const std::vector<float> b = floats_of(file, *file.find("b"));
  EXPECT_EQ(b[0], -2.0f);
  EXPECT_TRUE(std::isnan(b[1]));  // NaN is a value like any other
}

TEST(Safetensors, ReadsUnalignedAndEmptyTensors) {
  const ScratchFolder scratch;
  const float value = 3.25f;
  std::string data = "\x07" + zeros(4);
  std::memcpy(data.data() + 1, &value, sizeof value);
  const SafetensorsFile file = SafetensorsFile::open(scratch.file(
      "a",
      file_of(
          R"({"none":{"dtype":"F32","shape":[0,7],"data_offsets":[1,1]},"f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
          R"("last":{"dtype":"I64","shape":[0],"data_offsets":[5,5]},"byte":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]}})",
          data)));
  EXPECT_EQ(floats_of(file, *file.find("f")), std::vector<float>{3.25f});
  EXPECT_EQ(file.find("none")->bytes(), 0);
  EXPECT_TRUE(floats_of(file, *file.find("none")).empty());
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
  const ScratchFolder scratch;
  EXPECT_TRUE(SafetensorsFile::open(scratch.file("a", file_of("{}", ""))).tensors().empty());
}

TEST(Safetensors, KnowsEveryElementType) {
  const ScratchFolder scratch;
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string header = fmt::format(R"({{"x":{{"dtype":"{}","shape":[3],"data_offsets":[0,{}]}}}})",
                                           stored_name_of(dtype), 3 * size_of(dtype));
    const SafetensorsFile file = SafetensorsFile::open(scratch.file("a", file_of(header, zeros(3 * size_of(dtype)))));
    EXPECT_EQ(file.tensors()[0].dtype, dtype);
    EXPECT_EQ(file.tensors()[0].elements(), 3);
  }
}

/// A broken file: its bytes and what the message must say.
struct Broken {
  const char* title;
  std::string bytes;
  Status status;
  const char* fragment;
};

const std::string one_float = R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";

std::vector<Broken> broken_files() {
  const auto tensor = [](std::string_view entry, std::size_t data = 4) {
    return file_of(fmt::format(R"({{"x":{{{}}}}})", entry), zeros(data));
  };
  const auto invalid = Status::invalid_file;
  std::string deep = R"({"__metadata__":)";
  for (int i = 0; i < 100000; ++i) deep += "[";
  return {
      {"empty file", "", invalid, "expected at least 8 bytes, found 0"},
      {"seven bytes", zeros(7), invalid, "expected at least 8 bytes, found 7"},
      {"length past the end", with_length(one_float.size() + 5, one_float, zeros(4)), invalid,
       "expected a header length of at most"},
      {"length above the limit", with_length(100'000'001, one_float, zeros(4)), invalid,
       "expected a header length of at most 100000000 bytes, found 100000001"},
      {"length of 2^64 - 1", with_length(~0ull, one_float, zeros(4)), invalid,
       "expected a header length of at most 100000000"},
      {"length of 2^63 - 4", with_length((1ull << 63) - 4, one_float, zeros(4)), invalid,
       "expected a header length of at most 100000000"},
      {"length of 0", with_length(0, "", ""), invalid, "expected JSON"},
      {"length into the header", with_length(one_float.size() - 3, one_float, zeros(4)), invalid, "expected JSON"},
      {"not JSON", file_of("hello", ""), invalid, "expected JSON"},
      {"invalid UTF-8", file_of("{\"\xff\":{}}", ""), invalid, "expected JSON"},
      {"array instead of object", file_of("[]", ""), invalid, "expected an object, found an array"},
      {"content after the object", file_of(one_float + "{}", zeros(4)), invalid, "expected JSON"},
      {"zero byte as padding", file_of(one_float + zeros(1), zeros(4)), invalid, "zero byte"},
      {"deep nesting", file_of(deep, ""), invalid, "nested at most"},
      {"duplicate tensor",
       file_of(
           R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
           zeros(2)),
       invalid, "found \"x\" twice"},
      {"duplicate field", tensor(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), invalid,
       "found \"dtype\" twice"},
      {"metadata not an object", file_of(R"({"__metadata__":"pt"})", ""), invalid,
       "__metadata__: expected an object, found \"pt\""},
      {"metadata not strings", file_of(R"({"__metadata__":{"n":1}})", ""), invalid,
       "__metadata__.n: expected a string, found 1"},
      {"entry not an object", file_of(R"({"x":1})", ""), invalid, "x: expected an object, found 1"},
      {"no dtype", tensor(R"("shape":[1],"data_offsets":[0,4])"), invalid, "x.dtype: expected a value, found nothing"},
      {"no shape", tensor(R"("dtype":"F32","data_offsets":[0,4])"), invalid,
       "x.shape: expected a value, found nothing"},
      {"no offsets", tensor(R"("dtype":"F32","shape":[1])"), invalid,
       "x.data_offsets: expected a value, found nothing"},
      {"unknown dtype", tensor(R"("dtype":"F4","shape":[8],"data_offsets":[0,4])"), Status::unsupported,
       "x.dtype: expected an element type that is known"},
      {"lower-case dtype", tensor(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])"), Status::unsupported,
       "found \"f32\""},
      {"empty dtype", tensor(R"("dtype":"","shape":[1],"data_offsets":[0,4])"), Status::unsupported, "found \"\""},
      {"dtype a number", tensor(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), invalid,
       "x.dtype: expected a string, found 32"},
      {"negative dimension", tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), invalid,
       "x.shape[0]: expected an integer of at least 0, found -1"},
      {"fractional dimension", tensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), invalid,
       "x.shape[0]: expected an integer"},
      {"dimension as text", tensor(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])"), invalid,
       "x.shape[0]: expected an integer"},
      {"dimension of 2^64", tensor(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4])"), invalid,
       "x.shape[0]: expected an integer"},
      {"product overflows", tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), invalid,
       "below 2^63 bytes"},
      {"bytes overflow", tensor(R"("dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,4])"), invalid,
       "below 2^63 bytes"},
      {"size and offsets disagree", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), invalid,
       "expected 8 bytes for F32[2], found 4"},
      {"three offsets", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])"), invalid,
       "expected [begin, end]"},
      {"one offset", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4])"), invalid, "expected [begin, end]"},
      {"offsets reversed", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), invalid,
       "expected begin <= end, found [4, 0]"},
      {"negative offset", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])"), invalid,
       "x.data_offsets[0]: expected an integer of at least 0"},
      {"overlap",
       file_of(
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           zeros(4)),
       invalid, "\"b\": expected data from byte 3 on, found an overlap"},
      {"two tensors on the same bytes",
       file_of(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
           zeros(2)),
       invalid, "an overlap"},
      {"hole between",
       file_of(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           zeros(4)),
       invalid, "\"b\": expected data from byte 1 on, found a hole"},
      {"hole at the start", tensor(R"("dtype":"U8","shape":[2],"data_offsets":[2,4])"), invalid, "a hole"},
      {"data cut short", file_of(one_float, zeros(3)), invalid, "within 3 bytes, found its end at byte 4"},
      {"data too long", file_of(one_float, zeros(5)), invalid, "expected 4 bytes of data, found 5"},
      {"data beyond an end near 2^63",
       tensor(R"("dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807])"), invalid,
       "the file is cut"},
      {"data without tensors", file_of("{}", zeros(1)), invalid, "expected 0 bytes of data, found 1"},
  };
}

TEST(Safetensors, RefusesBrokenFiles) {
  const ScratchFolder scratch;
  for (const Broken& broken : broken_files()) {
    SCOPED_TRACE(broken.title);
    const auto path = scratch.file("broken.safetensors", broken.bytes);
    expect_error(broken.status, {"broken.safetensors: ", broken.fragment}, [&] { SafetensorsFile::open(path); });
  }
}

TEST(Safetensors, RefusesWhatIsNoRegularFile) {
  const ScratchFolder scratch;
  const auto open = [&](std::string_view name) { return [path = scratch / name] { SafetensorsFile::open(path); }; };
  expect_error(Status::io, {"absent: expected a file, found none"}, open("absent"));
  std::filesystem::create_directory(scratch / "folder");
  expect_error(Status::io, {"folder: expected a regular file, found a folder"}, open("folder"));
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  expect_error(Status::io, {"pipe: expected a regular file, found a device or pipe"}, open("pipe"));
}

TEST(Safetensors, ReadsWithinATensorOnly) {
  const ScratchFolder scratch;
  const SafetensorsFile file = SafetensorsFile::open(scratch.file("a", file_of(one_float, "abcd")));
  std::byte two[2];
  file.read(file.tensors()[0], 1, two);
  EXPECT_EQ(std::to_integer<char>(two[0]), 'b');
  for (const std::int64_t offset : {std::int64_t{3}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    expect_error(Status::invalid_argument, {"expected a range within 4 bytes"},
                 [&] { file.read(file.tensors()[0], offset, two); });
  }
}

TEST(Safetensors, NoticesThatAnOpenFileChanges) {
  const ScratchFolder scratch;
  const auto path = scratch.file("a", file_of(one_float, "abcd"));
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::byte four[4];
  file.read(file.tensors()[0], 0, four);
  std::filesystem::resize_file(path, 20);
  expect_error(Status::invalid_file, {"as when the file was opened, found 20"},
               [&] { file.read(file.tensors()[0], 0, four); });
  std::ofstream(path, std::ios::binary) << file_of(one_float, "efgh");  // the old size, other content, in place
  const timespec times[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  expect_error(Status::invalid_file, {"found it changed"}, [&] { file.read(file.tensors()[0], 0, four); });
}

TEST(Safetensors,
     AReplacedFileStaysReadable) {  // rename gives the name to another file; what is open stays what it was
  const ScratchFolder scratch;
  const auto path = scratch.file("a", file_of(one_float, "abcd"));
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::filesystem::rename(scratch.file("b", "other"), path);
  std::byte four[4];
  file.read(file.tensors()[0], 0, four);
  EXPECT_EQ(std::to_integer<char>(four[3]), 'd');
}

// Mutations of a valid file either open or give an Error; what opens can be read in full.
TEST(Safetensors, SurvivesMutations) {
  const ScratchFolder scratch;
  const std::string valid = file_of(
      R"({"__metadata__":{"format":"pt"},"model.a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("model.b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"c":{"dtype":"I8","shape":[],"data_offsets":[32,33]}} )",
      zeros(33));
  std::mt19937 random(7);
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = valid;
    for (std::size_t edits = 1 + below(3); edits > 0 && !bytes.empty(); --edits) {
      const std::size_t at = below(3) == 0 ? below(std::min<std::size_t>(bytes.size(), 12)) : below(bytes.size());
      switch (below(5)) {
        case 0: bytes[at] = static_cast<char>(below(256)); break;
        case 1: bytes[at] = "0123456789{}[],:\"-e. "[below(21)]; break;
        case 2: bytes.erase(at, 1 + below(8)); break;
        case 3: bytes.insert(at, bytes.substr(below(bytes.size()), below(20))); break;
        case 4: bytes.resize(at); break;
      }
    }
    const auto path = scratch.file("fuzz", bytes);
    try {
      const SafetensorsFile file = SafetensorsFile::open(path);
      ++opened;
      for (const StoredTensor& tensor : file.tensors()) {
        ASSERT_LE(tensor.bytes(), static_cast<std::int64_t>(bytes.size()));
        std::vector<std::byte> data(static_cast<std::size_t>(tensor.bytes()));
        file.read(tensor, 0, data);
      }
    } catch (const Error& error) {
      ASSERT_NE(error.status(), Status::internal) << error.what();
    }
  }
  EXPECT_GT(opened, 30);  // the mutations are not all hopeless
  EXPECT_LT(opened, 2000);
}

}  // namespace
}  // namespace cermet

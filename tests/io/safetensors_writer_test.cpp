#include <sys/resource.h>

#include "io/safetensors.hpp"
#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::expect_error;
using test::ScratchFolder;

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const ScratchFolder scratch;
  const std::vector<TensorSpec> specs{
      {"w \"quoted\" \xc3\xa9", DType::f32, {2, 2}}, {"empty", DType::bf16, {0, 5}}, {"scalar", DType::i8, {}}};
  const std::vector<std::pair<std::string, std::string>> metadata{{"format", "pt"}, {"line", "a\nb"}};
  const float values[4] = {1, 2, 3, 4};
  {
    SafetensorsWriter writer(scratch / "out.safetensors", specs, metadata);
    writer.write(0, 8, std::as_bytes(std::span(values).subspan(2)));  // parts in any order
    writer.write(2, 0, std::as_bytes(std::span("\x07", 1)));
    writer.write(0, 0, std::as_bytes(std::span(values).first(2)));
    EXPECT_FALSE(std::filesystem::exists(scratch / "out.safetensors"));
    writer.commit();
  }
  EXPECT_EQ(scratch.entries(), 1);
  const SafetensorsFile file = SafetensorsFile::open(scratch / "out.safetensors");
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(std::vector(file.metadata().begin(), file.metadata().end()), metadata);
  float read[4];
  file.read(*file.find(specs[0].name), 0, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(std::vector<float>(read, read + 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(file.find("empty")->shape, (std::vector<std::int64_t>{0, 5}));
  EXPECT_EQ(content_of(file.path()).size() % 8, (16 + 1) % 8);  // the data section begins at a multiple of 8
}

TEST(SafetensorsWriter, LeavesNothingWhenAbandoned) {
  const ScratchFolder scratch;
  const std::vector<TensorSpec> specs{{"x", DType::f32, {1000}}};
  { SafetensorsWriter writer(scratch / "out", specs); }
  EXPECT_EQ(scratch.entries(), 0);
  {
    SafetensorsWriter writer(scratch / "out", specs);
    expect_error(Status::internal, {"written_ == data_bytes()"}, [&] { writer.commit(); });  // not every byte is there
  }
  EXPECT_EQ(scratch.entries(), 0);
}

TEST(SafetensorsWriter, RefusesBadSpecifications) {
  const ScratchFolder scratch;
  const auto write = [&](std::vector<TensorSpec> specs) {
    return [&scratch, specs] { SafetensorsWriter(scratch / "out", specs); };
  };
  expect_error(Status::invalid_argument, {"found \"x\" twice"}, write({{"x", DType::u8, {1}}, {"x", DType::u8, {1}}}));
  expect_error(Status::invalid_argument, {"found \"__metadata__\""}, write({{"__metadata__", DType::u8, {1}}}));
  expect_error(Status::invalid_argument, {"expected UTF-8"}, write({{"\xff", DType::u8, {1}}}));
  expect_error(Status::invalid_argument, {"expected a size from 0"}, write({{"x", DType::u8, {-1}}}));
  expect_error(Status::invalid_argument, {"expected a size from 0"}, write({{"x", DType::f64, {1ll << 62}}}));
  EXPECT_EQ(scratch.entries(), 0);
}

TEST(SafetensorsWriter, AnAbsentFolderIsAnError) {
  const ScratchFolder scratch;
  expect_error(Status::io, {"absent/out", "cannot be created"}, [&] { SafetensorsWriter(scratch / "absent/out", {}); });
}

/// Files of this process stay below a size while one lives: what a full disk does, without filling one.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(SafetensorsWriter, RunningOutOfSpaceIsAnErrorThatLeavesNothing) {
  const ScratchFolder scratch;
  const std::vector<TensorSpec> specs{{"x", DType::u8, {1 << 20}}};
  const FileSizeLimit limit(1 << 16);
  expect_error(Status::io, {"out", "cannot get 1048", "File too large"},
               [&] { SafetensorsWriter(scratch / "out", specs); });
  EXPECT_EQ(scratch.entries(), 0);
}

TEST(PosixFile, AFailedWriteIsAnErrorAndNotASignal) {
  const ScratchFolder scratch;
  PosixFile file = PosixFile::create(scratch / "out");
  const std::vector<std::byte> block(1 << 17);
  const FileSizeLimit limit(1 << 16);
  expect_error(Status::io, {"out: cannot be written: File too large"}, [&] { file.write(0, block); });
  expect_error(Status::io, {"text: cannot be written", "File too large"},
               [&] { write_file_atomically(scratch / "text", std::string(1 << 17, 'x')); });
  EXPECT_EQ(scratch.entries(), 1);
}

}  // namespace
}  // namespace cermet

// A file as protobuf reads it.
#pragma once

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "io/posix_file.hpp"

namespace cermet::onnx {

/// Skips without reading.
class FileStream : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileStream(const PosixFile& file) : file_(file) {}
  int Read(void* buffer, int size) override {
    const std::size_t found = file_.read(at_, {static_cast<std::byte*>(buffer), static_cast<std::size_t>(size)});
    at_ += static_cast<std::int64_t>(found);
    return static_cast<int>(found);
  }
  int Skip(int count) override {
    at_ += count;
    return count;
  }

 private:
  const PosixFile& file_;
  std::int64_t at_ = 0;
};

}  // namespace cermet::onnx

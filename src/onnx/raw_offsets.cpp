// Only the headers of messages are read: ModelProto.graph (7), GraphProto.initializer (5), TensorProto.raw_data (9).
#include "onnx/raw_offsets.hpp"

#include <google/protobuf/io/coded_stream.h>

#include "onnx/file_stream.hpp"

namespace cermet::onnx {
namespace {

using google::protobuf::io::CodedInputStream;

bool skip(CodedInputStream& input, std::uint32_t tag) {
  std::uint64_t number = 0;
  switch (tag & 7u) {
    case 0: return input.ReadVarint64(&number);
    case 1: return input.Skip(8);
    case 2: return input.ReadVarint64(&number) && number < (1u << 31) && input.Skip(static_cast<int>(number));
    case 5: return input.Skip(4);
    default: return false;
  }
}

/// Calls `field` for every field of that number and of a length; skips the others. False where the bytes are no message.
template <class F>
bool each_field(CodedInputStream& input, std::uint32_t number, F&& field) {
  while (const std::uint32_t tag = input.ReadTag()) {
    if (tag != (number << 3 | 2u)) {
      if (!skip(input, tag)) return false;
      continue;
    }
    std::uint64_t length = 0;
    if (!input.ReadVarint64(&length) || length >= (1u << 31)) return false;
    const auto limit = input.PushLimit(static_cast<int>(length));
    if (!field(static_cast<std::int64_t>(length))) return false;
    input.PopLimit(limit);
  }
  return true;
}

}  // namespace

std::vector<RawData> find_raw_data(const PosixFile& file) {
  FileStream stream(file);
  google::protobuf::io::CopyingInputStreamAdaptor adaptor(&stream, 1 << 16);
  CodedInputStream input(&adaptor);
  std::vector<RawData> found;
  const bool whole = each_field(input, 7, [&](std::int64_t) {
    return each_field(input, 5, [&](std::int64_t) {
      RawData& data = found.emplace_back();
      return each_field(input, 9, [&](std::int64_t bytes) {
        data = {input.CurrentPosition(), bytes};
        return input.Skip(static_cast<int>(bytes));
      });
    });
  });
  if (!whole) found.clear();
  return found;
}

}  // namespace cermet::onnx

// The headers of messages are read as far as ModelProto.graph (7), GraphProto.initializer (5), TensorProto.raw_data
// (9); other fields are copied.
#include "onnx/raw_offsets.hpp"

#include <google/protobuf/io/coded_stream.h>

#include "onnx/file_stream.hpp"

namespace cermet::onnx {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

void put(std::uint64_t number, std::string& to) {
  std::uint8_t bytes[10];
  to.append(reinterpret_cast<const char*>(bytes),
            static_cast<std::size_t>(CodedOutputStream::WriteVarint64ToArray(number, bytes) - bytes));
}

void put_message(std::uint32_t tag, const std::string& message, std::string& to) {
  put(tag, to);
  put(message.size(), to);
  to += message;
}

class ThinReader {
 public:
  ThinReader(CodedInputStream& input, std::int64_t file_bytes, ThinModel& made)
      : input_(input), file_bytes_(file_bytes), made_(made) {}

  bool model() {
    return each_field(made_.bytes, 7, [&](std::uint32_t tag, std::int64_t) {
      std::string graph;
      const bool whole = each_field(graph, 5, [&](std::uint32_t initializer, std::int64_t) {
        std::string tensor;
        RawData& raw = made_.raw.emplace_back();
        if (!each_field(tensor, 9,
                        [&](std::uint32_t data, std::int64_t bytes) { return raw_data(data, bytes, raw, tensor); }))
          return false;
        put_message(initializer, tensor, graph);
        return true;
      });
      put_message(tag, graph, made_.bytes);
      return whole;
    });
  }

 private:
  bool raw_data(std::uint32_t tag, std::int64_t bytes, RawData& raw, std::string& tensor) {
    raw = {};
    if (bytes < least_left_in_file) {
      put(tag, tensor);
      put(static_cast<std::uint64_t>(bytes), tensor);
      return append(bytes, tensor);
    }
    raw = {input_.CurrentPosition(), bytes};
    return input_.Skip(static_cast<int>(bytes));
  }

  bool append(std::int64_t bytes, std::string& to) {
    std::string field;
    if (!input_.ReadString(&field, static_cast<int>(bytes))) return false;
    to += field;
    return true;
  }

  /// At most what the file has left: skipping does not notice its end.
  bool length(std::int64_t& bytes) {
    std::uint64_t number = 0;
    if (!input_.ReadVarint64(&number) || number > static_cast<std::uint64_t>(file_bytes_ - input_.CurrentPosition()))
      return false;
    bytes = static_cast<std::int64_t>(number);
    return true;
  }

  bool copy(std::uint32_t tag, std::string& to) {
    std::uint64_t number = 0;
    std::int64_t bytes = 0;
    put(tag, to);
    switch (tag & 7u) {
      case 0:
        if (!input_.ReadVarint64(&number)) return false;
        put(number, to);
        return true;
      case 1: return append(8, to);
      case 2:
        if (!length(bytes)) return false;
        put(static_cast<std::uint64_t>(bytes), to);
        return append(bytes, to);
      case 5: return append(4, to);
      default: return false;
    }
  }

  /// Calls field(tag, bytes) for every field of that number and of a length; copies the others. False where the bytes
  /// are no message.
  template <class F>
  bool each_field(std::string& to, std::uint32_t number, F&& field) {
    while (const std::uint32_t tag = input_.ReadTag()) {
      if (tag != (number << 3 | 2u)) {
        if (!copy(tag, to)) return false;
        continue;
      }
      std::int64_t bytes = 0;
      if (!length(bytes)) return false;
      const auto limit = input_.PushLimit(static_cast<int>(bytes));
      if (!field(tag, bytes) || input_.BytesUntilLimit() != 0) return false;
      input_.PopLimit(limit);
    }
    return input_.ConsumedEntireMessage();
  }

  CodedInputStream& input_;
  std::int64_t file_bytes_;
  ThinModel& made_;
};

}  // namespace

std::optional<ThinModel> read_thin_model(const PosixFile& file) {
  FileStream stream(file);
  google::protobuf::io::CopyingInputStreamAdaptor adaptor(&stream, 1 << 16);
  CodedInputStream input(&adaptor);
  ThinModel made;
  if (!ThinReader(input, file.stamp().bytes, made).model()) return std::nullopt;
  return made;
}

}  // namespace cermet::onnx

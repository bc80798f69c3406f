#include "onnx/proto_tensor.hpp"

#include <onnx/onnx_pb.h>

#include <charconv>
#include <cstring>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "io/posix_file.hpp"
#include "onnx/packed_integers.hpp"

namespace cermet::onnx {
namespace {

struct TypeName {
  std::int64_t code;
  const char* name;
  std::optional<DType> dtype;
};

/// TensorProto.DataType, those included that came after the message's own version.
const TypeName types[]{{1, "float", DType::f32},
                       {2, "uint8", DType::u8},
                       {3, "int8", DType::i8},
                       {4, "uint16", DType::u16},
                       {5, "int16", DType::i16},
                       {6, "int32", DType::i32},
                       {7, "int64", DType::i64},
                       {8, "string", {}},
                       {9, "bool", DType::boolean},
                       {10, "float16", DType::f16},
                       {11, "double", DType::f64},
                       {12, "uint32", DType::u32},
                       {13, "uint64", DType::u64},
                       {14, "complex64", {}},
                       {15, "complex128", {}},
                       {16, "bfloat16", DType::bf16},
                       {17, "float8e4m3fn", DType::f8_e4m3},
                       {18, "float8e4m3fnuz", DType::f8_e4m3fnuz},
                       {19, "float8e5m2", DType::f8_e5m2},
                       {20, "float8e5m2fnuz", DType::f8_e5m2fnuz},
                       {21, "uint4", DType::u8},  // packed; what holds them, see packed_integers.hpp
                       {22, "int4", DType::i8},
                       {23, "float4e2m1", DType::f8_e4m3},
                       {24, "float8e8m0", DType::f8_e8m0},
                       {25, "uint2", DType::u8},
                       {26, "int2", DType::i8}};

template <class To, class List>
std::string packed(const List& list) {
  std::string bytes(static_cast<std::size_t>(list.size()) * sizeof(To), '\0');
  std::size_t at = 0;
  for (const auto element : list) {
    const auto value = static_cast<To>(element);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    at += sizeof value;
  }
  return bytes;
}

/// Elements in the list that belongs to their type, as bytes.
std::string bytes_of_list(const ::onnx::TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::f32: return packed<float>(proto.float_data());
    case DType::f64: return packed<double>(proto.double_data());
    case DType::i64: return packed<std::int64_t>(proto.int64_data());
    case DType::u64: return packed<std::uint64_t>(proto.uint64_data());
    case DType::u32: return packed<std::uint32_t>(proto.uint64_data());
    case DType::i32: return packed<std::int32_t>(proto.int32_data());
    default:
      return size_of(dtype) == 2 ? packed<std::uint16_t>(proto.int32_data()) : packed<std::uint8_t>(proto.int32_data());
  }
}

std::int64_t number_of(const std::string& text, const std::string& what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail(Status::invalid_file, "{}: expected a number of bytes, found '{}'", what, text);
  return value;
}

std::string read_all(const PosixFile& file, std::int64_t offset, std::int64_t bytes, const std::string& what) {
  std::string held(static_cast<std::size_t>(bytes), '\0');
  const std::size_t found = file.read(offset, std::as_writable_bytes(std::span(held)));
  if (found != held.size())
    fail(Status::invalid_file, "{}: {}: expected {} bytes at {}, found {}", what, file.path().string(), bytes, offset,
         found);
  return held;
}

Tensor packed_tensor(const std::string& name, TensorType type, const std::string& packed, std::int64_t code) {
  const std::int64_t elements = type.elements().constant();
  Tensor tensor(name, std::move(type), unpacked(packed, elements, code));
  tensor.set_bits(packed_bits(code));
  return tensor;
}

}  // namespace

DType dtype_of(std::int64_t code, const std::string& what) {
  for (const TypeName& type : types) {
    if (type.code != code) continue;
    if (type.dtype) return *type.dtype;
    fail(Status::unsupported, "{}: element type {} is not supported", what, type.name);
  }
  fail(Status::invalid_file, "{}: expected an element type, found number {}", what, code);
}

std::shared_ptr<const PosixFile> ExternalFiles::open(const std::string& location, const std::string& tensor) {
  auto& file = files_[location];
  if (file) return file;
  const std::filesystem::path path(location);
  bool inside = !location.empty() && path.is_relative() && location.find('\0') == std::string::npos;
  for (const auto& part : path) inside = inside && part != "..";
  if (!inside)
    fail(Status::invalid_file, "tensor '{}': expected data in a file below the model's folder, found location '{}'",
         tensor, location);
  std::filesystem::path folder = model_.parent_path();
  if (folder.empty()) folder = ".";
  // A link may not lead out of the folder either.
  std::error_code error;
  const auto root = std::filesystem::weakly_canonical(folder, error),
             target = std::filesystem::weakly_canonical(folder / path, error);
  if (error)
    fail(Status::io, "tensor '{}': {}: cannot be opened: {}", tensor, (folder / path).string(), error.message());
  if (std::mismatch(root.begin(), root.end(), target.begin(), target.end()).first != root.end())
    fail(Status::invalid_file, "tensor '{}': expected data in a file below the model's folder, found a link to {}",
         tensor, target.string());
  file = std::make_shared<const PosixFile>(PosixFile::open_for_reading(target));
  return file;
}

Tensor take_tensor(::onnx::TensorProto& proto, ExternalFiles& files, const ElementsInFile& left) {
  const std::string name = proto.name(), what = "tensor '" + name + "'";
  const DType dtype = dtype_of(proto.data_type(), what);
  if (proto.has_segment()) fail(Status::unsupported, "{}: tensors in segments are not supported", what);
  if (proto.dims_size() > Shape::max_rank)
    fail(Status::unsupported, "{}: expected at most {} dimensions, found {}", what, Shape::max_rank, proto.dims_size());
  Shape shape;
  for (const std::int64_t d : proto.dims()) {
    if (d < 0) fail(Status::invalid_file, "{}: expected non-negative dimensions, found {}", what, d);
    shape.push_back(d);
  }
  const int bits = packed_bits(proto.data_type());
  const std::int64_t whole = dense_bytes(dtype, shape),
                     bytes = bits ? packed_bytes(whole, bits) : whole;  // in the file
  TensorType type{dtype, to_dims(shape)};
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    std::map<std::string, std::string> entries;
    for (const auto& entry : proto.external_data()) entries[entry.key()] = entry.value();
    const auto file = files.open(entries["location"], name);
    const std::int64_t offset = entries.contains("offset") ? number_of(entries["offset"], what + ": offset") : 0,
                       stored = file->stamp().bytes;
    const std::int64_t length = entries.contains("length") ? number_of(entries["length"], what + ": length") : bytes;
    if (length != bytes)
      fail(Status::invalid_file, "{}: expected {} bytes for {}, found length {}", what, bytes, type.to_string(),
           length);
    if (offset > stored || bytes > stored - offset)
      fail(Status::invalid_file, "{}: expected {} bytes at {} of {}, found a file of {}", what, bytes, offset,
           file->path().string(), stored);
    if (bits) return packed_tensor(name, std::move(type), read_all(*file, offset, bytes, what), proto.data_type());
    return {name, std::move(type), file, offset};
  }
  if (left.file) {
    if (left.bytes != bytes)
      fail(Status::invalid_file, "{}: expected {} bytes for {}, found {}", what, bytes, type.to_string(), left.bytes);
    if (bits)
      return packed_tensor(name, std::move(type), read_all(*left.file, left.offset, bytes, what), proto.data_type());
    return {name, std::move(type), left.file, left.offset};
  }
  std::string held = proto.has_raw_data() ? std::move(*proto.mutable_raw_data()) : bytes_of_list(proto, dtype);
  if (static_cast<std::int64_t>(held.size()) != bytes)
    fail(Status::invalid_file, "{}: expected {} bytes for {}, found {}", what, bytes, type.to_string(), held.size());
  if (bits) return packed_tensor(name, std::move(type), held, proto.data_type());
  return {name, std::move(type), std::move(held)};
}

}  // namespace cermet::onnx

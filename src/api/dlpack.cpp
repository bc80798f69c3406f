#include "api/dlpack.hpp"

#include <vector>

#include "api/overlap.hpp"
#include "api/plain_tensor.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"

namespace cermet::api {
namespace {

// Type codes that DLPack gained after 0.6.
constexpr std::uint8_t dl_bool = 6, dl_f8_e4m3 = 10, dl_f8_e4m3fnuz = 11, dl_f8_e5m2 = 12, dl_f8_e5m2fnuz = 13,
                       dl_f8_e8m0 = 14;

std::uint8_t code_of(DType dtype) {
  if (dtype == DType::bf16) return kDLBfloat;
  if (dtype == DType::boolean || (is_floating(dtype) && size_of(dtype) == 1)) return kDLUInt;
  if (is_floating(dtype)) return kDLFloat;
  return name_of(dtype).front() == 'u' ? kDLUInt : kDLInt;
}

std::uint8_t newer_code_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return dl_bool;
    case DType::f8_e4m3: return dl_f8_e4m3;
    case DType::f8_e5m2: return dl_f8_e5m2;
    case DType::f8_e4m3fnuz: return dl_f8_e4m3fnuz;
    case DType::f8_e5m2fnuz: return dl_f8_e5m2fnuz;
    case DType::f8_e8m0: return dl_f8_e8m0;
    default: return code_of(dtype);
  }
}

bool is_dtype(DLDataType found, DType dtype) {
  return same(found, dl_type_of(dtype)) || same(found, newer_dl_type_of(dtype));
}

[[noreturn]] void refuse(const Expectation& e, std::string_view expected, std::string_view found) {
  fail(Status::invalid_argument, "{}: {} {} ({}): expected {}, found {}", e.op, e.role, e.index, e.operand, expected,
       found);
}

/// "bf16[M, 64] with M = 7".
std::string expected_type(const Expectation& e) {
  std::string text = e.type->to_string();
  std::vector<Symbol> said;
  for (const Dim& d : e.type->dims) {
    for (const Symbol& symbol : d.symbols()) {
      if (!e.symbols || std::find(said.begin(), said.end(), symbol) != said.end()) continue;
      text += fmt::format("{} {} = {}", said.empty() ? " with" : ",", symbol.name(), (*e.symbols)[symbol]);
      said.push_back(symbol);
    }
  }
  return text;
}

std::int64_t dim_at(const Expectation& e, int axis) {
  const Dim& d = e.type->dims[static_cast<std::size_t>(axis)];
  return e.symbols ? d.value(*e.symbols) : d.constant();
}

Shape shape_of(const DLTensor& tensor, const Expectation& e) {
  Shape shape;
  if (tensor.ndim != e.type->rank()) refuse(e, e.type->to_string(), fmt::format("{} dimensions", tensor.ndim));
  if (tensor.ndim > 0 && !tensor.shape) refuse(e, "a shape", "NULL");
  for (int axis = 0; axis < tensor.ndim; ++axis) shape.push_back(tensor.shape[axis]);
  for (int axis = 0; axis < tensor.ndim; ++axis)
    if (shape[axis] != dim_at(e, axis)) refuse(e, expected_type(e), shape.to_string());
  return shape;
}

bool same_strides(const Shape& shape, const Shape& a, const Shape& b) {
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1 && a[axis] != b[axis]) return false;
  return true;
}

}  // namespace

DLDataType dl_type_of(DType dtype) { return {code_of(dtype), static_cast<std::uint8_t>(8 * size_of(dtype)), 1}; }
DLDataType newer_dl_type_of(DType dtype) {
  return {newer_code_of(dtype), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

std::string text_of(DLDataType type) {
  static constexpr std::string_view kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex"};
  const std::optional<DType> own = dtype_of(type);
  if (own && *own != DType::u8) return std::string(name_of(*own));
  const std::string kind =
      type.code < std::size(kinds) ? std::string(kinds[type.code]) : fmt::format("code {} with bits ", type.code);
  const std::string text =
      fmt::format("DLPack {}{}{}", kind, type.bits, type.lanes == 1 ? "" : fmt::format("x{}", type.lanes));
  return own ? "u8 (" + text + ")" : text;  // bytes may also be meant as bool or fp8
}

std::string text_of(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU: return "the host (kDLCPU)";
    case kDLCUDA: return fmt::format("cuda:{} (kDLCUDA)", device.device_id);
    case kDLCUDAHost: return "the host, pinned (kDLCUDAHost)";
    case kDLCUDAManaged: return "managed by CUDA (kDLCUDAManaged)";
    default: return fmt::format("device type {} of DLPack", static_cast<int>(device.device_type));
  }
}

std::optional<DType> dtype_of(DLDataType type) {
  if (type.lanes == 1 && type.bits == 8 && type.code == kDLUInt) return DType::u8;
  for (int i = 0; i < dtype_count; ++i)
    if (is_dtype(type, static_cast<DType>(i))) return static_cast<DType>(i);
  return std::nullopt;
}

std::string_view stride_fault(const Shape& shape, const Shape& strides, int dense_dims, bool is_output) {
  if (shape.elements() == 0) return "";
  std::int64_t dense = 1,
               covered = 1;  // elements that the axes to the right take: packed, and from the first to the last
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1) {
      if (strides[axis] < 0) return "no negative stride";
      if (shape.rank() - axis <= dense_dims && strides[axis] != dense) return "contiguous trailing dimensions";
      const auto extent = checked_mul(strides[axis], shape[axis]);
      const auto sum = extent ? checked_add(*extent, covered) : std::nullopt;
      if (!sum || !checked_mul(*sum, 8)) return "strides that stay below 2^63 bytes";
      covered = *sum;
    }
    dense *= shape[axis];
  }
  return is_output && overlaps_itself(shape, strides) ? "strides that keep elements apart" : "";
}

ByteRange range_of(const TensorView& view) {
  const auto* begin = view.as<const std::byte>();
  if (!view.present || view.elements() == 0) return {begin, begin};
  std::int64_t last = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
  return {begin, begin + (last + 1) * byte_size(view.dtype)};
}

bool coincide(const TensorView& a, const TensorView& b) {
  return a.data == b.data && a.shape == b.shape && size_of(a.dtype) == size_of(b.dtype) &&
         same_strides(a.shape, a.strides, b.strides);
}

TensorView checked_view(const DLTensor& tensor, const Expectation& e) {
  const DType dtype = e.type->dtype;
  const DLDevice device = tensor.device;
  const bool right_place = device.device_type == e.device.device_type &&
                           (device.device_type == kDLCPU || device.device_id == e.device.device_id);
  if (!right_place && !(e.or_host && device.device_type == kDLCPU))
    refuse(e,
           fmt::format("memory of {}{}", text_of(e.device),
                       e.or_host && e.device.device_type != kDLCPU ? " or the host (kDLCPU)" : ""),
           fmt::format("memory of {}", text_of(device)));
  if (!is_dtype(tensor.dtype, dtype)) refuse(e, name_of(dtype), text_of(tensor.dtype));
  const Shape shape = shape_of(tensor, e);
  Shape strides = dense_strides(shape);
  if (tensor.strides)
    for (int axis = 0; axis < tensor.ndim; ++axis) strides[axis] = tensor.strides[axis];
  const bool is_empty = shape.elements() == 0;
  if (e.strides && !is_empty && !same_strides(shape, strides, *e.strides))
    refuse(e, fmt::format("strides {} as at creation", e.strides->to_string()), strides.to_string());
  if (const std::string_view fault = stride_fault(shape, strides, e.dense_dims, e.is_output); !fault.empty())
    refuse(e, fault, fmt::format("strides {} for {}", strides.to_string(), shape.to_string()));
  if (!tensor.data && !is_empty && e.is_touched)
    refuse(e, fmt::format("memory of {} bytes", dense_bytes(dtype, shape)), "none");
  auto* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address % size_of(dtype) != 0 && !is_empty)
    refuse(e, fmt::format("an address aligned to {} bytes", size_of(dtype)), fmt::format("{:#x}", address));
  return TensorView(data, dtype, shape, strides);
}

}  // namespace cermet::api

// Element types and tensors of the C++ interface, and the exception that it throws. Part of cermet.hpp.
#ifndef CERMET_TENSOR_HPP_
#define CERMET_TENSOR_HPP_

#include <cermet/cermet.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cermet {

/// What every function below throws: the library's one-line message and its status.
class error : public std::runtime_error {
 public:
  error(cermet_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  cermet_status status() const { return status_; }

 private:
  cermet_status status_;
};

namespace face {

inline void check(cermet_status status) {
  if (status != CERMET_OK) throw error(status, cermet_last_error_message());
}

}  // namespace face

/// Element types.
enum class dtype {
  f32,
  bf16,
  f16,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f8_e4m3,
  f8_e5m2,
  boolean,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f8_e8m0
};

namespace face {

struct dtype_row {
  const char* name;
  std::uint8_t code, bits;
};

inline const dtype_row& row_of(dtype type) {
  static constexpr dtype_row rows[] = {
      {"f32", kDLFloat, 32},       {"bf16", kDLBfloat, 16}, {"f16", kDLFloat, 16}, {"f64", kDLFloat, 64},
      {"i8", kDLInt, 8},           {"u8", kDLUInt, 8},      {"i16", kDLInt, 16},   {"u16", kDLUInt, 16},
      {"i32", kDLInt, 32},         {"u32", kDLUInt, 32},    {"i64", kDLInt, 64},   {"u64", kDLUInt, 64},
      {"f8_e4m3", kDLUInt, 8},     {"f8_e5m2", kDLUInt, 8}, {"bool", kDLUInt, 8},  {"f8_e4m3fnuz", kDLUInt, 8},
      {"f8_e5m2fnuz", kDLUInt, 8}, {"f8_e8m0", kDLUInt, 8}};
  return rows[static_cast<std::size_t>(type)];
}

inline dtype dtype_of(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(dtype::f8_e8m0); ++i)
    if (name == row_of(static_cast<dtype>(i)).name) return static_cast<dtype>(i);
  throw error(CERMET_INVALID_ARGUMENT, "element type: expected one that Cermet knows, found '" + name + "'");
}

/// "cuda:1", as messages have it.
inline std::string text_of(DLDevice device) {
  if (device.device_type == kDLCPU) return "the host";
  return (device.device_type == kDLCUDA ? "cuda:"
                                        : "DLPack device type " + std::to_string(device.device_type) + ", index ") +
         std::to_string(device.device_id);
}

}  // namespace face

/// A tensor: host memory that it owns and shares between copies, or a view of the caller's memory on any device.
/// Strides count elements; the last dimension is contiguous for every operator. A tensor made by tensor() stands for an
/// optional operand that is not given.
class tensor {
 public:
  tensor() = default;
  /// Zeroed memory, 64-byte aligned.
  explicit tensor(std::vector<std::int64_t> shape, dtype type = dtype::f32) : tensor(nullptr, std::move(shape), type) {
    const std::size_t bytes = static_cast<std::size_t>(size()) * element_bytes();
    owner_ =
        std::shared_ptr<void>(::operator new(bytes + 1, alignment), [](void* p) { ::operator delete(p, alignment); });
    data_ = owner_.get();
    std::memset(data_, 0, bytes);
  }
  /// Dense float32 values in row-major order.
  tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) : tensor(std::move(shape), dtype::f32) {
    if (static_cast<std::int64_t>(values.size()) != size())
      throw error(CERMET_INVALID_ARGUMENT,
                  "tensor: expected " + std::to_string(size()) + " values, found " + std::to_string(values.size()));
    std::memcpy(data_, values.data(), values.size() * sizeof(float));
  }
  /// A view of memory that outlives it; dense where no strides are given. `device`: where the memory is, {kDLCUDA, 0}
  /// for the first GPU.
  static tensor view(void* data, std::vector<std::int64_t> shape, dtype type, std::vector<std::int64_t> strides = {},
                     DLDevice device = {kDLCPU, 0}) {
    tensor t(data, std::move(shape), type);
    t.device_ = device;
    if (!strides.empty()) t.strides_ = std::move(strides);
    if (t.strides_.size() != t.shape_.size())
      throw error(CERMET_INVALID_ARGUMENT, "tensor: expected as many strides as dimensions");
    return t;
  }
  /// A view of a DLPack tensor, on whatever device it is. For fp8 and bool, which DLPack 0.6 carries as bytes, say the
  /// element type.
  static tensor view(const DLTensor& source) { return view(source, dtype_in(source)); }
  static tensor view(const DLTensor& source, dtype type) {
    const std::size_t rank = static_cast<std::size_t>(source.ndim);
    tensor t(static_cast<std::byte*>(source.data) + source.byte_offset, {source.shape, source.shape + rank}, type);
    if (source.strides) t.strides_.assign(source.strides, source.strides + rank);
    t.device_ = source.device;
    return t;
  }
  /// Takes over a managed DLPack tensor: its deleter runs when the last copy goes. With a type for fp8 and bool, as
  /// view() has it.
  static tensor from_dlpack(DLManagedTensor* source) { return taken(source, nullptr); }
  static tensor from_dlpack(DLManagedTensor* source, dtype type) { return taken(source, &type); }
  /// Passes the memory on; the receiver calls the deleter. The memory lives until then, where the tensor owns it.
  DLManagedTensor* to_dlpack() const {
    struct Handed {
      tensor kept;
      DLManagedTensor managed{};
    };
    auto handed = std::make_unique<Handed>();
    handed->kept = *this;
    handed->managed = {handed->kept.dl(), handed.get(),
                       [](DLManagedTensor* m) { delete static_cast<Handed*>(m->manager_ctx); }};
    return &handed.release()->managed;
  }

  explicit operator bool() const { return present_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<std::int64_t>& strides() const { return strides_; }
  dtype type() const { return type_; }
  /// Number of elements.
  std::int64_t size() const {
    return std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::size_t element_bytes() const { return face::row_of(type_).bits / 8u; }
  DLDevice device() const { return device_; }
  bool on_host() const { return device_.device_type == kDLCPU; }
  void* data() const { return data_; }
  /// The memory as elements of a C++ type; throws where its size is another.
  template <class T>
  T* data() const {
    if (sizeof(T) != element_bytes())
      throw error(CERMET_INVALID_ARGUMENT, "tensor: expected elements of " + std::to_string(sizeof(T)) + " bytes");
    return static_cast<T*>(data_);
  }
  /// The tensor as DLPack has it; points into this object.
  DLTensor dl() const {
    const auto& row = face::row_of(type_);
    auto* shape = const_cast<std::int64_t*>(shape_.data());
    auto* strides = const_cast<std::int64_t*>(strides_.data());
    return {data_, device_, static_cast<int>(shape_.size()), {row.code, row.bits, 1}, shape, strides, 0};
  }

  /// A copy with another element type, rounded to nearest even.
  tensor to(dtype type) const;
  /// The elements in row-major order, as float32; of a tensor in host memory.
  std::vector<float> values() const;

 private:
  static constexpr std::align_val_t alignment{64};

  tensor(void* data, std::vector<std::int64_t> shape, dtype type)
      : data_(data), shape_(std::move(shape)), strides_(shape_.size()), type_(type), present_(true) {
    std::int64_t step = 1;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      if (shape_[axis] < 0)
        throw error(CERMET_INVALID_ARGUMENT,
                    "tensor: expected non-negative dimensions, found " + std::to_string(shape_[axis]));
      strides_[axis] = step;
      if (__builtin_mul_overflow(step, shape_[axis] == 0 ? 1 : shape_[axis], &step) || step > (std::int64_t{1} << 58))
        throw error(CERMET_INVALID_ARGUMENT, "tensor: expected fewer than 2^58 elements, found more");
    }
  }

  static tensor taken(DLManagedTensor* source, const dtype* type) {
    std::shared_ptr<void> owner(source, [](void* p) {
      auto* managed = static_cast<DLManagedTensor*>(p);
      if (managed->deleter) managed->deleter(managed);
    });
    tensor t = view(source->dl_tensor, type ? *type : dtype_in(source->dl_tensor));
    t.owner_ = std::move(owner);
    return t;
  }

  static dtype dtype_in(const DLTensor& source) {
    for (int i = 0; i <= static_cast<int>(dtype::u64); ++i) {
      const auto& row = face::row_of(static_cast<dtype>(i));
      if (source.dtype.code == row.code && source.dtype.bits == row.bits && source.dtype.lanes == 1)
        return static_cast<dtype>(i);
    }
    throw error(CERMET_INVALID_ARGUMENT, "tensor: expected an element type that Cermet knows, found DLPack code " +
                                             std::to_string(source.dtype.code) + " with " +
                                             std::to_string(source.dtype.bits) + " bits");
  }

  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
  std::vector<std::int64_t> shape_, strides_;
  dtype type_ = dtype::f32;
  DLDevice device_{kDLCPU, 0};
  bool present_ = false;
};

}  // namespace cermet

#endif  // CERMET_TENSOR_HPP_

// Cermet's C++ interface: header-only, C++17, over the C interface of cermet.h. Errors are exceptions of type
// cermet::error. It is one long file because an integrator copies or includes it whole, with its part get_op.hpp and
// the C headers below; onnx.hpp has ONNX models, and ops.hpp a function for every operator.
//
//   cermet::tensor a({2, 3}, {1, 2, 3, 4, 5, 6}), b({3, 2}, {1, 0, 0, 1, 1, 1});
//   auto f = cermet::get_op("matmul", {a, b});  // validates, infers, chooses a kernel
//   auto y = f({a, b});                         // runs it
#ifndef CERMET_CERMET_HPP_
#define CERMET_CERMET_HPP_

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

class attribute;
class callable;
class descriptor;
struct kernel_choice;

/// A device and its threads. Operators and models keep what they need of it. Copies are the same handle.
class handle {
 public:
  /// `device`: "cpu", "cuda", "cuda:1", "null" or "null:sm_90". `threads` 0: one for each core.
  explicit handle(const char* device = "cpu", std::int32_t threads = 0) {
    cermet_handle* made = nullptr;
    face::check(cermet_create(device, threads, &made));
    handle_.reset(made, cermet_destroy);
  }
  /// An operator by name, for tensors like the samples and of other shapes: get_op("matmul", a, b).
  template <class... Samples>
  callable get_op(const std::string& name, const Samples&... samples) const;
  /// The same with attributes and, by name, a kernel: get_op("linear", {x, weight(w)}, {{"out_dtype", "bf16"}},
  /// {"gemm.linear"}).
  callable get_op(const std::string& name, const std::vector<descriptor>& samples,
                  const std::vector<attribute>& attributes = {}) const;
  callable get_op(const std::string& name, const std::vector<descriptor>& samples,
                  const std::vector<attribute>& attributes, const kernel_choice& choice) const;
  cermet_handle* get() const { return handle_.get(); }
  std::int32_t threads() const { return cermet_threads(get()); }
  std::string device() const { return cermet_device(get()); }
  /// False on the null device.
  bool computes() const { return cermet_computes(get()) != 0; }
  /// What all copies share: to remember a handle without keeping it.
  const std::shared_ptr<cermet_handle>& shared() const { return handle_; }

 private:
  std::shared_ptr<cermet_handle> handle_;
};

/// The CPU with a thread for each core; made at the first use.
inline handle& default_handle() {
  static handle shared;
  return shared;
}

/// Name and value of an attribute: {"eps", 1e-5}, {"causal", true}, {"out_dtype", "bf16"}, {"shape", {2, 3}},
/// {"scales", std::vector<double>{1, 2}}.
class attribute {
 public:
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  attribute(std::string name, T value) : attribute(std::move(name), CERMET_INT) {
    integer_ = static_cast<std::int64_t>(value);
  }
  attribute(std::string name, bool value) : attribute(std::move(name), CERMET_BOOL) { integer_ = value; }
  attribute(std::string name, double value) : attribute(std::move(name), CERMET_FLOAT) { number_ = value; }
  attribute(std::string name, const char* value) : attribute(std::move(name), CERMET_STRING) { string_ = value; }
  attribute(std::string name, std::string value) : attribute(std::move(name), CERMET_STRING) {
    string_ = std::move(value);
  }
  attribute(std::string name, std::vector<std::int64_t> value) : attribute(std::move(name), CERMET_INTS) {
    integers_ = std::move(value);
  }
  attribute(std::string name, std::initializer_list<std::int64_t> value) : attribute(std::move(name), CERMET_INTS) {
    integers_ = value;
  }
  attribute(std::string name, std::vector<double> value) : attribute(std::move(name), CERMET_FLOATS) {
    numbers_ = std::move(value);
  }
  attribute(std::string name, std::vector<std::string> value) : attribute(std::move(name), CERMET_STRINGS) {
    strings_ = std::move(value);
  }
  /// As the C interface has it; points into this object.
  cermet_attribute get() const {
    texts_.clear();
    for (const std::string& text : strings_) texts_.push_back(text.c_str());
    const std::size_t count = kind_ == CERMET_FLOATS    ? numbers_.size()
                              : kind_ == CERMET_STRINGS ? texts_.size()
                                                        : integers_.size();
    return {name_.c_str(),    kind_, integer_,        number_,      string_.c_str(),
            integers_.data(), count, numbers_.data(), texts_.data()};
  }

 private:
  attribute(std::string name, cermet_attribute_kind kind) : name_(std::move(name)), kind_(kind) {}
  std::string name_;
  cermet_attribute_kind kind_;
  std::int64_t integer_ = 0;
  double number_ = 0;
  std::string string_;
  std::vector<std::int64_t> integers_;
  std::vector<double> numbers_;
  std::vector<std::string> strings_;
  mutable std::vector<const char*> texts_;  // of strings_
};

/// A CUstream or cudaStream_t of the caller; stream() is the handle's own, and the CPU.
class stream {
 public:
  stream() = default;
  explicit stream(void* native) : native_(native) {}
  void* native() const { return native_; }

 private:
  void* native_ = nullptr;
};

/// A dimension: a number, or up_to('M', 4096), which varies from run to run.
class dim {
 public:
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  dim(T value) : value_(static_cast<std::int64_t>(value)) {}  // NOLINT: a number is a dimension
  friend dim up_to(char symbol, std::int64_t maximum);
  std::int64_t value() const { return value_; }
  /// Its range; symbol 0 for a number.
  const cermet_range& range() const { return range_; }

 private:
  std::int64_t value_;
  cermet_range range_{0, 0};
};

/// A dimension of 0 to `maximum`, named by a capital letter: every operand of an operation that has the letter has the
/// same value in a run.
inline dim up_to(char symbol, std::int64_t maximum) {
  dim d(CERMET_DIM(symbol));
  d.range_ = {symbol, maximum};
  return d;
}

/// A weight that several operations share: one copy in memory for each layout that their kernels need.
class shared_weight {
 public:
  /// The tensor's memory must stay until detach(), or until this and all its copies are gone; where the tensor owns it,
  /// it does.
  explicit shared_weight(const tensor& value, const handle& on = default_handle())
      : type_(value.type()), shape_(value.shape()), source_(value) {
    cermet_weight* made = nullptr;
    const DLTensor dl = value.dl();
    face::check(cermet_weight_create(on.get(), &dl, face::row_of(type_).name, &made));
    weight_.reset(made, cermet_weight_destroy);
  }
  /// The tensor is no longer read. Copies of this object each keep it alive.
  void detach() {
    cermet_weight_detach(get());
    source_ = tensor();
  }
  /// Size of the copies.
  std::size_t bytes() const { return cermet_weight_bytes(get()); }
  dtype type() const { return type_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  cermet_weight* get() const { return weight_.get(); }
  friend descriptor weight(const shared_weight& value);

 private:
  dtype type_;
  std::vector<std::int64_t> shape_;
  tensor source_;
  std::shared_ptr<cermet_weight> weight_;
};

/// What an operand will be: any tensor of this type and shape, or a weight, which is given once and kept in the layout
/// that the kernel prefers.
class descriptor {
 public:
  descriptor() = default;  ///< an optional operand that is not given
  descriptor(const tensor& like)
      : type_(like.type()),
        shape_(like.shape()),
        present_(static_cast<bool>(like)) {}  // NOLINT: a tensor describes itself
  descriptor(dtype type, std::initializer_list<dim> shape) : type_(type), present_(true) {
    for (const dim& d : shape) {
      shape_.push_back(d.value());
      if (d.range().symbol) ranges_.push_back(d.range());
    }
  }
  template <class T, std::enable_if_t<std::is_same_v<T, std::int64_t>, int> = 0>
  descriptor(dtype type, std::vector<T> shape) : type_(type), shape_(std::move(shape)), present_(true) {}
  friend descriptor weight(const tensor& value);
  friend descriptor weight(const shared_weight& value);

  /// As the C interface has it; points into this object.
  cermet_descriptor get() const {
    return {present_ ? face::row_of(type_).name : nullptr, static_cast<std::int32_t>(shape_.size()), shape_.data(),
            nullptr, weight_ || shared_ ? 1 : 0};
  }
  /// The weight's value; empty for other operands.
  const tensor& value() const { return weight_; }
  /// The weight that the operation shares; null for other operands.
  cermet_weight* shared() const { return shared_.get(); }
  const std::vector<cermet_range>& ranges() const { return ranges_; }

 private:
  dtype type_ = dtype::f32;
  std::vector<std::int64_t> shape_;
  std::vector<cermet_range> ranges_;
  tensor weight_;
  std::shared_ptr<cermet_weight> shared_;
  bool present_ = false;
};

/// A constant operand: get_op("linear", {x, weight(w)}) packs w once, and runs take x alone.
inline descriptor weight(const tensor& value) {
  descriptor d(value);
  d.weight_ = value;
  return d;
}
/// The same with a weight that other operations use too.
inline descriptor weight(const shared_weight& value) {
  descriptor d(value.type(), value.shape());
  d.shared_ = value.weight_;
  return d;
}

/// An operator for operands of given types, bound to its kernels.
class operation {
 public:
  operation(const handle& on, const std::string& name, const std::vector<descriptor>& inputs,
            const std::vector<attribute>& attributes = {}) {
    std::vector<cermet_descriptor> c_inputs;
    std::vector<cermet_attribute> c_attributes;
    for (const descriptor& d : inputs) {
      c_inputs.push_back(d.get());
      for (const cermet_range& r : d.ranges()) add_range(r);
    }
    for (const attribute& a : attributes) c_attributes.push_back(a.get());
    cermet_op* made = nullptr;
    face::check(cermet_op_create_ranged(on.get(), name.c_str(), c_inputs.data(), c_inputs.size(), c_attributes.data(),
                                        c_attributes.size(), ranges_.data(), ranges_.size(), &made));
    op_.reset(made);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].value()) set_weight(i, inputs[i].value());
      if (inputs[i].shared()) face::check(cermet_op_set_weight(get(), i, inputs[i].shared()));
    }
  }

  /// Runs and returns the first result, in new host memory: for handles of the CPU.
  tensor operator()(const std::vector<tensor>& inputs) { return all(inputs).front(); }
  /// Runs and returns every result. A result that shares an operand's memory (state updated in place) is that operand.
  std::vector<tensor> all(const std::vector<tensor>& inputs) {
    std::vector<tensor> outputs;
    for (std::size_t i = 0; i < cermet_op_output_count(get()); ++i) {
      const std::int32_t shared = cermet_op_output_alias(get(), i);
      if (shared >= 0 && static_cast<std::size_t>(shared) < inputs.size()) {
        outputs.push_back(inputs[static_cast<std::size_t>(shared)]);
        continue;
      }
      for (const tensor& t : inputs)
        if (!t.on_host())
          throw error(CERMET_INVALID_ARGUMENT,
                      "results: expected memory of the caller, given to run(), for operands on " +
                          face::text_of(t.device()) + ", found a call that makes its own");
      cermet_descriptor d{};
      face::check(cermet_op_output(get(), i, &d));
      outputs.emplace_back(output_shape(i, inputs), face::dtype_of(d.dtype));
    }
    run(inputs, outputs);
    return outputs;
  }
  /// Runs into the caller's memory, on the handle's device. `workspace` as cermet_op_run has it.
  void run(const std::vector<tensor>& inputs, const std::vector<tensor>& outputs, void* workspace = nullptr,
           std::size_t workspace_size = 0) {
    run(inputs, outputs, stream(), workspace, workspace_size);
  }
  /// The same on the caller's stream: the work is enqueued there, and not complete when this returns.
  void run(const std::vector<tensor>& inputs, const std::vector<tensor>& outputs, stream on, void* workspace = nullptr,
           std::size_t workspace_size = 0) {
    const Pointers in(inputs), out(outputs);
    face::check(cermet_op_run(get(), in.list.data(), in.list.size(), out.list.data(), out.list.size(), workspace,
                              workspace_size, on.native()));
  }
  /// The shape of a result for these operands: to allocate memory where dimensions vary.
  std::vector<std::int64_t> output_shape(std::size_t output, const std::vector<tensor>& inputs) const {
    cermet_descriptor d{};
    face::check(cermet_op_output(get(), output, &d));
    std::vector<std::int64_t> shape(static_cast<std::size_t>(d.ndim) + 1);
    const Pointers in(inputs);
    face::check(cermet_op_output_shape(get(), output, in.list.data(), in.list.size(), shape.data()));
    shape.pop_back();  // so that there is an address for rank 0 too
    return shape;
  }
  /// Replaces the value of a weight.
  void set_weight(std::size_t input, const tensor& value) {
    const DLTensor dl = value.dl();
    face::check(cermet_op_set_constant(get(), input, &dl));
  }
  void set_weight(std::size_t input, const shared_weight& value) {
    face::check(cermet_op_set_weight(get(), input, value.get()));
  }
  std::string kernel() const { return cermet_op_kernel(get()); }
  std::size_t workspace_size() const { return cermet_op_workspace_size(get()); }
  cermet_op* get() const { return op_.get(); }

 private:
  struct destroy {
    void operator()(cermet_op* op) const { cermet_op_destroy(op); }
  };
  /// Tensors as the C interface takes them.
  struct Pointers {
    std::vector<DLTensor> tensors;
    std::vector<DLTensor*> list;
    explicit Pointers(const std::vector<tensor>& from) {
      for (const tensor& t : from) tensors.push_back(t.dl());
      for (std::size_t i = 0; i < from.size(); ++i) list.push_back(from[i] ? &tensors[i] : nullptr);
    }
  };
  void add_range(const cermet_range& added) {
    for (const cermet_range& r : ranges_)
      if (r.symbol == added.symbol) {
        if (r.maximum == added.maximum) return;
        throw error(CERMET_INVALID_ARGUMENT, std::string("range ") + r.symbol + ": expected one maximum, found " +
                                                 std::to_string(r.maximum) + " and " + std::to_string(added.maximum));
      }
    ranges_.push_back(added);
  }

  std::vector<cermet_range> ranges_;
  std::unique_ptr<cermet_op, destroy> op_;
};

/// An operator for operands like these, on the default handle.
inline operation get_op(const std::string& name, const std::vector<descriptor>& inputs,
                        const std::vector<attribute>& attributes = {}) {
  return operation(default_handle(), name, inputs, attributes);
}

inline tensor tensor::to(dtype type) const {
  return get_op("cast", {*this}, {{"out_dtype", face::row_of(type).name}})({*this});
}

inline std::vector<float> tensor::values() const {
  if (!on_host())
    throw error(CERMET_INVALID_ARGUMENT,
                "tensor: expected host memory to read values from, found memory of " + face::text_of(device_));
  if (type_ != dtype::f32) return to(dtype::f32).values();
  std::vector<float> list(static_cast<std::size_t>(size()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::int64_t offset = 0, rest = static_cast<std::int64_t>(i);
    for (std::size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis])
      offset += rest % shape_[axis] * strides_[axis];
    list[i] = static_cast<const float*>(data_)[offset];
  }
  return list;
}

/// A checkpoint that generates text. Sequence 0 keeps its context from call to call; reset() clears it.
class model {
 public:
  /// Called with every new token and the text that it completes; returns whether to continue.
  using callback = std::function<bool(std::int32_t id, std::string_view text)>;

  explicit model(const std::string& folder, const cermet_model_options& options = cermet_model_defaults(),
                 const handle& on = default_handle()) {
    cermet_model* made = nullptr;
    face::check(cermet_model_load(on.get(), folder.c_str(), &options, &made));
    model_.reset(made);
  }

  /// Architecture, sizes, types and memory, as JSON.
  std::string info() const { return cermet_model_info(get()); }
  std::vector<std::int32_t> tokenize(std::string_view text, bool add_special = true) const {
    std::size_t count = 0;
    std::vector<std::int32_t> ids(text.size() + 16);
    face::check(cermet_model_tokenize(get(), text.data(), text.size(), add_special, ids.data(), ids.size(), &count));
    if (count > ids.size()) {
      ids.resize(count);
      face::check(cermet_model_tokenize(get(), text.data(), text.size(), add_special, ids.data(), ids.size(), &count));
    }
    ids.resize(count);
    return ids;
  }
  std::string detokenize(const std::vector<std::int32_t>& ids, bool skip_special = false) const {
    std::size_t length = 0;
    face::check(cermet_model_detokenize(get(), ids.data(), ids.size(), skip_special, nullptr, 0, &length));
    std::string text(length, '\0');
    face::check(
        cermet_model_detokenize(get(), ids.data(), ids.size(), skip_special, text.data(), text.size(), &length));
    return text;
  }
  /// Continues sequence 0 with the prompt and then with new tokens, which are returned. Exceptions of the callback
  /// propagate.
  std::vector<std::int32_t> generate(const std::vector<std::int32_t>& prompt,
                                     const cermet_generate_options& options = cermet_generate_defaults(),
                                     const callback& on_token = {}, cermet_generation* result = nullptr) {
    Run run{on_token, {}, nullptr};
    const cermet_status status =
        cermet_model_generate(get(), prompt.data(), prompt.size(), &options, &Run::take, &run, result);
    if (run.thrown) std::rethrow_exception(run.thrown);
    face::check(status);
    return std::move(run.ids);
  }
  /// The text after a prompt, in a fresh context.
  std::string complete(std::string_view prompt, const cermet_generate_options& options = cermet_generate_defaults()) {
    reset();
    std::string text;
    generate(tokenize(prompt), options, [&](std::int32_t, std::string_view piece) { return text += piece, true; });
    return text;
  }
  /// Rows of vocab_size float32 logits, one for each position. Empties sequence 0.
  std::vector<float> logits(const std::vector<std::int32_t>& ids) {
    std::vector<float> rows(ids.size() * vocab_size());
    face::check(cermet_model_logits(get(), ids.data(), ids.size(), rows.data()));
    return rows;
  }
  std::size_t vocab_size() const { return cermet_model_vocab_size(get()); }
  void reset(std::int32_t sequence = 0) { face::check(cermet_model_reset(get(), sequence)); }
  cermet_model* get() const { return model_.get(); }

 private:
  struct destroy {
    void operator()(cermet_model* m) const { cermet_model_destroy(m); }
  };
  struct Run {
    const callback& on_token;
    std::vector<std::int32_t> ids;
    std::exception_ptr thrown;

    static std::int32_t take(void* user, std::int32_t id, const char* text, std::size_t length) {
      Run& run = *static_cast<Run*>(user);
      try {
        if (id >= 0) run.ids.push_back(id);
        return run.on_token && !run.on_token(id, {text, length});
      } catch (...) {
        run.thrown = std::current_exception();
        return 1;
      }
    }
  };
  std::unique_ptr<cermet_model, destroy> model_;
};

/// Many prompts at once on a model whose options have max_sequences above 1. Uses all of its sequences.
class batch {
 public:
  explicit batch(const model& on) {
    cermet_batch* made = nullptr;
    face::check(cermet_batch_create(on.get(), &made));
    batch_.reset(made);
  }

  /// Puts a prompt at the end of the queue; returns its number.
  std::int64_t submit(const std::vector<std::int32_t>& prompt,
                      const cermet_generate_options& options = cermet_generate_defaults()) {
    std::int64_t request = 0;
    face::check(cermet_batch_submit(get(), prompt.data(), prompt.size(), &options, &request));
    return request;
  }
  /// Computes one pass; returns how many requests have not ended.
  std::size_t step() {
    std::size_t left = 0;
    face::check(cermet_batch_step(get(), &left));
    return left;
  }
  struct progress {
    std::vector<std::int32_t> ids;  ///< new ones
    std::string text;               ///< that they complete
    bool done = false;              ///< the request's number is no longer valid
    cermet_generation result{};     ///< once it is done
  };
  progress poll(std::int64_t request) {
    progress made;
    std::size_t count = 0;
    std::int32_t done = 0;
    do {
      std::int32_t ids[64];
      const char* text = nullptr;
      std::size_t length = 0;
      face::check(cermet_batch_poll_text(get(), request, ids, 64, &count, &text, &length, &done, &made.result));
      made.ids.insert(made.ids.end(), ids, ids + count);
      made.text.append(text, length);
    } while (count == 64 && !done);
    made.done = done != 0;
    return made;
  }
  void cancel(std::int64_t request) { face::check(cermet_batch_cancel(get(), request)); }
  cermet_batch* get() const { return batch_.get(); }

 private:
  struct destroy {
    void operator()(cermet_batch* b) const { cermet_batch_destroy(b); }
  };
  std::unique_ptr<cermet_batch, destroy> batch_;
};

}  // namespace cermet

#include <cermet/get_op.hpp>  // operators by name, for tensors of any shape

#endif  // CERMET_CERMET_HPP_

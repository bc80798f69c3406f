// Cermet's C++ interface: header-only, C++17, over the C interface of cermet.h. Errors are exceptions of type
// cermet::error. An integrator includes this file, which has tensor.hpp, model.hpp and get_op.hpp as parts; onnx.hpp
// has ONNX models, and ops.hpp a function for every operator.
//
//   cermet::tensor a({2, 3}, {1, 2, 3, 4, 5, 6}), b({3, 2}, {1, 0, 0, 1, 1, 1});
//   auto f = cermet::get_op("matmul", {a, b});  // validates, infers, chooses a kernel
//   auto y = f({a, b});                         // runs it
#ifndef CERMET_CERMET_HPP_
#define CERMET_CERMET_HPP_

#include <cermet/tensor.hpp>

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
  /// Memory of the caller for graphs: cermet_handle_set_allocator.
  void set_allocator(cermet_allocate allocate, cermet_release release, void* user = nullptr) {
    face::check(cermet_handle_set_allocator(get(), allocate, release, user));
  }
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

}  // namespace cermet

#include <cermet/get_op.hpp>  // operators by name, for tensors of any shape
#include <cermet/model.hpp>   // checkpoints

#endif  // CERMET_CERMET_HPP_

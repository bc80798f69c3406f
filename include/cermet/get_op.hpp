// Part of cermet.hpp: operators by name, for tensors of any shape.
//
//   auto matmul = handle.get_op("matmul", a, b);  // samples: types and shapes
//   auto y = matmul(a, b);                        // a new tensor in host memory
//   matmul(a, b, cermet::out(y));                 // into memory of the caller: nothing is allocated
//   matmul(a, b, cermet::out(y), stream);         // on a stream of the caller
#ifndef CERMET_GET_OP_HPP_
#define CERMET_GET_OP_HPP_

#include <cermet/cermet.hpp>

#include <array>

namespace cermet {

namespace face {

/// Inputs, and results, of one call at most.
constexpr std::size_t most_tensors = 64;

}  // namespace face

/// Where a call puts its results: out(y), out(values, indices). Refers to the tensors.
class out {
 public:
  template <class... More>
  explicit out(const tensor& first, const More&... more) {
    add(first);
    (add(more), ...);
  }
  explicit out(const std::vector<tensor>& list) {
    for (const tensor& t : list) add(t);
  }
  std::size_t size() const { return size_; }
  const tensor& operator[](std::size_t i) const { return *list_[i]; }

 private:
  void add(const tensor& t) {
    if (size_ == list_.size())
      throw error(CERMET_INVALID_ARGUMENT,
                  "results: expected at most " + std::to_string(list_.size()) + ", found more");
    list_[size_++] = &t;
  }
  std::array<const tensor*, face::most_tensors> list_;
  std::size_t size_ = 0;
};

namespace face {

/// The arguments of a call, in any order but that of its operands. Takes no heap memory; refers to the tensors.
class call_arguments {
 public:
  void add(const tensor& t) {
    if (inputs_ == most_tensors)
      throw error(CERMET_INVALID_ARGUMENT,
                  "operands: expected at most " + std::to_string(most_tensors) + ", found more");
    sources_[inputs_] = &t;
    tensors_[inputs_] = t.dl();
    in_[inputs_] = t ? &tensors_[inputs_] : nullptr;
    ++inputs_;
  }
  void add(const std::vector<tensor>& list) {
    for (const tensor& t : list) add(t);
  }
  void add(const out& results) { results_ = &results; }
  void add(const stream& on) { stream_ = on.native(); }

  /// Calls with results in memory of the caller.
  void call_into(cermet_callable* callable, const out& results) const {
    std::array<DLTensor, most_tensors> tensors;
    std::array<DLTensor*, most_tensors> list;
    for (std::size_t i = 0; i < results.size(); ++i) {
      tensors[i] = results[i].dl();
      list[i] = results[i] ? &tensors[i] : nullptr;
    }
    check(cermet_call(callable, in_.data(), inputs_, list.data(), results.size(), stream_));
  }
  void call_into(cermet_callable* callable) const { call_into(callable, *results_); }
  /// Calls with results in new host memory; one that shares an operand's memory is that operand.
  std::vector<tensor> call(cermet_callable* callable) const {
    std::size_t count = 0;
    check(cermet_call_output_count(callable, in_.data(), inputs_, &count));
    std::vector<tensor> made;
    for (std::size_t i = 0; i < count; ++i) {
      cermet_call_result r;
      check(cermet_call_output(callable, in_.data(), inputs_, i, &r));
      if (r.shared_input >= 0) made.push_back(*sources_[static_cast<std::size_t>(r.shared_input)]);
      else made.emplace_back(host_shape(r), dtype_of(r.dtype));
    }
    call_into(callable, out(made));
    return made;
  }
  std::size_t inputs() const { return inputs_; }
  const DLTensor* const* in() const { return in_.data(); }
  const tensor& source(std::size_t i) const { return *sources_[i]; }

 private:
  std::vector<std::int64_t> host_shape(const cermet_call_result& r) const {
    for (std::size_t i = 0; i < inputs_; ++i)
      if (*sources_[i] && !sources_[i]->on_host())
        throw error(CERMET_INVALID_ARGUMENT,
                    "results: expected memory of the caller, given as out(..), for operands on " +
                        text_of(sources_[i]->device()) + ", found a call that makes its own");
    return {r.shape, r.shape + r.ndim};
  }

  std::array<DLTensor, most_tensors> tensors_;
  std::array<const DLTensor*, most_tensors> in_;
  std::array<const tensor*, most_tensors> sources_;
  std::size_t inputs_ = 0;
  const out* results_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace face

/// A kernel by its name and its configuration, as `cermet ops NAME` and `cermet explain op` list them; empty: the
/// cheapest.
struct kernel_choice {
  std::string kernel, config;
};

/// An operator by name, for operands of any types and shapes that it takes: cermet_get_op. Used by one thread at a
/// time.
class callable {
 public:
  /// Samples are tensors, or say what operands will be; weight(w) is a constant, which calls do not pass. Its memory
  /// must stay as it is, where the tensor does not own it.
  callable(const handle& on, const std::string& name, const std::vector<descriptor>& samples,
           const std::vector<attribute>& attributes = {}, const kernel_choice& choice = {}) {
    std::vector<cermet_attribute> list;
    for (const attribute& a : attributes) list.push_back(a.get());
    make(on, name.c_str(), samples, list.data(), list.size(), choice);
  }
  callable(const handle& on, const char* name, const std::vector<descriptor>& samples,
           const cermet_attribute* attributes, std::size_t count) {
    make(on, name, samples, attributes, count, {});
  }

  /// Takes the operands in order, tensor() for one that is not given, and lists of them for variadic ones; then out(..)
  /// and a stream. Returns the first result in new host memory; nothing with out(..).
  template <class... Arguments>
  auto operator()(const Arguments&... arguments) {
    face::call_arguments list;
    (list.add(arguments), ...);
    if constexpr ((std::is_same_v<Arguments, out> || ...)) list.call_into(get());
    else return list.call(get()).front();
  }
  /// Every result, in new host memory.
  template <class... Operands>
  std::vector<tensor> all(const Operands&... operands) {
    face::call_arguments list;
    (list.add(operands), ...);
    return list.call(get());
  }
  /// Of the last call, or of the samples.
  std::string kernel() const { return cermet_callable_kernel(get()); }
  std::string config() const { return cermet_callable_config(get()); }
  cermet_callable* get() const { return callable_.get(); }

 private:
  struct destroy {
    void operator()(cermet_callable* c) const { cermet_callable_destroy(c); }
  };
  void make(const handle& on, const char* name, const std::vector<descriptor>& samples,
            const cermet_attribute* attributes, std::size_t count, const kernel_choice& choice) {
    std::vector<DLTensor> tensors(samples.size());
    std::vector<const DLTensor*> in(samples.size());
    std::vector<const char*> dtypes(samples.size());
    std::vector<cermet_weight*> weights(samples.size());
    cermet_get_op_options options = cermet_get_op_defaults();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const cermet_descriptor d = samples[i].get();
      if (!samples[i].ranges().empty())
        throw error(CERMET_INVALID_ARGUMENT, std::string(name) + ": operand " + std::to_string(i) +
                                                 ": expected sizes, which may vary anyway, found up_to()");
      dtypes[i] = d.dtype;
      weights[i] = samples[i].shared();
      if (!d.dtype) continue;
      const auto& row = face::row_of(face::dtype_of(d.dtype));
      tensors[i] = {nullptr, {kDLCPU, 0}, d.ndim, {row.code, row.bits, 1}, const_cast<std::int64_t*>(d.shape), nullptr,
                    0};
      in[i] = &tensors[i];
      if (!samples[i].value()) continue;
      tensors[i] = samples[i].value().dl();
      options.constants |= std::uint64_t{1} << i;
      constants_.push_back(samples[i].value());
    }
    options.kernel = choice.kernel.empty() ? nullptr : choice.kernel.c_str();
    options.config = choice.config.empty() ? nullptr : choice.config.c_str();
    options.dtypes = dtypes.data();
    options.weights = weights.data();
    cermet_callable* made = nullptr;
    face::check(cermet_get_op(on.get(), name, in.data(), in.size(), attributes, count, &options, &made));
    callable_.reset(made);
  }

  std::vector<tensor> constants_;  // whose memory the library reads
  std::unique_ptr<cermet_callable, destroy> callable_;
};

template <class... Samples>
callable handle::get_op(const std::string& name, const Samples&... samples) const {
  return callable(*this, name, std::vector<descriptor>{descriptor(samples)...});
}
inline callable handle::get_op(const std::string& name, const std::vector<descriptor>& samples,
                               const std::vector<attribute>& attributes) const {
  return callable(*this, name, samples, attributes);
}
inline callable handle::get_op(const std::string& name, const std::vector<descriptor>& samples,
                               const std::vector<attribute>& attributes, const kernel_choice& choice) const {
  return callable(*this, name, samples, attributes, choice);
}

}  // namespace cermet

#endif  // CERMET_GET_OP_HPP_

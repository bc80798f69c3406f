// ONNX models, from C++ (17): header-only, over the C interface of onnx.h. Errors are exceptions of type cermet::error.
//
//   auto model = cermet::compile("encoder.onnx", {{"batch", 1, 8}, {"sequence", 1, 512}});
//   auto results = model.run({{"input_ids", ids}});
//   auto y = results.at("last_hidden_state").values();
#ifndef CERMET_ONNX_HPP_
#define CERMET_ONNX_HPP_

#include <cermet/onnx.h>
#include <cermet/cermet.hpp>

#include <map>
#include <optional>

namespace cermet {

/// Sizes of a dimension that the file names and leaves open; one number fixes it.
struct range {
  std::string name;
  std::int64_t least, greatest;
  range(std::string of, std::int64_t size) : range(std::move(of), size, size) {}
  range(std::string of, std::int64_t from, std::int64_t to) : name(std::move(of)), least(from), greatest(to) {}
};

/// An input or a result as the file declares it.
struct onnx_value {
  std::string name;
  std::optional<dtype> type;
  std::optional<std::vector<std::int64_t>> shape;  ///< -1 for a size that the file leaves open
  std::vector<std::string> dim_names;              ///< "" for a dimension without a name
};

/// An ONNX model on a handle's device.
class onnx_model {
 public:
  using tensors = std::map<std::string, tensor>;

  explicit onnx_model(const std::string& path, const std::vector<range>& ranges = {},
                      const handle& on = default_handle()) {
    std::vector<cermet_onnx_range> list;
    for (const range& r : ranges) list.push_back({r.name.c_str(), r.least, r.greatest});
    cermet_onnx* made = nullptr;
    face::check(cermet_onnx_open(on.get(), path.c_str(), list.data(), list.size(), &made));
    model_.reset(made);
    for (std::size_t i = 0; i < cermet_onnx_input_count(made); ++i) inputs_.push_back(value(cermet_onnx_input, i));
    for (std::size_t i = 0; i < cermet_onnx_output_count(made); ++i) outputs_.push_back(value(cermet_onnx_output, i));
  }

  const std::vector<onnx_value>& inputs() const { return inputs_; }
  const std::vector<onnx_value>& outputs() const { return outputs_; }

  /// Runs on dense tensors by the names of the inputs, in memory of the host or of the handle's device. Results are
  /// copies in host memory.
  tensors run(const tensors& given) {
    start(given);
    tensors results;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      DLManagedTensor* made = nullptr;
      face::check(cermet_onnx_result_copy(get(), i, &made));
      DLTensor source = made->dl_tensor;
      results[outputs_[i].name] =
          is_bool(i, source) ? tensor::from_dlpack(made, dtype::boolean) : tensor::from_dlpack(made);
    }
    return results;
  }
  /// The same without copies: views of results in memory of the handle's device, valid until the next run.
  tensors run_on_device(const tensors& given) {
    start(given);
    tensors results;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      DLTensor made{};
      face::check(cermet_onnx_result(get(), i, 0, &made));
      results[outputs_[i].name] = is_bool(i, made) ? tensor::view(made, dtype::boolean) : tensor::view(made);
    }
    return results;
  }

  /// Graphs that runs have compiled so far.
  std::int64_t compiled() const { return cermet_onnx_compiled_count(get()); }
  cermet_onnx* get() const { return model_.get(); }

 private:
  struct destroy {
    void operator()(cermet_onnx* m) const { cermet_onnx_destroy(m); }
  };

  void start(const tensors& given) {
    std::vector<DLTensor> list;
    list.reserve(inputs_.size());
    std::vector<const DLTensor*> pointers;
    for (const onnx_value& input : inputs_) {
      const auto found = given.find(input.name);
      if (found == given.end() || !found->second)
        throw error(CERMET_INVALID_ARGUMENT, "input '" + input.name + "': expected a tensor, found none");
      list.push_back(found->second.dl());
      pointers.push_back(&list.back());
    }
    for (const auto& [name, unused] : given) {
      bool known = false;
      for (const onnx_value& input : inputs_) known = known || input.name == name;
      if (!known)
        throw error(CERMET_INVALID_ARGUMENT,
                    "input '" + name + "': expected an input of the model, found none of this name");
    }
    face::check(cermet_onnx_run(get(), pointers.data(), pointers.size()));
  }

  /// DLPack 0.6 has bytes for bool; the file says what they are.
  bool is_bool(std::size_t i, const DLTensor& made) const {
    return outputs_[i].type == dtype::boolean && made.dtype.code == kDLUInt && made.dtype.bits == 8;
  }

  template <class Query>
  onnx_value value(Query query, std::size_t i) const {
    cermet_onnx_value v{};
    face::check(query(get(), i, &v));
    onnx_value made;
    made.name = v.name;
    if (v.dtype) made.type = face::dtype_of(v.dtype);
    if (v.ndim >= 0) made.shape.emplace(v.shape, v.shape + v.ndim);
    for (std::int32_t a = 0; a < v.ndim; ++a) made.dim_names.emplace_back(v.dim_names[a] ? v.dim_names[a] : "");
    return made;
  }

  std::unique_ptr<cermet_onnx, destroy> model_;
  std::vector<onnx_value> inputs_, outputs_;
};

/// Reads and checks an ONNX file; sizes within the ranges are compiled once, at the first run.
inline onnx_model compile(const std::string& path, const std::vector<range>& ranges = {},
                          const handle& on = default_handle()) {
  return onnx_model(path, ranges, on);
}

}  // namespace cermet

#endif  // CERMET_ONNX_HPP_

// Calls of operators whose tensors lie otherwise in memory than densely.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "tests/api/case_call.hpp"

namespace cermet::test {

/// A tensor with strides and memory of its own.
struct LaidOut {
  AlignedBuffer memory;
  TensorView view;

  LaidOut(DType dtype, const Shape& shape, const Shape& strides) {
    std::int64_t last = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) last += std::max<std::int64_t>(shape[axis] - 1, 0) * strides[axis];
    memory = AlignedBuffer((last + 1) * byte_size(dtype));
    std::memset(memory.data(), 0, static_cast<std::size_t>(memory.size()));
    view = TensorView(memory.data(), dtype, shape, strides);
  }
  static LaidOut copy_of(const TensorView& from, const Shape& strides) {
    LaidOut made(from.dtype, from.shape, strides);
    for (std::int64_t e = 0; e < from.elements(); ++e) copy_element(from, e, made.view, e);
    return made;
  }
};

/// The last `dense` dimensions are dense, the others have gaps after them; those of one element, too.
inline Shape padded_strides(const Shape& shape, int dense) {
  Shape strides = shape;
  std::int64_t covered = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (axis < shape.rank() - dense) covered += 3;
    strides[axis] = covered;
    covered *= std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

/// The last `dense` dimensions are dense, and of the others the first moves fastest.
inline Shape permuted_strides(const Shape& shape, int dense) {
  Shape strides = shape;
  std::int64_t covered = 1;
  for (int axis = shape.rank() - 1; axis >= std::max(shape.rank() - dense, 0); --axis)
    strides[axis] = covered, covered *= std::max<std::int64_t>(shape[axis], 1);
  for (int axis = 0; axis < shape.rank() - dense; ++axis)
    strides[axis] = covered, covered *= std::max<std::int64_t>(shape[axis], 1);
  return strides;
}

/// A case of an operator by cermet_get_op().
class LayoutCall {
 public:
  LayoutCall(cermet_handle* handle, const CaseData& data) : data_(data) {
    const CaseAttributes attributes(data.problem);
    std::vector<DLTensor> samples;
    std::vector<const DLTensor*> given;
    std::vector<const char*> dtypes;
    for (const TensorView& view : data.inputs) samples.push_back(dl(view));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      given.push_back(data.inputs[i].present ? &samples[i] : nullptr);
      dtypes.push_back(name_of(data.inputs[i].dtype).data());
    }
    cermet_get_op_options options = cermet_get_op_defaults();
    options.constants = data.problem.constant_inputs;
    options.dtypes = dtypes.data();
    EXPECT_EQ(cermet_get_op(handle, data.problem.op->name.data(), given.data(), given.size(), attributes.get().data(),
                            attributes.get().size(), &options, &callable_),
              CERMET_OK)
        << cermet_last_error_message();
  }
  LayoutCall(const LayoutCall&) = delete;
  LayoutCall& operator=(const LayoutCall&) = delete;
  ~LayoutCall() { cermet_callable_destroy(callable_); }

  const CaseData& data() const { return data_; }
  bool is_constant(std::size_t i) const { return data_.problem.is_constant(i); }

  /// The results, each densely, or the message. `input`: strides of a copy of that operand. `output`: strides of
  /// results. `over`: the input whose memory output `first` gets.
  struct How {
    int input = -1;
    Shape input_strides{};
    bool permuted_outputs = false;
    int over = -1, output = -1;
  };
  std::optional<std::vector<std::vector<std::byte>>> run(const How& how, std::string& message) {
    std::vector<TensorView> inputs = data_.inputs;
    std::deque<LaidOut> made;
    const OpDefinition& op = definition(data_.problem);
    const auto copy = [&](std::size_t i, const Shape& strides) {
      inputs[i] = made.emplace_back(LaidOut::copy_of(inputs[i], strides)).view;
    };
    for (const int alias : op.aliases)
      if (alias >= 0 && inputs.size() > static_cast<std::size_t>(alias) &&
          inputs[static_cast<std::size_t>(alias)].present && alias != how.input)
        copy(static_cast<std::size_t>(alias), dense_strides(inputs[static_cast<std::size_t>(alias)].shape));
    if (how.input >= 0) copy(static_cast<std::size_t>(how.input), how.input_strides);
    if (how.over >= 0)
      copy(static_cast<std::size_t>(how.over), dense_strides(inputs[static_cast<std::size_t>(how.over)].shape));
    std::vector<TensorView> outputs;
    for (std::size_t o = 0; o < data_.problem.outputs.size(); ++o) {
      const TensorType& type = data_.problem.outputs[o];
      const Shape shape = bind(type.dims, {});
      const int alias = o < op.aliases.size() ? op.aliases[o] : -1;
      if (alias >= 0) outputs.push_back(inputs[static_cast<std::size_t>(alias)]);
      else if (static_cast<int>(o) == how.output) outputs.push_back(inputs[static_cast<std::size_t>(how.over)]);
      else
        outputs.push_back(made.emplace_back(type.dtype, shape,
                                            how.permuted_outputs ? permuted_strides(shape, dense_dims_of(data_.problem))
                                                                 : dense_strides(shape))
                              .view);
    }
    std::vector<DLTensor> tensors;
    tensors.reserve(inputs.size() + outputs.size());
    std::vector<const DLTensor*> in;
    std::vector<DLTensor*> out;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      in.push_back(inputs[i].present && !is_constant(i) ? &tensors.emplace_back(dl(inputs[i])) : nullptr);
    for (const TensorView& view : outputs) out.push_back(&tensors.emplace_back(dl(view)));
    if (cermet_call(callable_, in.data(), in.size(), out.data(), out.size(), nullptr) != CERMET_OK) {
      message = cermet_last_error_message();
      return std::nullopt;
    }
    std::vector<std::vector<std::byte>> bytes;
    for (const TensorView& view : outputs) {
      OwnedTensor dense(view.dtype, view.shape);
      for (std::int64_t e = 0; e < view.elements(); ++e) copy_element(view, e, dense.view, e);
      bytes.emplace_back(dense.memory.data(), dense.memory.data() + dense_bytes(view.dtype, view.shape));
    }
    return bytes;
  }

 private:
  const CaseData& data_;
  cermet_callable* callable_ = nullptr;
};

}  // namespace cermet::test

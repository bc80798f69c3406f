// Runs of an operator on bare addresses: what tensors are is known from creation.
#include "api/guard.hpp"
#include "api/op.hpp"
#include "op/schema/operator.hpp"

namespace cermet::api {

void Operator::make_pointed() {
  const Problem& p = problem();
  require(ranges_.empty(),
          "{}: run_pointers: expected an operator without ranges, found {} ranges (cermet_op_run takes tensors with "
          "shapes)",
          p.op->name, ranges_.size());
  Pointed made;
  const std::size_t count = p.inputs.size() + p.outputs.size();
  made.shapes.resize(count), made.strides.resize(count), made.tensors.resize(count);
  const auto describe = [&](std::size_t at, const TensorType& type, const std::optional<Shape>& strides) {
    const Shape shape = cermet::bind(type.dims, {}), steps = strides ? *strides : dense_strides(shape);
    made.shapes[at].assign(shape.begin(), shape.end());
    made.strides[at].assign(steps.begin(), steps.end());
    made.tensors[at] = {.data = nullptr,
                        .device = handle_->memory,
                        .ndim = shape.rank(),
                        .dtype = dl_type_of(type.dtype),
                        .shape = made.shapes[at].data(),
                        .strides = made.strides[at].data(),
                        .byte_offset = 0};
  };
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    if (p.has(i) && !p.is_constant(i)) describe(i, p.input(i), strides_[i]);
  for (std::size_t i = 0; i < p.outputs.size(); ++i) describe(p.inputs.size() + i, p.outputs[i], std::nullopt);
  made.inputs.resize(p.inputs.size());
  for (std::size_t i = 0; i < p.outputs.size(); ++i) made.outputs.push_back(&made.tensors[p.inputs.size() + i]);
  pointed_ = std::move(made);
}

void Operator::run_pointers(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace,
                            std::size_t workspace_size, void* stream) {
  if (!pointed_) make_pointed();
  Pointed& at = *pointed_;
  const std::string_view name = problem().op->name;
  require(inputs.size() <= at.inputs.size(), "{}: expected at most {} inputs, found {}", name, at.inputs.size(),
          inputs.size());
  require(outputs.size() == at.outputs.size(), "{}: expected {} outputs, found {}", name, at.outputs.size(),
          outputs.size());
  for (std::size_t i = 0; i < at.inputs.size(); ++i) {
    const void* const address = i < inputs.size() ? inputs[i] : nullptr;
    at.tensors[i].data = const_cast<void*>(address);
    at.inputs[i] = address ? &at.tensors[i] : nullptr;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) at.outputs[i]->data = outputs[i];
  run(at.inputs, at.outputs, workspace, workspace_size, stream);
}

}  // namespace cermet::api

#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::size_of_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const std::vector<int> axes = axes_in_order(p, "axes", p.input(0).rank());
  return {{DType::i64, {static_cast<std::int64_t>(axes.size())}}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const Ints& axes = call.attributes.integers("axes");
  for (std::int64_t i = 0; i < y.elements(); ++i)
    store_integer(
        y, i,
        x.shape[axes.empty() ? static_cast<int>(i) : wrap_axis(axes[static_cast<std::size_t>(i)], x.shape.rank())]);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims dims, Ints axes, std::int64_t padding = 0) {
    list.push_back(
        {std::move(name), {CaseOperand{{t, std::move(dims)}, integers(0, 1), padding}}, {{"axes", std::move(axes)}}});
  };
  add("all", DType::f32, {5, 33, 2}, {});
  add("one", DType::bf16, {5, 33}, {1});
  add("some_in_order", DType::i8, {4, 5, 6, 7}, {-1, 0});
  add("scalar", DType::f32, {}, {});
  add("strided", DType::boolean, {6, 10}, {0}, 3);
  add("empty", DType::f8_e4m3, {0, 3}, {0, 1});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Dimensions of a tensor as a tensor",
      .semantics = "y[i] is the size of x along axes[i], as the run gives it. Elements of x are not read.",
      .inputs = {{"x", dtypes::any, "[..]", "a tensor of the dimensions in question", Mapping::barrier}},
      .outputs = {{"y", {DType::i64}, "[axes]", "sizes"}},
      .attributes = {{"axes", Ints{}, "axes whose sizes are wanted; empty: all, in order"}},
      .infer = infer,
      .reference = reference,
      .bytes = [](const Problem& p) { return static_cast<double>(p.outputs[0].bytes().value(p.maximum)); },
      .cases = cases,
  };
}

}  // namespace cermet::size_of_op

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::assign_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_dims(p, 1, p.input(0).dims, "those of state");
  expect_dtype(p, 1, p.input(0).dtype, "that of state");
  return {p.input(0)};
}

void reference(const ReferenceCall& call) {
  for (std::int64_t i = 0; i < call.inputs[1].elements(); ++i) copy_element(call.inputs[1], i, call.outputs[0], i);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, const Dims& dims, std::int64_t state_padding = 0,
                       std::int64_t padding = 0) {
    const Fill fill = integers(0, 1);
    list.push_back(
        {std::move(name), {CaseOperand{{t, dims}, fill, state_padding}, CaseOperand{{t, dims}, fill, padding}}});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
    add(std::string(name_of(t)), t, {6, 35});
  add("scalar", DType::i64, {});
  add("vector", DType::f32, {130});
  add("strided_state", DType::f32, {5, 9}, 3);
  add("strided_x", DType::bf16, {5, 9}, 0, 3);
  add("both_strided", DType::f32, {3, 4, 33}, 2, 5);
  add("large", DType::f32, {130, 257});
  add("empty", DType::f32, {0, 16});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "A tensor written over another one",
      .semantics =
          "state = x, bit for bit, in the memory of state. Graphs end with it where an input is updated and no node "
          "can "
          "write its memory directly.",
      .inputs = {{"state", dtypes::any, "[..]", "memory to write; updated", Mapping::barrier},
                 {"x", dtypes::any, "[..]", "elements to write", Mapping::barrier}},
      .outputs = {{"state", dtypes::any, "[..]", "the updated operand"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
      .aliases = {0},
  };
}

}  // namespace cermet::assign_op

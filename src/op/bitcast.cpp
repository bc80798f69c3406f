#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::bitcast_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const TensorType& x = p.input(0);
  const DType dtype = dtype_attribute(p, "out_dtype", x.dtype, dtypes::all);
  if (size_of(dtype) != size_of(x.dtype))
    bad_attribute(p, "out_dtype", fmt::format("a type of {} bytes, as {} has", size_of(x.dtype), name_of(x.dtype)));
  return {{dtype, x.dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[0];
  const std::string& name = call.attributes.text("out_dtype");
  const DType dtype = name.empty() ? x.dtype : *dtype_from_name(name);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    TensorView element = x;
    element.dtype = dtype;
    copy_element(element, i, call.outputs[0], i);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](DType from, DType to, Dims dims = {5, 9}, std::int64_t padding = 0) {
    list.push_back(
        {fmt::format("{}_{}_{}", name_of(from), name_of(to), list.size()),
         {CaseOperand{{from, std::move(dims)}, from == DType::boolean ? integers(0, 1) : integers(0, 100), padding}},
         {{"out_dtype", std::string(name_of(to))}}});
  };
  add(DType::f32, DType::i32);
  add(DType::i32, DType::f32);
  add(DType::u32, DType::f32, {130, 257}, 1);
  add(DType::bf16, DType::u16);
  add(DType::f16, DType::i16);
  add(DType::i16, DType::bf16, {4, 10}, 3);
  add(DType::f16, DType::bf16);
  add(DType::i64, DType::f64);
  add(DType::f64, DType::u64);
  add(DType::u8, DType::i8);
  add(DType::i8, DType::f8_e4m3);
  add(DType::f8_e5m2, DType::u8);
  add(DType::f8_e4m3fnuz, DType::i8);
  add(DType::u8, DType::f8_e5m2fnuz);
  add(DType::f8_e8m0, DType::u8);
  add(DType::boolean, DType::u8);
  add(DType::f32, DType::i32, {});
  add(DType::f32, DType::i32, {0, 3});
  list.push_back({"same", {CaseOperand{{DType::f32, {4}}, values({NAN, -0.0, 1, INFINITY})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "The same bits as elements of another type",
      .semantics = "y has the dimensions of x; each element has the bits of that of x. Both types have the same size.",
      .inputs = {{"x", dtypes::all, "[..]", "elements", Mapping::reorganize}},
      .outputs = {{"y", dtypes::all, "[..]", "the same bits"}},
      .attributes = {{"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
      .is_view = true,
  };
}

}  // namespace cermet::bitcast_op

#include "op/schema/axes.hpp"
#include "op/schema/dims_attribute.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::expand_op {
namespace {

Dims expanded_to(const Problem& p, Dims dims) {
  const TensorType& x = p.input(0);
  if (!p.attributes.integers("shape").empty()) bad_attribute(p, "shape", "none beside dims");
  if (dims.size() > Shape::max_rank || static_cast<int>(dims.size()) < x.rank())
    bad_attribute(p, "dims", fmt::format("{} to {} dimensions", x.rank(), Shape::max_rank));
  const std::size_t lead = dims.size() - x.dims.size();
  for (std::size_t i = lead; i < dims.size(); ++i)
    if (x.dims[i - lead] != Dim(1) && x.dims[i - lead] != dims[i])
      bad_attribute(p, "dims", fmt::format("dimensions that {} broadcasts to", x.to_string()));
  return dims;
}

std::vector<TensorType> infer(const Problem& p) {
  const TensorType& x = p.input(0);
  const Ints& shape = p.attributes.integers("shape");
  if (Dims dims = dims_attribute(p, "dims"); !dims.empty()) return {{x.dtype, expanded_to(p, std::move(dims))}};
  if (shape.size() > Shape::max_rank || static_cast<int>(shape.size()) < x.rank())
    bad_attribute(p, "shape", fmt::format("{} to {} dimensions", x.rank(), Shape::max_rank));
  const std::size_t lead = shape.size() - x.dims.size();
  Dims dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim from = i < lead ? Dim(1) : x.dims[i - lead];
    if (shape[i] < -1) bad_attribute(p, "shape", "non-negative dimensions, or -1 to keep one");
    if (shape[i] != -1 && from != Dim(1) && from != Dim(shape[i]))
      bad_attribute(p, "shape", fmt::format("dimensions that {} broadcasts to", x.to_string()));
    dims.push_back(shape[i] == -1 ? from : Dim(shape[i]));
  }
  return {{x.dtype, std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const int lead = y.shape.rank() - x.shape.rank();
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const Shape to = coordinates(y.shape, i);
    Shape from = x.shape;
    for (int a = 0; a < from.rank(); ++a) from[a] = x.shape[a] == 1 ? 0 : to[a + lead];
    copy_element(x, dense_index(x.shape, from), y, i);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
    list.push_back({std::string(name_of(t)), {CaseOperand{{t, {1, 33}}, integers(0, 1)}}, {{"shape", Ints{7, 33}}}});
  list.push_back({"columns", {CaseOperand{{DType::f32, {9, 1}}}}, {{"shape", Ints{9, 129}}}});
  list.push_back({"heads", {CaseOperand{{DType::bf16, {3, 2, 1, 16}}}}, {{"shape", Ints{-1, -1, 4, -1}}}});
  list.push_back({"new_axes", {CaseOperand{{DType::f32, {5}}}}, {{"shape", Ints{2, 3, 5}}}});
  list.push_back({"scalar", {CaseOperand{{DType::f32, {}}}}, {{"shape", Ints{3, 70}}}});
  list.push_back({"scalar_to_scalar", {CaseOperand{{DType::f32, {}}}}, {{"shape", Ints{}}}});
  list.push_back({"outer_and_inner", {CaseOperand{{DType::f32, {1, 6, 1}}}}, {{"shape", Ints{4, 6, 5}}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {4, 1, 6}}, normal(), 3}}, {{"shape", Ints{4, 3, 6}}}});
  list.push_back({"to_nothing", {CaseOperand{{DType::f32, {1, 5}}}}, {{"shape", Ints{0, 5}}}});
  list.push_back({"dims_as_text", {CaseOperand{{DType::f32, {4, 1}}}}, {{"dims", Strings{"3", "4", "5"}}}});
  list.push_back({"nan", {CaseOperand{{DType::f32, {2, 1}}, values({NAN, -0.0})}}, {{"shape", Ints{2, 3}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Repeats a tensor along axes of length 1",
      .semantics =
          "y has the dimensions `shape`; those of x are lined up with its last ones, and each is equal or 1 (then it "
          "is repeated), bit for bit. -1 keeps the "
          "dimension of x, symbolic or not. `dims`, where given, has all dimensions of y, symbolic ones among them.",
      .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::one_to_many}},
      .outputs = {{"y", dtypes::any, "[..]", "repeated elements"}},
      .attributes = {{"shape", Ints{}, "dimensions of y; -1 keeps that of x"},
                     {"dims", Strings{}, "the same as text where some are symbolic: \"B*T\", \"16\""}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::expand_op

#include "op/schema/dims_attribute.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::reshape_op {
namespace {

/// The dimension that -1 stands for: `total` elements in groups of `known`.
Dim remaining_dim(const Problem& p, const Dim& total, const Dim& known) {
  const std::optional<Dim> inferred = exact_quotient(total, known);
  if (!inferred)
    bad_attribute(
        p, "shape",
        fmt::format("dimensions beside -1 whose product divides {} of {}", total.to_string(), p.input(0).to_string()));
  return *inferred;
}

Dims reshaped_to(const Problem& p, Dims dims) {
  const Dims& from = p.input(0).dims;
  if (!p.attributes.integers("shape").empty()) bad_attribute(p, "shape", "none beside dims");
  if (dims.size() > Shape::max_rank) bad_attribute(p, "dims", fmt::format("at most {} dimensions", Shape::max_rank));
  if (product(from) != product(dims))
    bad_attribute(p, "dims", fmt::format("as many elements as {}", p.input(0).to_string()));
  return dims;
}

std::vector<TensorType> infer(const Problem& p) {
  if (Dims dims = dims_attribute(p, "dims"); !dims.empty())
    return {{p.input(0).dtype, reshaped_to(p, std::move(dims))}};
  const Dims& from = p.input(0).dims;
  const Ints& shape = p.attributes.integers("shape");
  if (shape.size() > Shape::max_rank) bad_attribute(p, "shape", fmt::format("at most {} dimensions", Shape::max_rank));
  Dims to, changed_from = from, changed_to;
  std::optional<std::size_t> inferred;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < -1 || (shape[i] == -1 && inferred))
      bad_attribute(p, "shape", "non-negative dimensions and at most one -1");
    if (shape[i] == 0 && i >= from.size())
      bad_attribute(p, "shape", fmt::format("a 0 only where {} has a dimension", p.input(0).to_string()));
    if (shape[i] == -1) inferred = i;
    if (shape[i] == 0) changed_from[i] = 1;
    if (shape[i] > 0) changed_to.push_back(shape[i]);
    to.push_back(shape[i] == 0 ? from[i] : Dim(shape[i]));
  }
  const Dim total = product(changed_from), known = product(changed_to);
  if (inferred) {
    to[*inferred] = remaining_dim(p, total, known);
  } else if (total != known && !(product(from) == Dim(0) && product(to) == Dim(0))) {
    bad_attribute(p, "shape", fmt::format("as many elements as {}", p.input(0).to_string()));
  }
  return {{p.input(0).dtype, std::move(to)}};
}

void reference(const ReferenceCall& call) {
  for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) copy_element(call.inputs[0], i, call.outputs[0], i);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
    list.push_back({std::string(name_of(t)), {CaseOperand{{t, {6, 35}}, integers(0, 1)}}, {{"shape", Ints{2, -1, 7}}}});
  list.push_back({"keep_first", {CaseOperand{{DType::f32, {5, 24}}}}, {{"shape", Ints{0, 4, 6}}}});
  list.push_back({"keep_and_rest", {CaseOperand{{DType::bf16, {5, 4, 6}}}}, {{"shape", Ints{0, -1}}}});
  list.push_back({"flatten", {CaseOperand{{DType::f32, {3, 5, 7}}}}, {{"shape", Ints{-1}}}});
  list.push_back({"dims_as_text", {CaseOperand{{DType::f32, {6, 10}}, normal(), 2}}, {{"dims", Strings{"4", "15"}}}});
  list.push_back({"to_scalar", {CaseOperand{{DType::f32, {1, 1}}}}, {{"shape", Ints{}}}});
  list.push_back({"from_scalar", {CaseOperand{{DType::f32, {}}}}, {{"shape", Ints{1, 1, 1}}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {6, 10}}, normal(), 3}}, {{"shape", Ints{4, 15}}}});
  list.push_back({"large", {CaseOperand{{DType::f32, {130, 257}}, normal(), 1}}, {{"shape", Ints{257, 130}}}});
  list.push_back({"empty", {CaseOperand{{DType::f32, {0, 16}}}}, {{"shape", Ints{0, 4, 4}}}});
  list.push_back({"empty_changes", {CaseOperand{{DType::f32, {0, 16}}}}, {{"shape", Ints{0, 3}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "The same elements in the same order under other dimensions",
      .semantics =
          "y holds the elements of x in row-major order, bit for bit. In `shape`, 0 keeps the dimension of x at that "
          "position (symbolic or not) and one -1 "
          "takes "
          "what is left. The number of elements must not change.",
      .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::reorganize}},
      .outputs = {{"y", dtypes::any, "[..]", "the same elements"}},
      .attributes = {{"shape", Ints{}, "dimensions of y; 0 keeps that of x, one -1 is inferred"},
                     {"dims", Strings{}, "all of them as text where several are symbolic: \"B\", \"T+1\", \"16\""}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
      .is_view = true,
  };
}

}  // namespace cermet::reshape_op


#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::split_op {
namespace {

std::vector<Dim> equal_parts(const Problem& p, const Dim& size) {
  const std::int64_t parts = p.attributes.integer("parts");
  const std::optional<Dim> part = parts < 1 || parts > max_variadic ? std::nullopt : exact_quotient(size, parts);
  if (!part)
    bad_attribute(p, "parts",
                  fmt::format("a divisor of dimension {} in [1, {}], or `sizes`", size.to_string(), max_variadic));
  return std::vector<Dim>(static_cast<std::size_t>(parts), *part);
}

std::vector<Dim> listed_parts(const Problem& p, const Dim& size) {
  const Ints& sizes = p.attributes.integers("sizes");
  if (p.attributes.integer("parts") != 0) bad_attribute(p, "parts", "0 beside `sizes`");
  if (sizes.size() > static_cast<std::size_t>(max_variadic))
    bad_attribute(p, "sizes", fmt::format("at most {} pieces", max_variadic));
  std::optional<std::size_t> inferred;
  Dim known = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1 || (sizes[i] == -1 && inferred))
      bad_attribute(p, "sizes", "non-negative sizes and at most one -1");
    if (sizes[i] == -1) inferred = i;
    else known = known + sizes[i];
  }
  std::vector<Dim> dims(sizes.begin(), sizes.end());
  const Dim left = size + known * -1;
  if (inferred && (!left.is_constant() || left.constant() >= 0)) dims[*inferred] = left;
  else if (inferred || left != Dim(0))
    bad_attribute(p, "sizes", fmt::format("sizes that add up to {}", size.to_string()));
  return dims;
}

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  const TensorType& x = p.input(0);
  const auto axis = static_cast<std::size_t>(axis_attribute(p, "axis", x.rank()));
  std::vector<TensorType> outputs;
  for (const Dim& part :
       p.attributes.integers("sizes").empty() ? equal_parts(p, x.dims[axis]) : listed_parts(p, x.dims[axis])) {
    outputs.push_back(x);
    outputs.back().dims[axis] = part;
  }
  return outputs;
}

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[0];
  const int axis = wrap_axis(call.attributes.integer("axis"), x.shape.rank());
  std::int64_t offset = 0;
  for (const TensorView& y : call.outputs) {
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      Shape at = coordinates(y.shape, i);
      at[axis] += offset;
      copy_element(x, dense_index(x.shape, at), y, i);
    }
    offset += y.shape[axis];
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
    list.push_back({std::string(name_of(t)),
                    {CaseOperand{{t, {5, 97}}, integers(0, 1)}},
                    {{"sizes", Ints{33, 64}}, {"axis", -1}}});
  list.push_back({"rows", {CaseOperand{{DType::f32, {136, 7}}}}, {{"sizes", Ints{5, 1, 130}}}});
  list.push_back({"rest", {CaseOperand{{DType::f32, {9, 7}}}}, {{"sizes", Ints{2, -1, 3}}}});
  list.push_back({"equal", {CaseOperand{{DType::bf16, {4, 12}}}}, {{"parts", 3}, {"axis", 1}}});
  list.push_back({"middle", {CaseOperand{{DType::f32, {3, 6, 5}}}}, {{"parts", 2}, {"axis", 1}}});
  list.push_back({"one_part", {CaseOperand{{DType::f32, {3, 5}}}}, {{"parts", 1}}});
  list.push_back({"empty_part", {CaseOperand{{DType::f32, {3, 5}}}}, {{"sizes", Ints{0, 3, 0}}}});
  list.push_back({"empty", {CaseOperand{{DType::f32, {0, 5}}}}, {{"parts", 2}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {4, 9}}, normal(), 3}}, {{"parts", 3}, {"axis", 1}}});
  list.push_back({"nan", {CaseOperand{{DType::f32, {4}}, values({NAN, -0.0, INFINITY, 1})}}, {{"parts", 2}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Cuts a tensor into pieces along one axis",
      .semantics =
          "The outputs hold consecutive ranges of the axis, bit for bit: as many equal ones as `parts` says, or ranges "
          "of the given `sizes`, of which one may "
          "be -1 "
          "for what is left. Exactly one of the two attributes is given.",
      .inputs = {{"x", dtypes::any, "[.., D, ..]", "elements", Mapping::one_to_one}},
      .outputs = {{"y", dtypes::any, "[.., D_i, ..]", "pieces in order", Mapping::one_to_one, false, true}},
      .attributes = {{"axis", 0, "axis that is cut; negative counts from the end"},
                     {"sizes", Ints{}, "length of each piece; one may be -1"},
                     {"parts", 0, "number of equal pieces, where no sizes are given"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::split_op

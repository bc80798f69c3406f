#include "api/transposed.hpp"

#include <algorithm>

#include "op/operands.hpp"
#include "op/scales.hpp"

namespace cermet::api {
namespace {

bool has_attribute(const OpDefinition& op, std::string_view name) {
  return std::ranges::find(op.attributes, name, &AttributeSpec::name) != op.attributes.end();
}

}  // namespace

std::vector<TransposedOperand> transposed_operands(const OpDefinition& op) {
  std::vector<TransposedOperand> list;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::string attribute = "transpose_" + std::string(op.inputs[i].name);
    if (has_attribute(op, attribute)) list.push_back({i, attribute});
    else if (op.kind == OpKind::scaled_mm && op.inputs[i].name == "b") list.push_back({i, ""});
  }
  return list;
}

bool lies_transposed(std::span<const std::int64_t> shape, const std::int64_t* strides,
                     std::optional<std::int64_t> length) {
  const std::size_t rank = shape.size();
  if (rank < 2) return false;
  const std::int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  const bool by_rows = columns == 1 || !strides || strides[rank - 1] == 1;
  const bool by_columns = rows == 1 || (strides ? strides[rank - 2] : columns) == 1;
  if (!by_rows || !by_columns) return by_columns;
  return length && columns != *length && rows == *length;
}

bool may_have_any_strides(const OpDefinition& op, std::size_t input) {
  return op.kind == OpKind::scaled_mm && (input == op::scaled_mm::a_scale || input == op::scaled_mm::b_scale);
}

bool reads_any_strides(const Problem& p, std::size_t input) {
  if (!may_have_any_strides(definition(p), input) || !p.has(input)) return false;
  const Dims &a = p.input(op::scaled_mm::a).dims, &b = p.input(op::scaled_mm::b).dims, &scale = p.input(input).dims;
  const auto grid = input == op::scaled_mm::a_scale ? row_scale_grid(scale, {a.begin(), a.end() - 1}, a.back())
                                                    : column_scale_grid(scale, b[0], b[1]);
  return grid && grid->blocks > 1;
}

TransposedTensors::TransposedTensors(const OpDefinition& op)
    : operands_(transposed_operands(op)), swapped_(operands_.size()) {
  if (!operands_.empty()) list_.resize(static_cast<std::size_t>(max_variadic));
}

std::uint64_t TransposedTensors::found_in(std::span<const DLTensor* const> tensors) const {
  std::uint64_t bits = 0;
  for (const TransposedOperand& operand : operands_) {
    const DLTensor* const t = operand.input < tensors.size() ? tensors[operand.input] : nullptr;
    if (!t || t->ndim < 2 || t->ndim > Shape::max_rank || !t->shape) continue;
    std::optional<std::int64_t> length;
    if (const DLTensor* const first = tensors[0]; operand.attribute.empty() && first && first->ndim > 0 && first->shape)
      length = first->shape[first->ndim - 1];
    if (lies_transposed({t->shape, static_cast<std::size_t>(t->ndim)}, t->strides, length))
      bits |= std::uint64_t{1} << operand.input;
  }
  return bits;
}

std::span<const DLTensor* const> TransposedTensors::swapped(std::span<const DLTensor* const> tensors,
                                                            std::uint64_t bits) {
  if (bits == 0 || tensors.size() > list_.size()) return tensors;
  std::ranges::copy(tensors, list_.begin());
  for (std::size_t o = 0; o < operands_.size(); ++o) {
    const std::size_t input = operands_[o].input;
    if (!(bits >> input & 1u) || input >= tensors.size() || !tensors[input]) continue;
    Swapped& made = swapped_[o];
    made.tensor = *tensors[input];
    const auto rank = static_cast<std::size_t>(made.tensor.ndim);
    std::copy_n(made.tensor.shape, rank, made.shape.begin());
    std::int64_t dense = 1;
    for (std::size_t axis = rank; axis-- > 0; dense *= made.shape[axis])
      made.strides[axis] = made.tensor.strides ? made.tensor.strides[axis] : dense;
    std::swap(made.shape[rank - 1], made.shape[rank - 2]);
    std::swap(made.strides[rank - 1], made.strides[rank - 2]);
    made.tensor.shape = made.shape.data();
    made.tensor.strides = made.strides.data();
    list_[input] = &made.tensor;
  }
  return std::span(list_).first(tensors.size());
}

Attributes TransposedTensors::attributes(const Attributes& given, std::uint64_t bits) const {
  Attributes made = given;
  for (const TransposedOperand& operand : operands_) {
    if (!(bits >> operand.input & 1u) || operand.attribute.empty()) continue;
    const AttributeValue* const value = given.find(operand.attribute);
    const bool* const flag = value ? std::get_if<bool>(value) : nullptr;
    if (!value || flag) made.set(operand.attribute, !(flag && *flag));
  }
  return made;
}

}  // namespace cermet::api

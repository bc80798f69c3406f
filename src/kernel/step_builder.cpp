#include "kernel/step_builder.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "op/operands.hpp"
#include "op/quantization.hpp"
#include "op/schema/axes.hpp"

namespace cermet {

using Source = TileProgram::Source;

bool is_elementwise(OpKind op) {
  switch (op) {
#define UNARY(name, ...) case OpKind::name:
#define UNARY1(name, ...) case OpKind::name:
#define UNARY2(name, ...) case OpKind::name:
#define BINARY(name, ...) case OpKind::name:
#include "op/pointwise.inc"
    return true;
    default: return false;
  }
}

bool goes_by_token(const Region& region, std::size_t operand) {
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const Problem& p = region.nodes[n].problem;
    if (p.op->kind != OpKind::dequantize || p.attributes.text("granularity") != "token") continue;
    for (std::size_t i = 1; i < p.inputs.size(); ++i)
      if (region.operand_of(n, i) == operand) return true;
  }
  return false;
}

namespace {

/// Types of operands that float32 holds exactly.
constexpr DTypeSet small_types{DType::f32,     DType::bf16, DType::f16, DType::f8_e4m3,
                               DType::f8_e5m2, DType::i8,   DType::u8,  DType::boolean};

/// Types whose arithmetic is that of float32 or of a 32-bit integer.
constexpr DTypeSet step_types = dtypes::real | DTypeSet{DType::i32, DType::boolean};

bool is_floating_point(DType t) { return dtypes::real.contains(t) || t == DType::f8_e4m3 || t == DType::f8_e5m2; }

}  // namespace

Source StepBuilder::input(DType dtype) {
  program_.inputs.push_back(dtype);
  return {Source::From::input, static_cast<std::int32_t>(program_.inputs.size() - 1)};
}

Source StepBuilder::add(OpKind function, Source a, Source b, bool integer) {
  program_.steps.push_back({.function = function, .a = a, .b = b, .integer = integer});
  return {Source::From::step, static_cast<std::int32_t>(program_.steps.size() - 1)};
}

Source StepBuilder::extra(std::size_t node, std::size_t input, Extent extent, std::int64_t first, std::int64_t step) {
  const Problem& p = region_.nodes[node].problem;
  const DType dtype = p.input(input).dtype;
  const bool is_truth =
      p.op->kind == OpKind::cast && p.outputs[0].dtype == DType::boolean;  // rounding makes no integer zero
  if (dtype != DType::i32 && !small_types.contains(dtype) && !(is_truth && dtype == DType::i64))
    fail(node, fmt::format("operand {} is {}, which neither float32 nor a 32-bit integer holds", input,
                           cermet::name_of(dtype)));
  const std::optional<std::size_t> operand = region_.operand_of(node, input);
  if (!operand) {
    fail(node, fmt::format("operand {} comes from inside the region", input));
    return {};
  }
  return add_extra({*operand, dtype, extent, first, step, {}});
}

Source StepBuilder::add_extra(const TileProgram::Extra& wanted) {
  const auto found = std::ranges::find(program_.extras, wanted);
  const auto index = static_cast<std::int32_t>(found - program_.extras.begin());
  if (found == program_.extras.end()) program_.extras.push_back(wanted);
  return {Source::From::extra, index};
}

std::optional<Source> StepBuilder::value(std::size_t node, std::size_t output) const {
  const auto found = values_.find({node, output});
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

bool StepBuilder::reads_values(std::size_t node) const {
  return std::ranges::any_of(region_.nodes[node].inputs, [&](const RegionInput& i) {
    return i.is_inside() && value(static_cast<std::size_t>(i.index), static_cast<std::size_t>(i.output));
  });
}

Source StepBuilder::operand(std::size_t node, std::size_t input) {
  const RegionInput& from = region_.nodes[node].inputs[input];
  const TensorType& type = region_.nodes[node].problem.input(input);
  if (!from.is_inside()) {
    const std::optional<Extent> extent = extent_of_(type.dims);
    if (!extent) fail(node, fmt::format("operand {} does not extend over the results", input));
    return extra(node, input, extent.value_or(Extent::element));
  }
  const std::optional<Source> made = value(static_cast<std::size_t>(from.index), static_cast<std::size_t>(from.output));
  if (!made) {
    fail(node, "an operand comes from a node beside the anchor");
    return {};
  }
  return rounded(*made, type.dtype, from.rounding);
}

Source StepBuilder::rounded(Source value, DType dtype, Rounding rounding) {
  if (dtype == DType::boolean) return program_.is_integer(value) ? add(OpKind::cast, value) : value;
  if (dtype == DType::f32 || program_.is_integer(value)) return value;
  if (rounding != Rounding::strict && is_floating_point(dtype)) return value;
  const TileProgram::Step copy{.function = OpKind::cast, .a = value, .b = {}, .round = dtype};
  const auto known = std::ranges::find(program_.steps, copy);  // another reader's
  const auto index = static_cast<std::int32_t>(known - program_.steps.begin());
  if (known == program_.steps.end()) program_.steps.push_back(copy);
  return {Source::From::step, index};
}

bool StepBuilder::knows(OpKind op) {
  return is_elementwise(op) || op == OpKind::cast || op == OpKind::quantize || op == OpKind::dequantize;
}

void StepBuilder::follow(std::size_t node) {
  const Problem& p = region_.nodes[node].problem;
  if (!knows(p.op->kind)) return fail(node, "only elementwise operators can follow");
  if (!extent_of_(p.outputs[0].dims)) return fail(node, "the result has other dimensions");
  if (p.op->kind == OpKind::cast) return follow_cast(node);
  if (is_elementwise(p.op->kind)) return follow_elementwise(node);
  follow_quantize(node);
}

void StepBuilder::follow_elementwise(std::size_t node) {
  const Problem& p = region_.nodes[node].problem;
  const DType type = p.input(0).dtype;
  if (!step_types.contains(type))
    return fail(node, fmt::format("its operands are {}, which steps do not compute in", cermet::name_of(type)));
  const Source a = operand(node, 0), b = p.inputs.size() > 1 ? operand(node, 1) : Source{};
  const Source result = add(p.op->kind, a, b, type == DType::i32);
  const std::vector<double> numbers = p.numbers();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    program_.steps.back().parameters.at(i) = static_cast<float>(numbers[i]);
  set(node, 0, result);
}

void StepBuilder::follow_gather(std::size_t node) {
  constexpr std::size_t table = 0, indices = 1;
  const Problem& p = region_.nodes[node].problem;
  if (p.input(table).rank() != 2 || wrap_axis(p.attributes.integer("axis"), 2) != 0)
    return fail(node, "it takes no rows of a matrix");
  const auto extent = extent_of_(p.outputs[0].dims);
  if (extent != Extent::element && extent != Extent::column)
    return fail(node, "its rows do not extend over the results");
  const DType dtype = p.input(table).dtype;
  if (!small_types.contains(dtype)) return fail(node, fmt::format("its rows are {}", cermet::name_of(dtype)));
  const auto rows = region_.operand_of(node, table), by = region_.operand_of(node, indices);
  if (!rows || !by) return fail(node, "an operand comes from inside the region");
  set(node, 0, add_extra({*rows, dtype, Extent::element, 0, 1, by}));
}

void StepBuilder::follow_choice(std::size_t node) {
  const Problem& p = region_.nodes[node].problem;
  if (!extent_of_(p.outputs[0].dims)) return fail(node, "the result has other dimensions");
  if (!small_types.contains(p.outputs[0].dtype))
    return fail(node, fmt::format("its result is {}", cermet::name_of(p.outputs[0].dtype)));
  const Source condition = operand(node, 0), x = operand(node, 1), other = operand(node, 2);
  const Source result = add(OpKind::where, condition, x);
  program_.steps.back().c = other;
  set(node, 0, result);
}

/// Conversions that one rounding of a float32 makes.
void StepBuilder::follow_cast(std::size_t node) {
  const Problem& p = region_.nodes[node].problem;
  const DType from = p.input(0).dtype, to = p.outputs[0].dtype;
  const Source x = operand(node, 0);
  const auto not_exact = [&] {
    fail(node, fmt::format("from {} to {} is no rounding of a float32", cermet::name_of(from), cermet::name_of(to)));
  };
  if (program_.is_integer(x) && to == DType::boolean)
    return set(node, 0, add(OpKind::not_equal, add(OpKind::cast, x), number(0)));
  if (program_.is_integer(x)) {
    if (to != DType::i32 && to != DType::f32) return not_exact();
    return set(node, 0, to == DType::f32 ? add(OpKind::cast, x) : x);
  }
  if (to == DType::boolean) return set(node, 0, add(OpKind::not_equal, x, number(0)));
  const bool to_i8 =
      to == DType::i8 && ((p.attributes.text("rounding") == "nearest" && is_floating(from)) || from == DType::boolean);
  if (!to_i8 && !is_floating_point(to)) return not_exact();
  set(node, 0, x);
}

/// A scale or zero point of quantized values: one, one for each column, or one for each row.
Source StepBuilder::parameter(std::size_t node, std::size_t input) {
  const Problem& p = region_.nodes[node].problem;
  if (region_.nodes[node].inputs[input].is_inside()) {
    fail(node, fmt::format("operand {} comes from inside the region", input));
    return {};
  }
  const bool by_row = p.op->kind == OpKind::dequantize && p.attributes.text("granularity") == "token";
  if (by_row) return extra(node, input, Extent::row);
  if (p.input(input).elements() == Dim(1)) return extra(node, input, Extent::scalar);
  return operand(node, input);
}

void StepBuilder::follow_quantize(std::size_t node) {
  using enum op::quantize::Operand;
  const Problem& p = region_.nodes[node].problem;
  const bool dequantizes = p.op->kind == OpKind::dequantize;
  if (!dequantizes && !quantized_types.contains(p.outputs[0].dtype))
    return fail(node, fmt::format("its result is {}", cermet::name_of(p.outputs[0].dtype)));
  if (!dequantizes && !p.attributes.flag("saturate")) return fail(node, "it does not saturate");
  if (dequantizes && p.attributes.text("granularity") == "group")
    return fail(node, "its scales go by groups of columns");
  const bool divides = (p.attributes.text("mode") == "div") != dequantizes;
  const OpKind scaling = divides ? OpKind::div : OpKind::mul;
  const auto real = [&](Source value) {
    return !reason_ && program_.is_integer(value) ? add(OpKind::cast, value) : value;
  };
  Source v = real(operand(node, 0));
  if (dequantizes && p.has(offset)) v = add(OpKind::sub, v, real(parameter(node, offset)));
  v = add(scaling, v, parameter(node, scale));
  if (!dequantizes && p.has(offset)) v = add(OpKind::add, v, parameter(node, offset));
  if (!dequantizes && p.has(zero_point)) v = add(OpKind::add, add(OpKind::round, v), parameter(node, zero_point));
  set(node, 0, v);
}

void StepBuilder::fail(std::size_t node, std::string_view why) {
  if (!reason_) reason_ = fmt::format("{}{}: {}", region_.nodes[node].problem.op->name, place_, why);
}

TileProgramOrReason StepBuilder::finish() { return {std::move(program_), std::move(reason_)}; }

}  // namespace cermet

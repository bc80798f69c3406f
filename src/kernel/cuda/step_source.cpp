#include "kernel/cuda/step_source.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/checked.hpp"
#include "kernel/cuda/task.hpp"
#include "op/schema/operator.hpp"

namespace cermet::cuda {
namespace {

using Source = TileProgram::Source;

/// Exact: float32 in hexadecimal, and what has no such spelling by its bits.
std::string literal(float value) {
  if (std::isfinite(value)) return fmt::format("{:a}f", value);
  return fmt::format("__uint_as_float(0x{:08x}u)", std::bit_cast<std::uint32_t>(value));
}

/// The function that rounds once to nearest and is never contracted; null where the operator is another.
const char* rounding_intrinsic(OpKind function) {
  switch (function) {
    case OpKind::add: return "__fadd_rn";
    case OpKind::sub: return "__fsub_rn";
    case OpKind::mul: return "__fmul_rn";
    case OpKind::div: return "__fdiv_rn";
    default: return nullptr;
  }
}

/// The operator in C++, where unsigned arithmetic wraps as it does.
const char* wrapping_operator(OpKind function) {
  switch (function) {
    case OpKind::add: return "+";
    case OpKind::sub: return "-";
    case OpKind::mul: return "*";
    default: return nullptr;
  }
}

std::string element(DType dtype) { return fmt::format("cermet::Element<{}>", device_name(dtype)); }

std::string integer_expression(const TileProgram::Step& step, const std::string& a, const std::string& b) {
  if (const char* sign = wrapping_operator(step.function))
    return fmt::format("static_cast<int32_t>(static_cast<uint32_t>({}) {} static_cast<uint32_t>({}))", a, sign, b);
  return fmt::format(
      "static_cast<int32_t>(cermet::pointwise::{}_row::apply<cermet::Integer>(int64_t{{{}}}, int64_t{{{}}}, 0, "
      "0).value)",
      definition(step.function).name, a, b);
}

/// Whether a value is one that f16 holds.
bool is_f16(const TileProgram& program, const Source& source) {
  const auto index = static_cast<std::size_t>(source.index);
  if (source.from == Source::From::extra) return program.extras.at(index).dtype == DType::f16;
  return source.from == Source::From::step && program.steps.at(index).round == DType::f16;
}

/// Whether nothing reads a step but what rounds it to f16.
bool becomes_f16(const TileProgram& program, const TileProgram::Step& step) {
  if (step.round != DType::f32) return step.round == DType::f16;
  const auto index = static_cast<std::int32_t>(&step - program.steps.data());
  const auto is_step = [&](const Source& source) { return source.from == Source::From::step && source.index == index; };
  const auto keeps = [&](const TileProgram::Step& reader) {
    const bool reads = is_step(reader.a) || (TileProgram::is_binary(reader) && is_step(reader.b)) ||
                       (TileProgram::is_choice(reader) && is_step(reader.c));
    return reads && !(reader.function == OpKind::cast && reader.round == DType::f16);
  };
  return std::ranges::none_of(program.steps, keeps) &&
         std::ranges::none_of(program.results,
                              [&](const TileProgram::Result& r) { return is_step(r.value) && r.dtype != DType::f16; });
}

/// Whether 16 bits hold a value.
bool is_narrow(const TileProgram& program, const Source& source) {
  const auto narrow = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; };
  const auto index = static_cast<std::size_t>(source.index);
  if (source.from == Source::From::extra) return narrow(program.extras.at(index).dtype);
  return source.from == Source::From::step && narrow(program.steps.at(index).round);
}

/// The type of 16 bits that a step is rounded to and read in, by its own node; f32 where there is none.
DType narrow_type_of(const TileProgram& program, const TileProgram::Step& step) {
  if (step.round == DType::f16 || step.round == DType::bf16) return step.round;
  const auto index = static_cast<std::int32_t>(&step - program.steps.data());
  const auto is_step = [&](const Source& source) { return source.from == Source::From::step && source.index == index; };
  for (const TileProgram::Step& reader : program.steps)
    if (is_step(reader.a) || (TileProgram::is_binary(reader) && is_step(reader.b)) ||
        (TileProgram::is_choice(reader) && is_step(reader.c)))
      return DType::f32;
  for (const TileProgram::Result& result : program.results)
    if (is_step(result.value))
      return result.dtype == DType::bf16 || result.dtype == DType::f16 ? result.dtype : DType::f32;
  return DType::f32;
}

/// The function for what a fast edge brings and 16 bits take away; null where the step is another. Strict edges bring
/// what 16 bits hold, and keep their bits.
const char* coarse_function(const TileProgram& program, const TileProgram::Step& step) {
  const DType type = is_narrow(program, step.a) ? DType::f32 : narrow_type_of(program, step);
  if (type == DType::f32) return nullptr;
  switch (step.function) {
    case OpKind::sigmoid: return "coarse_sigmoid";
    case OpKind::silu: return "coarse_silu";
    case OpKind::gelu_tanh: return "coarse_gelu_tanh";
    case OpKind::gelu: return type == DType::f16 ? "coarse_gelu" : nullptr;
    default: return nullptr;
  }
}

/// Of a step on float32, before it is rounded to another type.
std::string real_expression(const TileProgram& program, const TileProgram::Step& step, const std::string& a,
                            const std::string& b) {
  if (step.function == OpKind::cast) return program.is_integer(step.a) ? fmt::format("static_cast<float>({})", a) : a;
  if (TileProgram::is_choice(step)) return fmt::format("({} != 0 ? {} : {})", a, b, value_source(step.c));
  if (step.fused_multiply) {
    const TileProgram::Step& product = program.steps.at(static_cast<std::size_t>(step.a.index));
    return fmt::format("__fmaf_rn({}, {}, {})", value_source(product.a), value_source(product.b), b);
  }
  if (step.function == OpKind::div && is_f16(program, step.a) && is_f16(program, step.b) && becomes_f16(program, step))
    return fmt::format("cermet::pointwise::f16_quotient({}, {})", a, b);
  if (const char* function = coarse_function(program, step))
    return fmt::format("cermet::pointwise::{}({})", function, a);
  if (const char* intrinsic = rounding_intrinsic(step.function)) return fmt::format("{}({}, {})", intrinsic, a, b);
  return fmt::format("cermet::pointwise::settled(cermet::pointwise::{}_row::apply<cermet::Real>({}, {}, {}, {}).v)",
                     definition(step.function).name, a, b, literal(step.parameters[0]), literal(step.parameters[1]));
}

/// A step that two numbers of f16 take in one instruction, with the same bits: rounding to float32 before f16 changes
/// no sum, difference or product of f16.
const char* pair_function(const TileProgram& program, const TileProgram::Step& step) {
  if (step.integer || step.fused_multiply || !becomes_f16(program, step)) return nullptr;
  const char* const name = step.function == OpKind::add   ? "add_pairs"
                           : step.function == OpKind::sub ? "sub_pairs"
                           : step.function == OpKind::mul ? "mul_pairs"
                                                          : nullptr;
  return name && is_f16(program, step.a) && is_f16(program, step.b) ? name : nullptr;
}

/// Whether pair_source() knows what a step does.
bool goes_by_pairs(const TileProgram& program, const TileProgram::Step& step) {
  const bool known = step.round == DType::f32 || step.round == DType::f16;
  return known && !step.integer && !step.fused_multiply && !TileProgram::is_choice(step) &&
         !program.is_integer(step.a) && (!TileProgram::is_binary(step) || !program.is_integer(step.b));
}

/// What names half a (or b) of a source, and both halves as f16.
std::string half(const Source& source, char which) {
  return source.from == Source::From::number ? value_source(source) : fmt::format("{}{}", value_source(source), which);
}
std::string halves(const TileProgram& program, const Source& source) {
  const bool packed =
      is_f16(program, source) || (source.from == Source::From::step &&
                                  pair_function(program, program.steps.at(static_cast<std::size_t>(source.index))));
  return packed ? half(source, 'p')
                : fmt::format("cermet::pointwise::f16_pair({}, {})", half(source, 'a'), half(source, 'b'));
}

std::string pair_step(const TileProgram& program, std::size_t i, std::string_view indent) {
  const TileProgram::Step& step = program.steps[i];
  if (const char* function = pair_function(program, step))
    return fmt::format("{}const uint32_t s{}p = cermet::pointwise::{}({}, {});\n", indent, i, function,
                       halves(program, step.a), halves(program, step.b));
  if (step.function == OpKind::cast) {
    if (step.round == DType::f16)
      return fmt::format("{}const uint32_t s{}p = {};\n", indent, i, halves(program, step.a));
    return fmt::format("{0}const float s{1}a = {2}, s{1}b = {3};\n", indent, i, half(step.a, 'a'), half(step.a, 'b'));
  }
  const Source& second = TileProgram::is_binary(step) ? step.b : step.a;
  const auto value = [&](char which) {
    return real_expression(program, step, half(step.a, which), half(second, which));
  };
  if (step.round == DType::f16)
    return fmt::format("{}const uint32_t s{}p = cermet::pointwise::f16_pair({}, {});\n", indent, i, value('a'),
                       value('b'));
  return fmt::format("{0}const float s{1}a = {2}, s{1}b = {3};\n", indent, i, value('a'), value('b'));
}

}  // namespace

std::string pair_source(const TileProgram& program, std::string_view indent) {
  if (program.results.size() != 1 || program.results.front().dtype != DType::f16 || program.inputs.size() != 1 ||
      program.inputs.front() != DType::f32)
    return {};
  const auto in_pairs = [&](const TileProgram::Step& step) { return pair_function(program, step) != nullptr; };
  const auto known = [&](const TileProgram::Step& step) { return goes_by_pairs(program, step); };
  if (std::ranges::none_of(program.steps, in_pairs) || !std::ranges::all_of(program.steps, known)) return {};
  std::string text;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    text += pair_step(program, i, indent);
    if (program.steps[i].round == DType::f16)
      text += fmt::format(
          "{0}[[maybe_unused]] const float s{1}a = cermet::pointwise::low_half(s{1}p), s{1}b = "
          "cermet::pointwise::high_half(s{1}p);\n",
          indent, i);
  }
  return text + fmt::format("{}return {};\n", indent, halves(program, program.results.front().value));
}

std::string value_source(const Source& source) {
  switch (source.from) {
    case Source::From::input: return fmt::format("in{}", source.index);
    case Source::From::extra: return fmt::format("x{}", source.index);
    case Source::From::step: return fmt::format("s{}", source.index);
    case Source::From::number: return literal(source.number);
  }
  assertion_failed("a source", __FILE_NAME__, __LINE__);
}

std::string step_source(const TileProgram& program, std::string_view indent, const std::vector<bool>& wanted) {
  std::string text;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    if (!wanted.empty() && !wanted[i]) continue;
    const TileProgram::Step& step = program.steps[i];
    const std::string a = value_source(step.a), b = TileProgram::is_binary(step) ? value_source(step.b) : a;
    if (step.integer) {
      text += fmt::format("{}const int32_t s{} = {};\n", indent, i, integer_expression(step, a, b));
      continue;
    }
    std::string value = real_expression(program, step, a, b);
    if (step.round != DType::f32)
      value = fmt::format("cermet::to_float(cermet::from_float<{}>({}))", element(step.round), value);
    text += fmt::format("{}const float s{} = {};\n", indent, i, value);
  }
  return text;
}

std::string result_source(const TileProgram& program, const TileProgram::Result& result) {
  std::string value = value_source(result.value);
  const bool integer = program.is_integer(result.value);
  if (result.dtype == DType::boolean) return fmt::format("static_cast<{}>({} != 0)", element(result.dtype), value);
  if (integer && result.dtype == DType::i32) return value;
  return fmt::format("cermet::from_float<{}>({})", element(result.dtype),
                     integer ? fmt::format("static_cast<float>({})", value) : value);
}

}  // namespace cermet::cuda

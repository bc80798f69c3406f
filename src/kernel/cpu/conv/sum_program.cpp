#include "kernel/cpu/conv/sum_program.hpp"

#include <cmath>

namespace cermet::cpu {
namespace {

using Source = TileProgram::Source;

bool is_operand(const TileProgram& program, const Source& source, TileProgram::Extent extent) {
  if (source.from != Source::From::extra) return false;
  const TileProgram::Extra& extra = program.extras[static_cast<std::size_t>(source.index)];
  return extra.dtype == DType::f32 && extra.extent == extent;
}

}  // namespace

std::optional<SumProgram> SumProgram::of(const TileProgram& program) {
  if (program.inputs != std::vector<DType>{DType::f32} || program.results.size() != 1 ||
      program.results[0].dtype != DType::f32)
    return std::nullopt;
  SumProgram sum{.bias = {}, .residual = {}, .low = -INFINITY, .high = INFINITY};
  bool ended = false;
  Source value{Source::From::input, 0, 0};
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const TileProgram::Step& step = program.steps[s];
    if (ended || step.integer || step.round != DType::f32 || step.fused_multiply) return std::nullopt;
    if (step.function == OpKind::add) {
      const Source other = step.a == value ? step.b : step.a;
      if (!(step.a == value || step.b == value) || other.from != Source::From::extra) return std::nullopt;
      const std::size_t operand = program.extras[static_cast<std::size_t>(other.index)].operand;
      if (is_operand(program, other, TileProgram::Extent::column) && !sum.bias && !sum.residual) sum.bias = operand;
      else if (is_operand(program, other, TileProgram::Extent::element) && !sum.residual) sum.residual = operand;
      else return std::nullopt;
    } else if (TileProgram::is_binary(step) || step.a != value) {
      return std::nullopt;
    } else if (step.function == OpKind::relu || step.function == OpKind::clip) {
      sum.low = step.function == OpKind::relu ? 0.0f : step.parameters[0];
      if (step.function == OpKind::clip) sum.high = step.parameters[1];
      ended = true;
    } else {
      sum.function = pointwise_functions(step.function).real;
      sum.parameters = step.parameters;
      if (!sum.function) return std::nullopt;
      ended = true;
    }
    value = {Source::From::step, static_cast<std::int32_t>(s), 0};
  }
  if (program.results[0].value != value) return std::nullopt;
  return sum;
}

}  // namespace cermet::cpu

#include "kernel/cpu/tile_fusions.hpp"

#include <algorithm>

namespace cermet::cpu {

TileFusions::TileFusions(const TileProgram& program, std::optional<Source> value)
    : program_(program), readers_(program.steps.size()), last_(program.steps.size()), skipped_(program.steps.size()), fused_(program.steps.size()) {
  const std::size_t end = program.steps.size();
  for (std::size_t s = 0; s < end; ++s) {
    note(program.steps[s].a, s);
    if (TileProgram::is_binary(program.steps[s])) note(program.steps[s].b, s);
  }
  for (const TileProgram::Result& result : program.results) note(result.value, end);
  if (value) note(*value, end);
  for (std::size_t s = 0; s < end; ++s)
    if (!fuse_function_of_sum(s) && !fuse_scales(s)) fuse_factors(s);
  for (const TileProgram::Result& result : program.results) {
    const Step* const sum = stored_sum(result);
    if (!sum) continue;
    skip(result.value);
    keep_until(sum->a, end);
    keep_until(sum->b, end);
  }
}

void TileFusions::note(const Source& source, std::size_t reader) {
  if (source.from != Source::From::step) return;
  const auto s = static_cast<std::size_t>(source.index);
  ++readers_[s];
  last_[s] = std::max(last_[s], reader);
}

/// The only step that makes the source and that nothing else reads, where it has this function and is not rounded.
const TileProgram::Step* TileFusions::only(const Source& source, OpKind function, bool integer) const {
  if (source.from != Source::From::step) return nullptr;
  const auto s = static_cast<std::size_t>(source.index);
  const Step& step = program_.steps[s];
  return readers_[s] == 1 && step.function == function && step.integer == integer && step.round == DType::f32 ? &step : nullptr;
}

/// A value that a skipped step reads is read later than that step says.
void TileFusions::keep_until(const Source& source, std::size_t reader) {
  if (source.from == Source::From::step) last_[static_cast<std::size_t>(source.index)] = std::max(last_[static_cast<std::size_t>(source.index)], reader);
}

/// The scales of a product, or its zero point.
bool TileFusions::fuse_scales(std::size_t s) {
  const TileSteps functions = tile_steps();
  const Step& outer = program_.steps[s];
  const Step* const inner = only(outer.b, OpKind::mul, outer.integer);
  if (!inner) return false;
  if (fused_[static_cast<std::size_t>(outer.b.index)]) return true;
  if (outer.integer && outer.function == OpKind::sub) {
    fused_[s] = Fused{functions.subtract_product, {outer.a, inner->a, inner->b}};
  } else if (!outer.integer && outer.function == OpKind::mul) {
    const Step* const cast = only(inner->b, OpKind::cast);
    const bool integers = cast && program_.is_integer(cast->a);
    fused_[s] = Fused{integers ? functions.scale_integers : functions.scale, {integers ? cast->a : inner->b, inner->a, outer.a}};
    if (integers) skip(inner->b);
  } else {
    return true;
  }
  skip(outer.b);
  for (const Source& read : fused_[s]->operands) keep_until(read, s);
  return true;
}

/// A product and a factor, as after a norm's reduction.
bool TileFusions::fuse_factors(std::size_t s) {
  const Step& outer = program_.steps[s];
  if (outer.integer || outer.function != OpKind::mul || outer.a == outer.b) return false;
  const Step* const inner = only(outer.a, OpKind::mul);
  if (!inner || fused_[static_cast<std::size_t>(outer.a.index)]) return false;
  fused_[s] = Fused{tile_steps().scale, {inner->a, inner->b, outer.b}};
  skip(outer.a);
  for (const Source& read : fused_[s]->operands) keep_until(read, s);
  return true;
}

/// An activation after a bias.
bool TileFusions::fuse_function_of_sum(std::size_t s) {
  const Step& outer = program_.steps[s];
  if (outer.integer || outer.function == OpKind::cast || TileProgram::is_binary(outer)) return false;
  const Step* const sum = only(outer.a, OpKind::add);
  const TileFunction function = sum && !sum->fused_multiply ? pointwise_functions(outer.function).of_sum : nullptr;
  if (!function) return false;
  fused_[s] = Fused{function, {sum->a, sum->b, sum->b}};
  skip(outer.a);
  keep_until(sum->a, s);
  keep_until(sum->b, s);
  return true;
}

}  // namespace cermet::cpu

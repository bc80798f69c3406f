#include "kernel/cpu/tile_fusions.hpp"

#include <algorithm>
#include <array>

namespace cermet::cpu {
namespace {

/// An operand that is not there: 0 as float32, and as an integer.
constexpr TileProgram::Source zero_source{TileProgram::Source::From::number, 0, 0.0f};

std::size_t index_of(const TileProgram::Source& step) { return static_cast<std::size_t>(step.index); }

}  // namespace

TileFusions::TileFusions(const TileProgram& program, std::optional<Source> value)
    : program_(program),
      readers_(program.steps.size()),
      last_(program.steps.size()),
      skipped_(program.steps.size()),
      fused_(program.steps.size()) {
  const std::size_t end = program.steps.size();
  for (std::size_t s = 0; s < end; ++s) {
    note(program.steps[s].a, s);
    if (TileProgram::is_binary(program.steps[s])) note(program.steps[s].b, s);
    if (TileProgram::is_choice(program.steps[s])) note(program.steps[s].c, s);
  }
  for (const TileProgram::Result& result : program.results) note(result.value, end);
  if (value) note(*value, end);
  for (std::size_t s = 0; s < end; ++s)
    if (!fuse_function_of_sum(s) && !fuse_requantize(s) && !fuse_scales(s)) fuse_factors(s);
  for (const TileProgram::Result& result : program.results) {
    stores_.push_back(store_of(result));
    for (const Source& read : stores_.back().operands) keep_until(read, end);
  }
}

void TileFusions::note(const Source& source, std::size_t reader) {
  if (source.from != Source::From::step) return;
  const std::size_t s = index_of(source);
  ++readers_[s];
  last_[s] = std::max(last_[s], reader);
}

/// The only step that makes the source and that nothing else reads, where it has this function and is rounded to this
/// type.
const TileProgram::Step* TileFusions::only(const Source& source, OpKind function, bool integer, DType round) const {
  if (source.from != Source::From::step) return nullptr;
  const std::size_t s = index_of(source);
  const Step& step = program_.steps[s];
  return readers_[s] == 1 && step.function == function && step.integer == integer && step.round == round ? &step
                                                                                                         : nullptr;
}

/// A value that a skipped step reads is read later than that step says.
void TileFusions::keep_until(const Source& source, std::size_t reader) {
  if (source.from == Source::From::step) last_[index_of(source)] = std::max(last_[index_of(source)], reader);
}

void TileFusions::take(std::size_t step, TileFunction function, std::vector<Source> operands,
                       std::span<const Source> skipped) {
  for (const Source& source : skipped) skip(source);
  for (const Source& read : operands) keep_until(read, step);
  fused_[step] = Fused{function, std::move(operands)};
}

/// round(x / scale) + zero point, or x / scale, and a sum before it: what is quantized to int8 when it is stored or
/// read as such.
std::optional<TileFusions::Quantization> TileFusions::quantization(const Source& value) const {
  Quantization made{{}, {value}, false};
  Source zero_point = zero_source;
  const Step* division = only(value, OpKind::div);
  if (const Step* const shifted = division ? nullptr : only(value, OpKind::add)) {
    const bool whole =
        shifted->b.from == Source::From::extra && program_.extras[index_of(shifted->b)].dtype == DType::i8;
    const Step* const rounded = whole && !shifted->fused_multiply ? only(shifted->a, OpKind::round) : nullptr;
    if (!rounded) return std::nullopt;
    division = only(rounded->a, OpKind::div);
    zero_point = shifted->b;
    made.skipped.insert(made.skipped.end(), {shifted->a, rounded->a});
  }
  if (!division) return std::nullopt;
  const Step* const sum = only(division->a, OpKind::add);
  made.of_sum = sum && !sum->fused_multiply;
  if (made.of_sum) made.skipped.push_back(division->a);
  made.operands = made.of_sum ? std::vector{sum->a, sum->b} : std::vector{division->a};
  made.operands.insert(made.operands.end(), {division->b, zero_point});
  return made;
}

TileFusions::FusedStore TileFusions::store_of(const TileProgram::Result& result) {
  if (result.dtype == DType::i8) {
    if (std::optional<Quantization> made = quantization(result.value)) {
      for (const Source& source : made->skipped) skip(source);
      return {made->of_sum ? tile_steps().store_quantized_sum : tile_steps().store_quantized,
              std::move(made->operands)};
    }
  }
  const Step* const sum = only(result.value, OpKind::add);
  if (!sum) return {tile_store(result.dtype, false), {result.value}};
  skip(result.value);
  return {tile_store(result.dtype, true), {sum->a, sum->b}};
}

/// int8 values that are dequantized at once.
bool TileFusions::fuse_requantize(std::size_t s) {
  const Step& outer = program_.steps[s];
  if (outer.integer || outer.function != OpKind::mul) return false;
  std::vector<Source> skipped{outer.a};
  Source quantized = outer.a, shift = zero_source;
  bool whole_shift = false;
  if (const Step* const shifted = only(outer.a, OpKind::sub)) {
    quantized = shifted->a;
    shift = shifted->b;
    skipped.push_back(quantized);
    const Step* const cast = only(shift, OpKind::cast);
    whole_shift = cast && program_.is_integer(cast->a);
    if (whole_shift) {
      skipped.push_back(shift);
      shift = cast->a;
    }
  }
  const Step* const rounded = only(quantized, OpKind::cast, false, DType::i8);
  std::optional<Quantization> made = rounded ? quantization(rounded->a) : std::nullopt;
  if (!made) return false;
  skipped.insert(skipped.end(), made->skipped.begin(), made->skipped.end());
  made->operands.insert(made->operands.end(), {shift, outer.b});
  take(s, tile_steps().requantize[made->of_sum][whole_shift], std::move(made->operands), skipped);
  return true;
}

/// The scales of a product, its zero point, or both.
bool TileFusions::fuse_scales(std::size_t s) {
  const TileSteps functions = tile_steps();
  const Step& outer = program_.steps[s];
  const Step* const inner = only(outer.b, OpKind::mul, outer.integer);
  if (!inner) return false;
  if (fused_[index_of(outer.b)]) return true;
  std::vector<Source> skipped{outer.b};
  if (outer.integer && outer.function == OpKind::sub) {
    take(s, functions.subtract_product, {outer.a, inner->a, inner->b}, skipped);
  } else if (!outer.integer && outer.function == OpKind::mul) {
    const Step* const cast = only(inner->b, OpKind::cast);
    if (!cast || !program_.is_integer(cast->a)) {
      take(s, functions.scale, {inner->b, inner->a, outer.a}, skipped);
      return true;
    }
    skipped.push_back(inner->b);
    std::vector<Source> sum{cast->a};
    const bool shifted = only(cast->a, OpKind::sub, true) && fused_[index_of(cast->a)];
    if (shifted) {
      sum = fused_[index_of(cast->a)]->operands;
      skipped.push_back(cast->a);
    }
    sum.insert(sum.end(), {inner->a, outer.a});
    take(s, shifted ? functions.scale_shifted_integers : functions.scale_integers, std::move(sum), skipped);
  }
  return true;
}

/// A product and a factor, as after a norm's reduction.
bool TileFusions::fuse_factors(std::size_t s) {
  const Step& outer = program_.steps[s];
  if (outer.integer || outer.function != OpKind::mul || outer.a == outer.b) return false;
  const Step* const inner = only(outer.a, OpKind::mul);
  if (!inner || fused_[index_of(outer.a)]) return false;
  take(s, tile_steps().scale, {inner->a, inner->b, outer.b}, std::array{outer.a});
  return true;
}

/// An activation after a bias.
bool TileFusions::fuse_function_of_sum(std::size_t s) {
  const Step& outer = program_.steps[s];
  if (outer.integer || outer.function == OpKind::cast || TileProgram::is_binary(outer)) return false;
  const Step* const sum = only(outer.a, OpKind::add);
  const TileFunction function = sum && !sum->fused_multiply ? pointwise_functions(outer.function).of_sum : nullptr;
  if (!function) return false;
  take(s, function, {sum->a, sum->b}, std::array{outer.a});
  return true;
}

}  // namespace cermet::cpu

// From a tile program to the flat list that the interpreter runs.
#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/tile_program.hpp"
#include "op/operator.hpp"

namespace cermet::cpu {

class TileProgramCompiler {
 public:
  using Source = TileProgram::Source;
  using Step = TileProgram::Step;

  TileProgramCompiler(const TileProgram& program, std::optional<Source> value)
      : program_(program), value_(value), readers_(program.steps.size()), last_(program.steps.size()) {
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      note(program.steps[s].a, s);
      if (TileProgram::is_binary(program.steps[s])) note(program.steps[s].b, s);
      if (TileProgram::is_choice(program.steps[s])) note(program.steps[s].c, s);
    }
    for (const TileProgram::Result& result : program.results) note(result.value, program.steps.size());
    if (value) note(*value, program.steps.size());
  }

  Decline run(BoundTileProgram& to, std::span<const std::size_t> grouped) {
    if (program_.inputs.size() > BoundTileProgram::most_inputs || program_.extras.size() > BoundTileProgram::most_extras ||
        program_.results.size() > BoundTileProgram::most_results)
      return fmt::format("more than {} operands or {} results", BoundTileProgram::most_extras, BoundTileProgram::most_results);
    to.inputs_ = program_.inputs.size();
    for (const TileProgram::Extra& extra : program_.extras)
      if (Decline reason = add_extra(to, extra, std::ranges::find(grouped, extra.operand) != grouped.end())) return reason;
    collect_numbers(to);
    places_.resize(program_.steps.size());
    skipped_.assign(program_.steps.size(), false);
    plan_fusions();
    for (std::size_t s = 0; s < program_.steps.size(); ++s)
      if (Decline reason = add_step(to, s)) return reason;
    for (std::size_t r = 0; r < program_.results.size(); ++r)
      if (Decline reason = add_store(to, r)) return reason;
    to.slots_ = used_.size();
    if (value_) to.value_ = place(*value_);
    const bool one_store = !value_ && to.stores_.size() == 1 && to.instructions_.empty() && numbers_.empty();
    to.only_stores_ = one_store && program_.extras.empty() && program_.steps.empty();
    const std::array bias{std::uint8_t{0}, static_cast<std::uint8_t>(program_.inputs.size())};  // the first input and the first extra
    to.only_adds_ = one_store && !program_.inputs.empty() && program_.extras.size() == 1 && program_.steps.size() == 1 && to.stores_[0].operands == bias;
    to.ends_in_store_ = !value_ && to.stores_.size() == 1 && program_.results[0].dtype == DType::f32 && ends_in(to, program_.results[0].value);
    to.ends_in_value_ = value_ && ends_in(to, *value_);
    if (to.slots_ > BoundTileProgram::most_slots) return fmt::format("holds more than {} values at once", BoundTileProgram::most_slots);
    if (to.numbers_.size() > BoundTileProgram::most_numbers) return fmt::format("has more than {} constants", BoundTileProgram::most_numbers);
    return std::nullopt;
  }

 private:
  void note(const Source& source, std::size_t reader) {
    if (source.from != Source::From::step) return;
    const auto s = static_cast<std::size_t>(source.index);
    ++readers_[s];
    last_[s] = std::max(last_[s], reader);
  }

  Decline add_extra(BoundTileProgram& to, const TileProgram::Extra& extra, bool is_grouped) {
    if (!tile_types.contains(extra.dtype)) return fmt::format("operand {} is {}", extra.operand, name_of(extra.dtype));
    to.extras_.push_back({extra, is_grouped, tile_reader(extra.dtype), static_cast<std::uint8_t>(used_.size())});
    if (extra.extent != TileProgram::Extent::scalar) used_.push_back(true);
    return std::nullopt;
  }

  void collect_numbers(BoundTileProgram& to) {
    const auto collect = [&](const Source& source) {
      if (source.from != Source::From::number) return;
      numbers_.push_back(source.number);
      to.numbers_.emplace_back().fill(source.number);
    };
    for (const Step& step : program_.steps) {
      collect(step.a);
      if (TileProgram::is_binary(step)) collect(step.b);
      if (TileProgram::is_choice(step)) collect(step.c);
    }
  }

  /// The only step that makes the source and that nothing else reads, where it has this function and is not rounded.
  const Step* only(const Source& source, OpKind function, bool integer = false) const {
    if (source.from != Source::From::step) return nullptr;
    const auto s = static_cast<std::size_t>(source.index);
    const Step& step = program_.steps[s];
    return readers_[s] == 1 && step.function == function && step.integer == integer && step.round == DType::f32 ? &step : nullptr;
  }
  void skip(const Source& source) { skipped_[static_cast<std::size_t>(source.index)] = true; }
  /// A value that a step skipped reads is read later than that step says.
  void keep_until(const Source& source, std::size_t reader) {
    if (source.from == Source::From::step) last_[static_cast<std::size_t>(source.index)] = std::max(last_[static_cast<std::size_t>(source.index)], reader);
  }

  /// The scales and the zero point of a product, and the sum that is stored: passes over the tile that are worth saving.
  void plan_fusions() {
    fused_.resize(program_.steps.size());
    const TileSteps functions = tile_steps();
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& outer = program_.steps[s];
      if (plan_function_of_sum(s)) continue;
      const Step* const inner = only(outer.b, OpKind::mul, outer.integer);
      if (!inner && plan_factors(s)) continue;
      if (!inner || fused_[static_cast<std::size_t>(outer.b.index)]) continue;
      if (outer.integer && outer.function == OpKind::sub) {
        fused_[s] = Fused{functions.subtract_product, {outer.a, inner->a, inner->b}};
      } else if (!outer.integer && outer.function == OpKind::mul) {
        const Step* const cast = only(inner->b, OpKind::cast);
        const bool integers = cast && program_.is_integer(cast->a);
        fused_[s] = Fused{integers ? functions.scale_integers : functions.scale, {integers ? cast->a : inner->b, inner->a, outer.a}};
        if (integers) skip(inner->b);
      } else {
        continue;
      }
      skip(outer.b);
      for (const Source& read : fused_[s]->operands) keep_until(read, s);
    }
    for (const TileProgram::Result& result : program_.results) {
      const Step* const sum = only(result.value, OpKind::add);
      if (!sum) continue;
      skip(result.value);
      keep_until(sum->a, program_.steps.size());
      keep_until(sum->b, program_.steps.size());
    }
  }

  /// A product and a factor, as after a norm's reduction.
  bool plan_factors(std::size_t s) {
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
  bool plan_function_of_sum(std::size_t s) {
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

  /// Whether the last instruction makes a value.
  bool ends_in(const BoundTileProgram& to, const Source& value) const {
    if (to.instructions_.empty()) return false;
    return value.from == Source::From::step && !skipped_[static_cast<std::size_t>(value.index)] &&
           static_cast<std::size_t>(value.index) + 1 == program_.steps.size();
  }

  std::uint8_t place(const Source& source) {
    const std::size_t extras = program_.inputs.size(), numbers = extras + program_.extras.size(), slots = numbers + numbers_.size();
    const auto index = static_cast<std::size_t>(source.index);
    switch (source.from) {
      case Source::From::input: return static_cast<std::uint8_t>(index);
      case Source::From::extra: return static_cast<std::uint8_t>(extras + index);
      case Source::From::number:
        return static_cast<std::uint8_t>(numbers + static_cast<std::size_t>(std::ranges::find(numbers_, source.number) - numbers_.begin()));
      case Source::From::step: return static_cast<std::uint8_t>(slots + places_[index]);
    }
    assertion_failed("a source", __FILE__, __LINE__);
  }

  /// A slot for step s, after those of steps that are not read again.
  std::uint8_t take_slot(std::size_t s) {
    for (std::size_t earlier = 0; earlier < s; ++earlier)
      if (!skipped_[earlier] && last_[earlier] == s) used_[places_[earlier]] = false;
    const auto free = static_cast<std::size_t>(std::ranges::find(used_, false) - used_.begin());
    if (free == used_.size()) used_.push_back(true);
    used_[free] = true;
    places_[s] = free;
    return static_cast<std::uint8_t>(free);
  }

  Decline add_step(BoundTileProgram& to, std::size_t s) {
    if (skipped_[s]) return std::nullopt;
    const Step& step = program_.steps[s];
    const TileSteps steps = tile_steps();
    TileFunction function = nullptr;
    std::array<std::uint8_t, 3> operands{};
    if (fused_[s]) {
      function = fused_[s]->function;
      std::ranges::transform(fused_[s]->operands, operands.begin(), [&](const Source& source) { return place(source); });
    } else {
      operands = {place(step.a), TileProgram::is_binary(step) ? place(step.b) : std::uint8_t{0},
                  TileProgram::is_choice(step) ? place(step.c) : std::uint8_t{0}};
      if (step.function == OpKind::cast) {
        function = program_.is_integer(step.a) ? steps.to_real : nullptr;
      } else if (TileProgram::is_choice(step)) {
        function = steps.choose;
      } else {
        const PointwiseFunctions functions = pointwise_functions(step.function);
        function = step.integer ? functions.integer : functions.real;
        if (!function) return fmt::format("{} of such values", definition(step.function).name);
      }
    }
    const std::uint8_t slot = take_slot(s);
    if (function) to.instructions_.push_back({function, operands, slot, step.parameters});
    const TileFunction round = step.round == DType::f32 || step.integer ? nullptr : tile_round(step.round);
    if (!round && step.round != DType::f32 && !step.integer) return fmt::format("a step is rounded to {}", name_of(step.round));
    if (round) to.instructions_.push_back({round, {function ? place({Source::From::step, static_cast<std::int32_t>(s)}) : operands[0]}, slot, {}});
    if (!function && !round) return "a cast that changes nothing";
    return std::nullopt;
  }

  Decline add_store(BoundTileProgram& to, std::size_t r) {
    const TileProgram::Result& result = program_.results[r];
    const bool integer = program_.is_integer(result.value);
    const Step* const sum = only(result.value, OpKind::add);
    const TileStore function = tile_store(result.dtype, sum != nullptr);
    if (!function || integer != (result.dtype == DType::i32)) return fmt::format("result {} is {}", r, name_of(result.dtype));
    const std::array<std::uint8_t, 2> operands = sum ? std::array{place(sum->a), place(sum->b)} : std::array{place(result.value), std::uint8_t{0}};
    to.stores_.push_back({function, operands, result.result});
    return std::nullopt;
  }

  struct Fused {
    TileFunction function;
    std::array<Source, 3> operands;
  };

  const TileProgram& program_;
  std::optional<Source> value_;    ///< given and not stored
  std::vector<int> readers_;       ///< of steps: how many read it
  std::vector<std::size_t> last_;  ///< of steps: the last that reads it; all of them for results
  std::vector<bool> skipped_;      ///< of steps: taken together with its reader
  std::vector<std::optional<Fused>> fused_;
  std::vector<std::size_t> places_;  ///< of steps: their slots
  std::vector<bool> used_;           ///< of slots
  std::vector<float> numbers_;
};

Decline BoundTileProgram::declines(const TileProgram& program, std::optional<TileProgram::Source> value) {
  BoundTileProgram to;
  return TileProgramCompiler(program, value).run(to, {});
}

BoundTileProgram::BoundTileProgram(const TileProgram& program, std::span<const std::size_t> grouped, std::optional<TileProgram::Source> value) {
  const Decline reason = TileProgramCompiler(program, value).run(*this, grouped);
  CERMET_ASSERT(!reason);
}

}  // namespace cermet::cpu

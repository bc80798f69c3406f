// From a tile program to the flat list that the interpreter runs.
#include <algorithm>
#include <bit>

#include "base/checked.hpp"
#include "kernel/cpu/tile_fusions.hpp"
#include "kernel/cpu/tile_program.hpp"
#include "op/schema/operator.hpp"

namespace cermet::cpu {

class TileProgramCompiler {
 public:
  using Source = TileProgram::Source;
  using Step = TileProgram::Step;

  TileProgramCompiler(const TileProgram& program, std::optional<Source> value)
      : program_(program), value_(value), fusions_(program, value) {}

  Decline run(BoundTileProgram& to, std::span<const std::size_t> grouped) {
    if (program_.inputs.size() > BoundTileProgram::most_inputs ||
        program_.extras.size() > BoundTileProgram::most_extras ||
        program_.results.size() > BoundTileProgram::most_results)
      return fmt::format("more than {} operands or {} results", BoundTileProgram::most_extras,
                         BoundTileProgram::most_results);
    to.inputs_ = program_.inputs.size();
    for (const TileProgram::Extra& extra : program_.extras)
      if (Decline reason = add_extra(to, extra, std::ranges::find(grouped, extra.operand) != grouped.end()))
        return reason;
    collect_numbers(to);
    places_.resize(program_.steps.size());
    for (std::size_t s = 0; s < program_.steps.size(); ++s)
      if (Decline reason = add_step(to, s)) return reason;
    for (std::size_t r = 0; r < program_.results.size(); ++r)
      if (Decline reason = add_store(to, r)) return reason;
    to.slots_ = used_.size();
    if (value_) to.value_ = place(*value_);
    const bool one_store = !value_ && to.stores_.size() == 1 && to.instructions_.empty() && numbers_.empty();
    to.only_stores_ = one_store && program_.extras.empty() && program_.steps.empty();
    to.only_adds_ = one_store && !program_.inputs.empty() && program_.extras.size() == 1 &&
                    program_.steps.size() == 1 && to.stores_[0].operand_count == 2 && to.stores_[0].operands[0] == 0 &&
                    to.stores_[0].operands[1] == program_.inputs.size();  // the first input and the first extra
    to.ends_in_store_ = !value_ && to.stores_.size() == 1 && program_.results[0].dtype == DType::f32 &&
                        ends_in(to, program_.results[0].value);
    to.ends_in_value_ = value_ && ends_in(to, *value_);
    if (to.slots_ > BoundTileProgram::most_slots)
      return fmt::format("holds more than {} values at once", BoundTileProgram::most_slots);
    if (to.numbers_.size() > BoundTileProgram::most_numbers)
      return fmt::format("has more than {} constants", BoundTileProgram::most_numbers);
    return std::nullopt;
  }

 private:
  Decline add_extra(BoundTileProgram& to, const TileProgram::Extra& extra, bool is_grouped) {
    if (!tile_types.contains(extra.dtype)) return fmt::format("operand {} is {}", extra.operand, name_of(extra.dtype));
    to.extras_.push_back({extra, is_grouped, tile_reader(extra.dtype), static_cast<std::uint8_t>(used_.size())});
    if (extra.extent != TileProgram::Extent::scalar) used_.push_back(true);
    return std::nullopt;
  }

  void collect_numbers(BoundTileProgram& to) {
    const auto collect = [&](const Source& source) {
      if (source.from != Source::From::number || number_index(source.number) < numbers_.size()) return;
      numbers_.push_back(source.number);
      to.numbers_.emplace_back().fill(source.number);
    };
    for (std::size_t s = 0; s < program_.steps.size(); ++s)
      if (!fusions_.skips(s)) std::ranges::for_each(operands_of(s), collect);
    for (std::size_t r = 0; r < program_.results.size(); ++r)
      std::ranges::for_each(fusions_.store(r).operands, collect);
  }

  /// Where its bits are in numbers_: 0 and -0 are two.
  std::size_t number_index(float number) const {
    const auto alike = [&](float known) {
      return std::bit_cast<std::uint32_t>(known) == std::bit_cast<std::uint32_t>(number);
    };
    return static_cast<std::size_t>(std::ranges::find_if(numbers_, alike) - numbers_.begin());
  }

  /// What the function in place of a step reads.
  std::vector<Source> operands_of(std::size_t s) const {
    const Step& step = program_.steps[s];
    if (const auto& fused = fusions_.of(s)) return fused->operands;
    if (TileProgram::is_choice(step)) return {step.a, step.b, step.c};
    return TileProgram::is_binary(step) ? std::vector{step.a, step.b} : std::vector{step.a};
  }

  template <class Operands>
  std::uint8_t place_all(const std::vector<Source>& sources, Operands& operands) const {
    std::ranges::transform(sources, operands.begin(), [&](const Source& source) { return place(source); });
    return static_cast<std::uint8_t>(sources.size());
  }

  /// Whether the last instruction makes a value.
  bool ends_in(const BoundTileProgram& to, const Source& value) const {
    if (to.instructions_.empty()) return false;
    return value.from == Source::From::step && !fusions_.skips(static_cast<std::size_t>(value.index)) &&
           static_cast<std::size_t>(value.index) + 1 == program_.steps.size();
  }

  std::uint8_t place(const Source& source) const {
    const std::size_t extras = program_.inputs.size(), numbers = extras + program_.extras.size(),
                      slots = numbers + numbers_.size();
    const auto index = static_cast<std::size_t>(source.index);
    switch (source.from) {
      case Source::From::input: return static_cast<std::uint8_t>(index);
      case Source::From::extra: return static_cast<std::uint8_t>(extras + index);
      case Source::From::number: return static_cast<std::uint8_t>(numbers + number_index(source.number));
      case Source::From::step: return static_cast<std::uint8_t>(slots + places_[index]);
    }
    assertion_failed("a source", __FILE_NAME__, __LINE__);
  }

  /// A slot for step s, after those of steps that are not read again.
  std::uint8_t take_slot(std::size_t s) {
    for (std::size_t earlier = 0; earlier < s; ++earlier)
      if (!fusions_.skips(earlier) && fusions_.last_reader(earlier) == s) used_[places_[earlier]] = false;
    const auto free = static_cast<std::size_t>(std::ranges::find(used_, false) - used_.begin());
    if (free == used_.size()) used_.push_back(true);
    used_[free] = true;
    places_[s] = free;
    return static_cast<std::uint8_t>(free);
  }

  Decline add_step(BoundTileProgram& to, std::size_t s) {
    if (fusions_.skips(s)) return std::nullopt;
    const Step& step = program_.steps[s];
    TileFunction function = nullptr;
    std::array<std::uint8_t, BoundTileProgram::most_operands> operands{};
    const std::uint8_t count = place_all(operands_of(s), operands);
    if (const auto& fused = fusions_.of(s)) {
      function = fused->function;
    } else if (step.function == OpKind::cast) {
      function = program_.is_integer(step.a) ? tile_steps().to_real : nullptr;
    } else if (TileProgram::is_choice(step)) {
      function = tile_steps().choose;
    } else {
      const PointwiseFunctions functions = pointwise_functions(step.function);
      function = step.integer ? functions.integer : functions.real;
      if (!function) return fmt::format("{} of such values", definition(step.function).name);
    }
    const std::uint8_t slot = take_slot(s);
    if (function) to.instructions_.push_back({function, operands, count, slot, step.parameters});
    const TileFunction round = step.round == DType::f32 || step.integer ? nullptr : tile_round(step.round);
    if (!round && step.round != DType::f32 && !step.integer)
      return fmt::format("a step is rounded to {}", name_of(step.round));
    if (round)
      to.instructions_.push_back(
          {round, {function ? place({Source::From::step, static_cast<std::int32_t>(s)}) : operands[0]}, 1, slot, {}});
    if (!function && !round) return "a cast that changes nothing";
    return std::nullopt;
  }

  Decline add_store(BoundTileProgram& to, std::size_t r) {
    const TileProgram::Result& result = program_.results[r];
    const bool integer = program_.is_integer(result.value);
    const TileFusions::FusedStore& store = fusions_.store(r);
    if (!store.function || integer != (result.dtype == DType::i32))
      return fmt::format("result {} is {}", r, name_of(result.dtype));
    BoundTileProgram::Store made{store.function, {}, 0, result.result};
    made.operand_count = place_all(store.operands, made.operands);
    to.stores_.push_back(made);
    return std::nullopt;
  }

  const TileProgram& program_;
  std::optional<Source> value_;  ///< given and not stored
  TileFusions fusions_;
  std::vector<std::size_t> places_;  ///< of steps: their slots
  std::vector<bool> used_;           ///< of slots
  std::vector<float> numbers_;
};

Decline BoundTileProgram::declines(const TileProgram& program, std::optional<TileProgram::Source> value) {
  BoundTileProgram to;
  return TileProgramCompiler(program, value).run(to, {});
}

BoundTileProgram::BoundTileProgram(const TileProgram& program, std::span<const std::size_t> grouped,
                                   std::optional<TileProgram::Source> value) {
  const Decline reason = TileProgramCompiler(program, value).run(*this, grouped);
  CERMET_ASSERT(!reason);
}

}  // namespace cermet::cpu

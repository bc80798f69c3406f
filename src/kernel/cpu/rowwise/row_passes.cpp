#include "kernel/cpu/rowwise/row_passes.hpp"

#include <algorithm>

namespace cermet::cpu {
namespace {

using Source = TileProgram::Source;

class Maker {
 public:
  Maker(const RowProgram& program, bool keeps) : p_(program), keeps_(keeps) { made_.inputs = p_.reductions.size(); }

  Decline run() {
    std::vector<Source> passes;  // what they give, in their order
    for (const auto& reduction : p_.reductions) passes.push_back(reduction.value);
    if (p_.quantization) passes.push_back(p_.quantization->value);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      std::vector<Source> later(passes.begin() + static_cast<std::ptrdiff_t>(i) + 1, passes.end());
      for (const auto& result : p_.tile.results) later.push_back(result.value);
      const bool quantizes = i == p_.reductions.size();
      make_pass(passes[i], later, quantizes ? made_.quantized.emplace() : made_.reductions.emplace_back(), quantizes);
    }
    make_results();
    if (made_.inputs > RowPasses::most_inputs)
      return fmt::format("hands on more than {} values between passes", RowPasses::most_inputs);
    return reason_;
  }
  RowPasses take() { return std::move(made_); }

 private:
  void make_pass(const Source& value, const std::vector<Source>& later, RowPasses::Pass& pass, bool twice) {
    pass.row_values = row_values(std::span(&value, 1));
    pass.program = bound(part(std::span(&value, 1), {}), value);
    const bool is_step = value.from == Source::From::step && !p_.goes_by_row(value) && !find(value);
    if (!keeps_ || !is_step || !(twice || is_read(value, later))) return;
    pass.kept = add(value);
    made_.kept.push_back(*pass.kept);
  }

  void make_results() {
    std::vector<TileProgram::Result> places, rows;
    std::vector<Source> values;
    for (std::size_t r = 0; r < p_.tile.results.size(); ++r) {
      (p_.results_by_row[r] ? rows : places).push_back(p_.tile.results[r]);
      values.push_back(p_.tile.results[r].value);
    }
    if (!places.empty()) made_.row_values = row_values(values);
    if (!places.empty()) made_.results = bound(part({}, places));
    if (!rows.empty()) made_.by_row = bound(part({}, rows));
  }

  bool is_read(const Source& value, const std::vector<Source>& by) const {
    return std::ranges::find(by, value) != by.end() ||
           p_.steps_behind(by, sources_)[static_cast<std::size_t>(value.index)];
  }

  std::optional<std::size_t> find(const Source& source) const {
    const auto at = std::ranges::find(sources_, source);
    return at == sources_.end() ? std::nullopt
                                : std::optional(inputs_[static_cast<std::size_t>(at - sources_.begin())]);
  }
  std::size_t add(const Source& source) {
    sources_.push_back(source);
    inputs_.push_back(made_.inputs);
    return made_.inputs++;
  }

  /// Steps of whole rows that values at places are made of.
  std::vector<RowPasses::RowValue> row_values(std::span<const Source> values) {
    std::vector<RowPasses::RowValue> list;
    const auto want = [&](const Source& source) {
      if (source.from != Source::From::step || !p_.row_steps[static_cast<std::size_t>(source.index)] || find(source))
        return;
      BoundTileProgram program = bound(part(std::span(&source, 1), {}), source);
      list.push_back({std::move(program), add(source)});
    };
    const std::vector<bool> steps = p_.steps_behind(values, sources_);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (!steps[s] || p_.row_steps[s]) continue;
      want(p_.tile.steps[s].a);
      if (TileProgram::is_binary(p_.tile.steps[s])) want(p_.tile.steps[s].b);
    }
    for (const Source& value : values) want(value);
    return list;
  }

  /// The steps that make some values and results, as a program of its own; see last_.
  TileProgram part(std::span<const Source> values, const std::vector<TileProgram::Result>& results) {
    std::vector<Source> wanted(values.begin(), values.end());
    for (const auto& result : results) wanted.push_back(result.value);
    const std::vector<bool> behind = p_.steps_behind(wanted, sources_);
    TileProgram made;
    made.inputs.assign(RowPasses::most_inputs, DType::f32);
    std::vector<std::int32_t> steps(behind.size()), extras(p_.tile.extras.size(), -1);
    const auto renamed = [&](const Source& source) -> Source {
      if (const auto input = find(source)) return {Source::From::input, static_cast<std::int32_t>(*input)};
      const auto at = static_cast<std::size_t>(source.index);
      if (source.from == Source::From::step) return {Source::From::step, steps[at]};
      if (source.from != Source::From::extra) return source;
      if (extras[at] < 0) {
        extras[at] = static_cast<std::int32_t>(made.extras.size());
        made.extras.push_back(p_.tile.extras[at]);
      }
      return {Source::From::extra, extras[at]};
    };
    for (std::size_t s = 0; s < behind.size(); ++s) {
      if (!behind[s]) continue;
      TileProgram::Step step = p_.tile.steps[s];
      step.a = renamed(step.a);
      if (TileProgram::is_binary(step)) step.b = renamed(step.b);
      steps[s] = static_cast<std::int32_t>(made.steps.size());
      made.steps.push_back(step);
    }
    for (const auto& result : results) made.results.push_back({result.result, renamed(result.value), result.dtype});
    if (!values.empty()) last_ = renamed(values[0]);
    return made;
  }

  BoundTileProgram bound(const TileProgram& program) {
    if (Decline reason = BoundTileProgram::declines(program)) return fail(std::move(reason));
    return BoundTileProgram(program);
  }
  BoundTileProgram bound(const TileProgram& program, const Source&) {
    if (Decline reason = BoundTileProgram::declines(program, last_)) return fail(std::move(reason));
    return BoundTileProgram(program, {}, last_);
  }
  BoundTileProgram fail(Decline reason) {
    if (!reason_) reason_ = std::move(reason);
    return {};
  }

  const RowProgram& p_;
  bool keeps_;
  RowPasses made_;
  std::vector<Source> sources_;      ///< of the row program, which are inputs by now
  std::vector<std::size_t> inputs_;  ///< which ones
  Source last_;                      ///< the value of the part made last, in its own terms
  Decline reason_;
};

}  // namespace

RowPasses row_passes(const RowProgram& program, bool keeps) {
  Maker maker(program, keeps);
  const Decline reason = maker.run();
  CERMET_ASSERT(!reason);
  return maker.take();
}

Decline declines_row_passes(const RowProgram& program) {
  for (const bool keeps : {true, false})
    if (Decline reason = Maker(program, keeps).run()) return reason;
  return std::nullopt;
}

}  // namespace cermet::cpu

#include "kernel/row_program.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace cermet {
namespace {

using Source = TileProgram::Source;
using Kind = RowProgram::Reduction::Kind;

std::string_view name_of(Kind kind) {
  static constexpr std::string_view names[] = {"sum", "mean", "max", "inverse_root"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace

bool RowProgram::goes_by_row(const Source& source) const {
  const auto at = static_cast<std::size_t>(source.index);
  switch (source.from) {
    case Source::From::input:
    case Source::From::number: return true;
    case Source::From::extra:
      return tile.extras[at].extent == TileProgram::Extent::scalar ||
             tile.extras[at].extent == TileProgram::Extent::row;
    case Source::From::step: return row_steps[at];
  }
  assertion_failed("a source", __FILE_NAME__, __LINE__);
}

std::vector<bool> RowProgram::steps_behind(std::span<const Source> values, std::span<const Source> known) const {
  std::vector<bool> behind(tile.steps.size());
  const auto is_known = [&](const Source& s) { return std::ranges::find(known, s) != known.end(); };
  const auto mark = [&](const auto& self, const Source& s) -> void {
    if (s.from != Source::From::step || is_known(s) || behind[static_cast<std::size_t>(s.index)]) return;
    behind[static_cast<std::size_t>(s.index)] = true;
    const TileProgram::Step& step = tile.steps[static_cast<std::size_t>(s.index)];
    self(self, step.a);
    if (TileProgram::is_binary(step)) self(self, step.b);
  };
  for (const Source& value : values) mark(mark, value);
  return behind;
}

std::vector<bool> RowProgram::extras_of(const std::vector<bool>& steps, std::span<const Source> values,
                                        std::span<const Source> known) const {
  std::vector<bool> read(tile.extras.size());
  const auto note = [&](const Source& s) {
    if (s.from == Source::From::extra && std::ranges::find(known, s) == known.end())
      read[static_cast<std::size_t>(s.index)] = true;
  };
  for (const Source& value : values) note(value);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i]) continue;
    note(tile.steps[i].a);
    if (TileProgram::is_binary(tile.steps[i])) note(tile.steps[i].b);
  }
  return read;
}

std::string RowProgram::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < reductions.size(); ++i)
    text += fmt::format("in{} = {}({}{}); ", i, name_of(reductions[i].kind), text_of(reductions[i].value),
                        reductions[i].kind == Kind::inverse_root ? fmt::format(", {}", reductions[i].eps) : "");
  if (quantization) text += fmt::format("quantizes {}; ", text_of(quantization->value));
  return text + tile.to_string();
}

}  // namespace cermet

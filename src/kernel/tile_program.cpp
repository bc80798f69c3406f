#include "kernel/tile_program.hpp"

#include "base/checked.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

std::string_view name_of(TileProgram::Extent extent) {
  switch (extent) {
    case TileProgram::Extent::scalar: return "scalar";
    case TileProgram::Extent::column: return "column";
    case TileProgram::Extent::row: return "row";
    case TileProgram::Extent::element: return "element";
  }
  assertion_failed("an extent", __FILE_NAME__, __LINE__);
}

std::string text_of(const TileProgram::Source& source) {
  switch (source.from) {
    case TileProgram::Source::From::input: return fmt::format("in{}", source.index);
    case TileProgram::Source::From::extra: return fmt::format("x{}", source.index);
    case TileProgram::Source::From::step: return fmt::format("s{}", source.index);
    case TileProgram::Source::From::number: return fmt::format("{}", source.number);
  }
  assertion_failed("a source", __FILE_NAME__, __LINE__);
}

bool TileProgram::is_binary(const Step& step) { return definition(step.function).inputs.size() >= 2; }

bool TileProgram::is_integer(const Source& source) const {
  const auto at = static_cast<std::size_t>(source.index);
  switch (source.from) {
    case Source::From::input: return inputs.at(at) == DType::i32;
    case Source::From::extra: return extras.at(at).dtype == DType::i32;
    case Source::From::step: return steps.at(at).integer;
    case Source::From::number: return false;
  }
  assertion_failed("a source", __FILE_NAME__, __LINE__);
}

std::string TileProgram::to_string() const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    parts.push_back(fmt::format("in{}: {}", i, cermet::name_of(inputs[i])));
  for (std::size_t i = 0; i < extras.size(); ++i)
    parts.push_back(fmt::format(
        "x{}: ${} {} {}{}{}", i, extras[i].operand, cermet::name_of(extras[i].dtype), name_of(extras[i].extent),
        extras[i].takes_part() ? fmt::format(" from {} by {}", extras[i].first, extras[i].step) : "",
        extras[i].index ? fmt::format(" at rows ${}", *extras[i].index) : ""));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    std::string operands = text_of(s.a);
    if (is_binary(s)) operands += ", " + text_of(s.b);
    if (is_choice(s)) operands += ", " + text_of(s.c);
    for (std::size_t p = 0; p < definition(s.function).attributes.size() && s.function != OpKind::cast; ++p)
      operands += fmt::format(", {}", s.parameters.at(p));
    const std::string round =
        s.round == DType::f32 || s.integer ? std::string() : fmt::format(" as {}", cermet::name_of(s.round));
    const char* kind = s.integer ? "_i" : s.fused_multiply ? "_of_product" : "";
    parts.push_back(fmt::format("s{} = {}{}({}){}", i, definition(s.function).name, kind, operands, round));
  }
  for (const Result& r : results)
    parts.push_back(fmt::format("y{}: {} = {}", r.result, cermet::name_of(r.dtype), text_of(r.value)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<TileProgram::Extent> extent_of(const Dims& operand, const Dims& result) {
  if (operand == result) return TileProgram::Extent::element;
  const auto is_one = [](const Dim& d) { return d == Dim(1); };
  if (std::ranges::all_of(operand, is_one)) return TileProgram::Extent::scalar;
  if (operand.size() > result.size() || result.empty()) return std::nullopt;
  const auto leads = operand.end() - 1;
  if (operand.back() == result.back() && std::all_of(operand.begin(), leads, is_one))
    return TileProgram::Extent::column;
  if (is_one(operand.back()) && operand.size() == result.size() && std::equal(operand.begin(), leads, result.begin()))
    return TileProgram::Extent::row;
  return std::nullopt;
}

std::optional<TileProgram::Extent> broadcast_extent_of(const Dims& operand, const Dims& result) {
  if (const auto extent = extent_of(operand, result)) return extent;
  if (operand.empty() || operand.size() > result.size()) return std::nullopt;
  const auto broadcasts = [](const Dim& own, const Dim& other) { return own == Dim(1) || own == other; };
  if (!std::equal(operand.begin(), operand.end(), result.end() - static_cast<std::ptrdiff_t>(operand.size()),
                  broadcasts))
    return std::nullopt;
  return operand.back() == result.back() ? TileProgram::Extent::element : TileProgram::Extent::row;
}

}  // namespace cermet

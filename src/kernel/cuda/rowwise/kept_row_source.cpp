#include "kernel/cuda/rowwise/kept_row_source.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/step_source.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

using Extent = TileProgram::Extent;
using Source = TileProgram::Source;

std::string element_source(DType dtype) { return fmt::format("Element<{}>", device_name(dtype)); }

KeptRow::KeptRow(const RowProgram& program)
    : p_(program), extras_(p_.extras_of(p_.steps_behind(std::span(&p_.row, 1), {}), std::span(&p_.row, 1), {})) {
  for (std::size_t i = 0; i < extras_.size(); ++i) has_halves_ = has_halves_ || (extras_[i] && extra(i).takes_part());
}

bool KeptRow::goes_by_row(std::size_t i) const {
  return extra(i).extent == Extent::scalar || extra(i).extent == Extent::row;
}

std::size_t KeptRow::leader(std::size_t i) const {
  const auto shares = [&](const TileProgram::Extra& e) {
    return e.operand == extra(i).operand && e.extent == extra(i).extent;
  };
  return static_cast<std::size_t>(std::ranges::find_if(p_.tile.extras, shares) - p_.tile.extras.begin());
}

bool KeptRow::is_loaded_late(std::size_t i) const { return has_halves_ && extra(i).extent == Extent::column; }

/// Whether a result that is the row goes where this operand was, after all of the row was read: of rows that are
/// quantized it goes there before.
bool KeptRow::is_overwritten(std::size_t i) const {
  const auto stores_row = [&](const TileProgram::Result& r) { return r.value == p_.row && r.dtype == extra(i).dtype; };
  return p_.overwritten == i && !p_.quantization && std::ranges::any_of(p_.tile.results, stores_row);
}

std::string KeptRow::load(std::size_t i) const {
  const std::size_t at = leader(i);
  if (extra(i).step == 2) return fmt::format("load_pairs<width>(at{} + 2 * column)", at);
  const std::string first = extra(i).first == 0 ? "" : fmt::format(" + {}", extra(i).first);
  return fmt::format("{}(at{}{} + column)", is_overwritten(i) ? "load_overwritten<L>" : "load_vector<width>", at,
                     first);
}

/// What is made of whole vectors before the loop over their elements.
std::string KeptRow::vectors(const std::vector<bool>& extras) const {
  std::string text;
  for (std::size_t i = 0; i < extras.size(); ++i) {
    if (!extras[i] || goes_by_row(i) || extra(i).step == 2) continue;
    const std::string raw = is_loaded_late(i) ? load(i) : fmt::format("raw.x{}", i);
    if (extra(i).dtype == DType::i32) text += fmt::format("    const auto c{} = {};\n", i, raw);
    else text += fmt::format("    float c{0}[width];\n    to_floats({1}, c{0});\n", i, raw);
  }
  return text;
}

std::string KeptRow::elements(const std::vector<bool>& extras) const {
  std::string text;
  for (std::size_t i = 0; i < extras.size(); ++i) {
    if (!extras[i] || goes_by_row(i)) continue;
    const char* const type = extra(i).dtype == DType::i32 ? "int32_t" : "float";
    if (extra(i).step == 2)
      text +=
          fmt::format("      const {} x{} = to_float(raw.x{}.at(2 * k + {}));\n", type, i, leader(i), extra(i).first);
    else text += fmt::format("      const {0} x{1} = c{1}[k];\n", type, i);
  }
  return text;
}

/// Computes values from known ones, at each place of a vector.
std::string KeptRow::loop(std::span<const Source> values, std::span<const Source> known, const std::string& before,
                          const std::string& after) const {
  const std::vector<bool> steps = p_.steps_behind(values, known), read = p_.extras_of(steps, values, known);
  const bool any = std::ranges::find(steps, true) != steps.end();
  return fmt::format("{}#pragma unroll\n    for (int k = 0; k < width; ++k) {{\n{}{}{}{}    }}\n", vectors(read),
                     before, elements(read), any ? step_source(p_.tile, "      ", steps) : "", after);
}

std::string KeptRow::definition() const {
  if (is_plain()) return "";
  std::string fields, members, loads, body;
  for (std::size_t i = 0; i < extras_.size(); ++i) {
    if (!extras_[i]) continue;
    const std::string type = element_source(extra(i).dtype);
    if (goes_by_row(i)) {
      members += fmt::format("  float x{};\n", i);
      continue;
    }
    if (leader(i) == i) members += fmt::format("  const {}* at{};\n", type, i);
    if (is_loaded_late(i) || (extra(i).step == 2 && leader(i) != i)) continue;
    fields += fmt::format("    {}<{}, width> x{};\n", extra(i).step == 2 ? "PairsOfElements" : "Vector", type, i);
    loads += (loads.empty() ? "" : ", ") + load(i);
  }
  const Source row = p_.row;
  const std::string value = fmt::format("      v[k] = {};\n", value_source(row));
  if (p_.gate) {
    const TileProgram::Step& gate = p_.tile.steps[*p_.gate];
    const Source activated{Source::From::step, static_cast<std::int32_t>(*p_.gate)};
    body = "    float gates[width];\n" +
           loop(std::span(&gate.a, 1), {}, "", fmt::format("      gates[k] = {};\n", value_source(gate.a))) +
           "    gated::silu(gates);\n    {\n" +
           loop(std::span(&row, 1), std::span(&activated, 1),
                fmt::format("      const float {} = gates[k];\n", value_source(activated)), value) +
           "    }\n";
  } else {
    body = loop(std::span(&row, 1), {}, "", value);
  }
  return fmt::format(R"(template <RowLayout L>
struct Source {{
  static constexpr int width = L.width;
  struct Raw {{
{}  }};
{}
  CERMET_DEVICE Raw fetch(int64_t column) const {{ return {{{}}}; }}
  CERMET_DEVICE void values(const Raw& raw, [[maybe_unused]] int64_t column, float (&v)[width]) const {{
{}  }}
}};

)",
                     fields, members, loads, body);
}

std::string KeptRow::declaration() const {
  std::string of;
  for (std::size_t i = 0; i < extras_.size(); ++i) {
    if (!extras_[i] || (!goes_by_row(i) && leader(i) != i)) continue;
    const Extent extent = extra(i).extent;
    of += fmt::format("{}{}", of.empty() ? "" : ", ",
                      goes_by_row(i)              ? fmt::format("x{}", i)
                      : extent == Extent::element ? fmt::format("at{}", i)
                                                  : fmt::format("static_cast<const {}*>(p.operands[{}].data)",
                                                                element_source(extra(i).dtype), i));
  }
  const std::string type = is_plain() ? fmt::format("PlainSource<{}, width>",
                                                    element_source(extra(static_cast<std::size_t>(p_.row.index)).dtype))
                                      : "Source<L>";
  return fmt::format("    const {} source{{{}}};\n", type, of);
}

}  // namespace cermet::cuda

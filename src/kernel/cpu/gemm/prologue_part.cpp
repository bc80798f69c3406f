#include "kernel/cpu/gemm/prologue_part.hpp"
#include "op/operands.hpp"

#include <algorithm>

namespace cermet::cpu {
namespace {

RegionPlace source_of(const RegionInput& input) { return {input.index, input.output}; }

const RegionNode& anchor_of(const Region& region) { return region.nodes[static_cast<std::size_t>(region.anchor)]; }

/// The operand of a product that is the scales of its rows; 0 where it has none.
std::size_t scale_of_rows(const Problem& product) {
  const OpKind op = product.op->kind;
  const std::size_t operand = op == OpKind::scaled_mm ? 2 : op == OpKind::grouped_linear ? 4 : 0;
  return product.has(operand) ? operand : 0;
}

}  // namespace

bool quantizes_rows(OpKind op) {
  return op == OpKind::dynamic_quant || op == OpKind::rms_norm_quant || op == OpKind::add_rms_norm_quant ||
         op == OpKind::silu_and_mul_quant;
}

Decline declines_quantized(const Region& region) {
  using enum op::dynamic_quant::Operand;
  const RegionNode& anchor = anchor_of(region);
  const Problem& last = region.nodes[static_cast<std::size_t>(region.anchor) - 1].problem;
  const std::size_t scale = scale_of_rows(anchor.problem);
  const auto read = [&](const RegionPlace& place) {
    return std::ranges::find(region.results, place) != region.results.end();
  };
  if (anchor.inputs[0] != RegionInput::inside(static_cast<std::size_t>(region.anchor) - 1, 0, Rounding::strict))
    return "the product reads something else";
  if (read(source_of(anchor.inputs[0]))) return "the quantized rows are read elsewhere, too";
  for (std::size_t i = 1; i < anchor.inputs.size(); ++i) {
    if (!anchor.inputs[i].is_inside()) continue;
    if (i != scale) return fmt::format("the product reads its {} inside", anchor.problem.input_name(i));
    if (anchor.inputs[i].index != region.anchor - 1) return "the scales of rows are made by another node";
    if (read(source_of(anchor.inputs[i]))) return "the scales of rows are read elsewhere, too";
    const Dims &scales = anchor.problem.input(i).dims, &x = anchor.problem.input(0).dims;
    if (scales.size() + 1 < x.size() || !std::equal(x.begin(), x.end() - 1, scales.begin()))
      return "all rows have one scale";
  }
  if (last.op->kind == OpKind::dynamic_quant &&
      (last.has(group_index) || (last.has(smooth) && last.input(smooth).rank() > 1)))
    return "its factors go by groups of rows";
  return std::nullopt;
}

ProloguePart::ProloguePart(const Region& whole) {
  PartBeforeAnchor part = part_before_anchor(whole);
  struct Result {
    RegionPlace place;
    std::size_t of_whole;
  };
  const RegionPlace rows = part.region.results.front();
  std::vector<Result> made{{rows, made_rows}};
  const RegionInput& scale = anchor_of(whole).inputs[scale_of_rows(anchor_of(whole).problem)];
  if (scale.is_inside() && source_of(scale) != rows) made.push_back({source_of(scale), made_scales});
  for (std::size_t r = 0; r < part.results.size(); ++r) {
    const RegionPlace& place = part.region.results[r + 1];
    if (place == rows) copies.push_back(part.results[r]);
    else made.push_back({place, part.results[r]});
  }
  if (part.region.is_single())
    std::ranges::sort(made, {}, [](const Result& result) { return result.place.index; });  // the schema's order
  region = std::move(part.region);
  operands = std::move(part.operands);
  region.results.clear();
  for (const Result& result : made) {
    region.results.push_back(result.place);
    results.push_back(result.of_whole);
  }
}

}  // namespace cermet::cpu

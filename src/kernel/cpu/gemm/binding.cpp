#include "kernel/cpu/gemm/binding.hpp"

#include "kernel/cpu/gemm/panels.hpp"
#include "op/operands.hpp"
#include "op/products.hpp"

namespace cermet::cpu {
namespace {

Region without_norm(const Region& region) { return NormAfter::ends(region) ? NormAfter::without(region) : region; }

BoundTileProgram bind_epilogue(const Region& region) {
  TileProgramOrReason made = product_epilogue(region, product_loops(region));
  CERMET_ASSERT(!made.reason);
  std::vector<std::size_t> grouped;
  if (region.problem().op->kind == OpKind::grouped_linear)
    for (const std::size_t input : {op::grouped_linear::bias, op::grouped_linear::w_scale})
      if (const auto operand = region.operand_of(input)) grouped.push_back(*operand);
  return BoundTileProgram(made.program, grouped);
}

}  // namespace

AnchorOperands::AnchorOperands(const Region& region) {
  constexpr std::size_t none = std::size_t(-1);
  for (std::size_t i = 0; i < region.problem().inputs.size(); ++i)
    places_.push_back(region.operand_of(i).value_or(none));
}

ProductCut::ProductCut(const Config& config)
    : panel_bytes(config.find("panels_kib").value_or(usual_panel_bytes >> 10) << 10),
      row_shares(config.find("row_shares").value_or(1) != 0) {}

ConfigSpace ProductCut::space(const Region& region, bool shares) {
  constexpr std::int64_t one_cut_rows = 56;  // which take every panel together
  ConfigSpace space;
  if (max_rows(region.problem(), 0) <= one_cut_rows) return space;
  space.add(ConfigField::powers("panels_kib", 32, 2048).with_usual(usual_panel_bytes >> 10));
  if (shares) space.add(ConfigField::set("row_shares", {0, 1}).with_usual(1));
  return space;
}

ProductLoops product_loops(const Region& region) {
  const Dim& columns = region.problem().outputs[0].dims.back();
  const OpKind op = region.problem().op->kind;
  const bool stacked = op == OpKind::linear || op == OpKind::scaled_mm || op == OpKind::grouped_linear;
  const bool halves = stacked && columns.is_constant() && columns.constant() % (2 * panel_columns) == 0;
  return {.gated = halves, .row_scale = true, .repeats = true};
}

ProductBinding::ProductBinding(const Region& region, const Config& config, Before before)
    : operands(region),
      prologue(before == Before::own ? Prologue() : Prologue(region)),
      epilogue(bind_epilogue(without_norm(region))),
      norm(region),
      result(epilogue.first_result()),
      gated(is_gated(region)),
      cut(config) {}

TensorView ProductBinding::split_weight(TensorView& w, std::int64_t second) {
  w.shape[0] /= 2;
  TensorView half = w;
  half.data = w.as<std::byte>() + second;
  return half;
}

double ProductBinding::gate_seconds(const Region& region, const DeviceLimits& limits) {
  constexpr double operations = 120;  // 1.2 ns of a thread for each element of the result, which does so many meanwhile
  const Problem& p = region.problem();
  if (p.op->kind != OpKind::grouped_linear || !is_gated(region)) return 0;
  return operations * static_cast<double>(max_rows(p, 0)) * static_cast<double>(p.size(1, 1)) / 2 /
         limits.f32_operations_per_second;
}

}  // namespace cermet::cpu

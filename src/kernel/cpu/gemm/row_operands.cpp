#include "kernel/cpu/gemm/row_operands.hpp"

#include <algorithm>

#include "kernel/step_builder.hpp"

namespace cermet::cpu {
namespace {

bool is_one_row(const Dims& operand) {
  return operand.size() < 2 ||
         std::all_of(operand.begin(), operand.end() - 1, [](const Dim& d) { return d == Dim(1); });
}

}  // namespace

bool is_by_row(const Region& region, std::size_t operand, const Dims& rows) {
  const Dims& dims = region.operand_type(operand).dims;
  const std::size_t leading = goes_by_token(region, operand) && dims.size() == 1 ? 1 : dims.size() - 1;
  return !dims.empty() && Dims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(leading)) == rows;
}

bool is_by_row_and_column(const Region& region, std::size_t operand) {
  if (!region.has(operand) || region.operand_type(operand).rank() != 1 || !goes_by_token(region, operand)) return false;
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const Region node(region.nodes[n].problem);
    for (std::size_t i = 0; i < region.nodes[n].problem.inputs.size(); ++i)
      if (region.operand_of(n, i) == operand && !goes_by_token(node, i)) return true;
  }
  return false;
}

bool repeats_along_rows(const Dims& operand, const Dims& rows) {
  if (operand.empty()) return false;
  const auto first = std::find_if(operand.begin(), operand.end() - 1, [](const Dim& d) { return d != Dim(1); });
  const auto count = operand.end() - 1 - first;
  return count > 0 && count <= static_cast<std::ptrdiff_t>(rows.size()) &&
         std::equal(first, operand.end() - 1, rows.end() - count);
}

GatheredAs::GatheredAs(const Region& region, std::size_t operand) {
  for (std::size_t n = 0; n < region.nodes.size(); ++n)
    for (std::size_t i = 0; i < region.nodes[n].problem.inputs.size(); ++i) {
      if (region.operand_of(n, i) != operand) continue;
      const bool gathers = region.nodes[n].problem.op->kind == OpKind::gather;
      (!gathers ? other : i == 0 ? rows : index) = true;
    }
}

Decline declines_part(const Region& region, std::size_t operand, const Dims& rows) {
  if (!region.has(operand)) return std::nullopt;
  const Dims& dims = region.operand_type(operand).dims;
  const GatheredAs as(region, operand);
  if (as.rows + as.index + as.other > 1) return "an operand is gathered and read";
  if (as.rows || goes_by_token(region, operand)) return std::nullopt;
  if (as.index) return dims == rows ? std::nullopt : Decline("an index is not one for each row");
  return repeats_along_rows(dims, rows) || is_one_row(dims) ? std::nullopt : Decline("an operand repeats among rows");
}

}  // namespace cermet::cpu

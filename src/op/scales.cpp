#include "op/scales.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace cermet {
namespace {

/// Of any rank: torch has one scale as [1, 1].
bool is_one_value(const Dims& scale) {
  return std::ranges::all_of(scale, [](const Dim& d) { return d == Dim(1); });
}

Dims with(Dims dims, const Dim& last) {
  dims.push_back(last);
  return dims;
}

}  // namespace

std::optional<ScaleGrid> row_scale_grid(const Dims& scale, const Dims& rows, const Dim& reduction) {
  if (is_one_value(scale)) return ScaleGrid{};
  if (scale == rows || scale == with(rows, 1)) return ScaleGrid{1, 1};
  if (!reduction.is_constant()) return std::nullopt;
  const std::int64_t blocks = div_up(reduction.constant(), scale_block);
  return scale == with(rows, blocks) ? std::optional(ScaleGrid{1, blocks}) : std::nullopt;
}

std::optional<ScaleGrid> column_scale_grid(const Dims& scale, const Dim& columns, const Dim& reduction) {
  if (is_one_value(scale)) return ScaleGrid{};
  if (scale == Dims{columns} || scale == Dims{columns, 1}) return ScaleGrid{1, 1};
  if (reduction.is_constant() && columns.is_constant()) {
    const std::int64_t blocks = div_up(reduction.constant(), scale_block);
    if (scale == Dims{div_up(columns.constant(), scale_block), blocks}) return ScaleGrid{scale_block, blocks};
  }
  return scale == Dims{1, columns} ? std::optional(ScaleGrid{1, 1}) : std::nullopt;
}

std::optional<ScaleGrid> stacked_scale_grid(const Dims& scale, const Dims& weights) {
  if (scale.empty() || scale[0] != weights[0]) return std::nullopt;
  return column_scale_grid({scale.begin() + 1, scale.end()}, weights[1], weights[2]);
}

void check_quantized_pair(const Problem& problem, std::size_t left, std::size_t right) {
  const bool integers = problem.input(left).dtype == DType::i8;
  if ((problem.input(right).dtype == DType::i8) != integers)
    bad_operand(problem, right,
                integers ? "i8, because the other operand is" : "f8_e4m3 or f8_e5m2, because the other operand is",
                name_of(problem.input(right).dtype));
}

}  // namespace cermet

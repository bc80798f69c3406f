// What of a region's operands is for some of its rows, when they are made a block at a time.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// Whether an operand has a part for each row: as its leading dimensions, or as the only ones of a scale of tokens.
bool is_by_row(const Region& region, std::size_t operand, const Dims& rows);
/// Whether one node reads an operand as a scale of tokens and another as a value for each column.
bool is_by_row_and_column(const Region& region, std::size_t operand);
/// Whether an operand has a row for each, or for each of the last dimensions of rows, among the others of which it
/// repeats.
bool repeats_along_rows(const Dims& operand, const Dims& rows);

/// How a region's gathers read an operand.
struct GatheredAs {
  bool rows = false, index = false, other = false;
  GatheredAs(const Region& region, std::size_t operand);
};

/// Why an operand of a region of gathers, norms and elementwise nodes has no part for a block of rows.
Decline declines_part(const Region& region, std::size_t operand, const Dims& rows);

}  // namespace cermet::cpu

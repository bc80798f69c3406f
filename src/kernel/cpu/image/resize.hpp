// resize on the CPU: tables of what is read along each resized axis, made at launch, and rows of the last axis.
#pragma once

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/kernel.hpp"
#include "op/resize.hpp"

namespace cermet::cpu {

/// Elements past the end of tables and rows, so that whole vectors may be read: the widest vector of any instruction
/// set.
inline constexpr std::int64_t resize_slack = 64;

/// Taps of one axis: those of element i at [k * pitch + i].
struct ResizeTable {
  const std::int32_t* place = nullptr;
  const float* weight = nullptr;
  const std::uint8_t* outside = nullptr;  ///< whether element i is extrapolated
  std::int64_t pitch = 0;
  int taps = 1;
};

/// Tables in the workspace, and rows of the result.
struct ResizeRun {
  ResizePlan plan;
  TensorView x, y;
  std::array<ResizeTable, Shape::max_rank> tables{};
  std::byte* row_memory = nullptr;  ///< of the workspace, after the tables
  int last = 0;                     ///< the last axis; rows lie along it, one for each element of the axis before it
  std::int64_t lines = 1;           ///< positions along the axes before those two

  ResizeRun(const LaunchArgs& args, const ResizeAttributes& attributes);
  /// Bytes of the tables.
  static std::int64_t table_bytes(const ResizePlan& plan);
  bool is_resized(int axis) const { return axis >= 0 && plan.resized[static_cast<std::size_t>(axis)]; }
  const ResizeTable& table(int axis) const { return tables[static_cast<std::size_t>(std::max(axis, 0))]; }
  std::int64_t length() const { return last >= 0 ? y.shape[last] : 1; }    ///< of a row
  std::int64_t rows() const { return last >= 1 ? y.shape[last - 1] : 1; }  ///< of a line
  /// Finds a line's coordinates along the first axes and its offset in y; returns whether it is extrapolated.
  bool locate(std::int64_t line, Shape& at, std::int64_t& to) const;
  /// Lines of x behind a line of y, all combinations of the taps of its axes.
  std::int64_t combinations() const;
  /// Offset in x of combination t, and its weight.
  std::int64_t from(const Shape& at, std::int64_t t, float& weight) const;
  /// Offset in a line of x of tap k of row j, and its weight.
  std::int64_t row(std::int64_t j, int k, float& weight) const {
    if (last < 1) return weight = 1, 0;
    const ResizeTable& rows = table(last - 1);
    if (!is_resized(last - 1)) return weight = 1, j * x.strides[last - 1];
    weight = rows.weight[k * rows.pitch + j];
    return rows.place[k * rows.pitch + j] * x.strides[last - 1];
  }
  bool row_is_outside(std::int64_t j) const { return is_resized(last - 1) && table(last - 1).outside[j]; }
  std::int64_t row_to(std::int64_t j) const { return last < 1 ? 0 : j * y.strides[last - 1]; }
};

void resize_weighted(const LaunchArgs& args, const ResizeAttributes& attributes);
std::int64_t resize_workspace(const Problem& p, int threads);

}  // namespace cermet::cpu

// What the host halves of row kernels with quantized results share.
#pragma once

#include "kernel/cuda/device/rowwise/quantize_row.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"
#include "op/quantization.hpp"

namespace cermet::cuda {

/// How a kernel's rows are quantized.
struct RowCodes {
  static constexpr std::size_t none = 63;
  CodeFormat format;
  bool groups = false;                      ///< scales have a dimension of groups
  std::size_t scale = none, offset = none;  ///< operands of a static quantization
  bool divide = true;                       ///< static: by the scale
  bool exact = false;

  bool is_static(const Problem& p) const { return p.has(scale); }
  /// Columns of a row that share a scale; 0: all of them.
  std::int64_t group(const Problem& p, std::int64_t columns) const;
  /// The device's Quantization, "{.format = {..}, ..}".
  std::string text(const Problem& p, std::int64_t columns) const;
};

/// Rows of a launch with quantized results: operands of the kernel's own, then quantized values, scales and zero
/// points, which follow each other from result `first_scale` on.
class CodeWalk {
 public:
  CodeWalk(const RowCodes& codes, const LaunchArgs& args, std::initializer_list<RowView> own, std::size_t first_scale);

  const RowWalk& walk() const { return *walk_; }
  QuantizedRows out(std::int64_t launch) const;
  /// Whether the kernel's own operands of whole rows, the quantized values and the vectors can be read `width` elements
  /// at a time.
  bool aligned(int width) const;

 private:
  std::optional<RowWalk> walk_;
  std::array<RowView, 8> views_{};
  std::size_t own_, count_;
  const LaunchArgs* args_;
  QuantizedRows given_{};
};

}  // namespace cermet::cuda

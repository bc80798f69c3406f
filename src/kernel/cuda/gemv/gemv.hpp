// Host half of GEMVs, matrix products of few rows (device/gemv): what is compiled for a problem, and how a launch
// divides it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/cuda/device/gemv/params.hpp"
#include "kernel/cuda/device/gemv/shape.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/gemv/chosen.hpp"
#include "kernel/cuda/gemv/rotation.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

/// linear, dual_linear, scaled_mm or grouped_linear with few rows, with what makes the row before it (front.hpp), and a
/// gated activation of its halves or rope_and_cache (rotation.hpp) after it.
class FewRows {
 public:
  /// Without a configuration weights stream through shared memory where the device and their rows allow it.
  /// Compact: with weights in that layout (compact.hpp).
  explicit FewRows(const Region& region, const Config& config = {}, bool compact = false);

  static Decline declines(const Region& region);
  /// The same for regions with something before the product.
  static Decline declines_front(const Region& region);
  /// Of weights that are not held in 12 bits, or cannot be.
  static Decline declines_compact(const Region& region);
  static std::vector<Config> configs(const Region& region, bool compact = false);
  /// Those, with other numbers of warps and, where weights stream, of bytes in shared memory.
  static ConfigSpace space(const Region& region, bool compact = false);
  /// Modelled seconds at the symbols' maximum.
  double seconds(const Region& region, const DeviceLimits& limits) const;
  const std::vector<Program>& programs() const { return programs_; }
  /// Any number of rows, though a weight is read once for each. `first_program`: where programs() begin in the kernel's
  /// list.
  void launch(const LaunchArgs& args, std::size_t first_program = 0) const;

  static int usual_in_flight(const Region& region);

 private:
  std::string prologue(const Region& region, bool aligned) const;
  /// Blocks that must fit on an SM, where each of `threads` threads holds this many registers of a row.
  int min_blocks(int threads, int held) const;
  bool is_short(const Region& region) const;
  gemv::RowShape shape(const Region& region) const;
  /// Registers of a thread that hold its part of a row.
  int held(const Region& region) const;
  void set_weights(const LaunchArgs& args, gemv::Params& p) const;
  void set_scales(const LaunchArgs& args, gemv::Params& p) const;
  void set_route(const LaunchArgs& args, gemv::Params& p) const;
  void run(const LaunchArgs& args, const gemv::RotatedParams& p, std::size_t first_program) const;
  std::string row_task(const Region& region, bool aligned) const;

  bool compact_;
  std::optional<RotatedHeads> heads_;
  Product product_;
  int norm_weight_ = -1,
      delta_ = -1;  ///< of the normalization before the product, which reads x; the second operand of its sum
  int sum_ = -1, normed_ = -1;                        ///< the results that hold the sum and the normalized row
  int ids_ = -1, sorted_offsets_ = -1, row_of_ = -1;  ///< of the sorting before the product: operand, and results
  std::optional<ChosenExperts> chosen_;               ///< where they are chosen before it
  float epsilon_ = 0, norm_offset_ = 0;
  DType offsets_ = DType::i32;
  std::int64_t row_bytes_;  ///< of a weight
  bool constant_;           ///< whether the weights are known beforehand
  bool stream_;
  int ring_bytes_, warps_;  ///< as RowShape takes them
  int in_flight_;           ///< stages whose bytes are on their way at most; 0: all
  bool aligned_;            ///< whether the first program takes aligned rows only, and the second one others
  std::vector<Program> programs_;
};

}  // namespace cermet::cuda

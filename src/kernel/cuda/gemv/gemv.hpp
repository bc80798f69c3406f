// Host half of GEMVs (device/gemv): what is compiled for a problem, and how a launch divides it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/cuda/device/gemv/gemv.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/gemv/prologue.hpp"
#include "kernel/cuda/gemv/rotation.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

/// linear, dual_linear, scaled_mm or grouped_linear with few rows, with a prologue before it (prologue.hpp), and a
/// gated activation of its halves or rope_and_cache (rotation.hpp) after it.
class Gemv {
 public:
  /// Without a configuration weights stream through shared memory where the device and their rows allow it.
  /// Compact: with weights in that layout (compact.hpp).
  explicit Gemv(const Region& region, const Config& config = {}, bool compact = false);

  static Decline declines(const Region& region);
  /// The same for regions with a prologue.
  static Decline declines_prologue(const Region& region);
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
  /// Blocks that must fit on an SM.
  int min_blocks() const;
  /// Whether 72 registers are enough.
  bool is_short() const;
  gemv::Shape shape() const;
  /// Registers of a thread that keep its part of a row.
  int row_registers() const;
  void set_weights(const LaunchArgs& args, gemv::Params& p) const;
  void set_scales(const LaunchArgs& args, gemv::Params& p) const;
  void set_routing(const LaunchArgs& args, gemv::Params& p) const;
  void run(const LaunchArgs& args, const rotation::WithOperands<gemv::Params>& p, std::size_t first_program) const;
  Program program(const Region& region, bool aligned) const;

  std::optional<RotatedHeads> heads_;
  Product product_;
  gemv::Config config_;                ///< but for what depends on the program
  std::int64_t row_bytes_;             ///< of a weight
  bool constant_;                      ///< whether the weights are known beforehand
  bool aligned_ = false;               ///< whether the first program takes aligned rows only, and the second one others
  int norm_weight_ = -1, delta_ = -1;  ///< of the norm before the product; the second operand of its sum
  int sum_ = -1, normed_ = -1;         ///< the results that hold the sum and the normalized row
  int ids_ = -1, sorted_offsets_ = -1, row_of_ = -1;  ///< of the sorting before the product: operand, and results
  std::optional<GatingOperands> gating_;              ///< before the sorting
  float epsilon_ = 0, norm_offset_ = 0;
  std::vector<Program> programs_;
};

}  // namespace cermet::cuda

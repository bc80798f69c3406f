// A launch of a kernel from outside: sizes, strides and addresses of the operands at hand, its grid, and its parameters
// as bytes. Nothing here allocates.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "device/stream.hpp"
#include "foreign/match.hpp"
#include "kernel/kernel.hpp"

namespace cermet::foreign {

/// What is known of a launch when a kernel is bound.
class LaunchPlan {
 public:
  LaunchPlan(const Manifest& manifest, const Region& region, const Config& config);

  /// Threads of a block, clusters and dynamic shared memory; blocks are not known yet.
  const LaunchShape& shape() const { return shape_; }
  /// Bytes of a parameter list: each parameter is aligned to its size, as compilers lay them out.
  std::span<const std::uint32_t> offsets() const { return {offsets_.data(), parameters_}; }
  std::uint32_t parameter_bytes() const { return bytes_; }
  /// At the symbols' maximum.
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  const Manifest& manifest() const { return *manifest_; }
  /// Operand or result of the manifest in a launch.
  const TensorView& view(std::size_t operand, const LaunchArgs& args) const;

 private:
  friend class LaunchValues;
  /// Where a dimension's size is read from: the first operand that has it.
  struct DimSource {
    std::int32_t operand = -1;  ///< of the manifest; -1: none is given
    std::int32_t axis = 0;      ///< of the pattern
  };

  const Manifest* manifest_;
  std::array<std::int64_t, Manifest::most_variables>
      values_{};  ///< of variables that do not change from launch to launch
  std::array<double, Manifest::most_variables> reals_{};
  std::array<DimSource, Manifest::most_variables> sources_{};
  std::array<std::uint32_t, Manifest::most_parameters + 2> offsets_{};
  std::size_t parameters_ = 0;
  std::uint32_t bytes_ = 0;
  std::int64_t workspace_bytes_ = 0;
  LaunchShape shape_;
};

/// The values of all variables for given operands.
class LaunchValues {
 public:
  static constexpr std::size_t most_bytes = 8 * (Manifest::most_parameters + 2);

  LaunchValues(const LaunchPlan& plan, const LaunchArgs& args);

  /// The first operand whose strides or address the code does not take; nothing where it takes all.
  const ManifestOperand* misfit() const { return misfit_; }
  /// Why, for messages.
  std::string misfit_text() const;
  /// Sets the grid; false where it has no blocks, so that there is nothing to launch. Throws Error for one that no GPU
  /// has.
  bool set_grid(LaunchShape& shape) const;
  /// Writes plan.parameter_bytes() bytes.
  void pack(std::span<std::byte> to) const;

 private:
  void read(std::size_t i);
  std::int64_t leading_stride(const TensorView& view, int leads) const;
  bool is_dense(const TensorView& view) const;
  std::span<const std::int64_t> values() const { return {values_.data(), plan_.manifest().variables.size()}; }

  const LaunchPlan& plan_;
  const LaunchArgs& args_;
  const ManifestOperand* misfit_ = nullptr;
  std::array<std::int64_t, Manifest::most_variables> values_;
};

}  // namespace cermet::foreign

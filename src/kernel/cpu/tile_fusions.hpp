// Which steps of a tile program one function computes together: passes over the tile that are worth saving. The bits are those of the steps one by one.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernel/cpu/tile_steps.hpp"
#include "kernel/tile_program.hpp"

namespace cermet::cpu {

class TileFusions {
 public:
  using Source = TileProgram::Source;
  using Step = TileProgram::Step;
  /// A function in place of a step and of those before it that it takes in.
  struct Fused {
    TileFunction function;
    std::array<Source, 3> operands;
  };

  /// `value`: given beside the results.
  TileFusions(const TileProgram& program, std::optional<Source> value);

  const std::optional<Fused>& of(std::size_t step) const { return fused_[step]; }
  /// Taken in by its only reader.
  bool skips(std::size_t step) const { return skipped_[step]; }
  /// The last step that reads a step; the number of steps for results.
  std::size_t last_reader(std::size_t step) const { return last_[step]; }
  /// The sum that is stored as it is made; null where the value is none.
  const Step* stored_sum(const TileProgram::Result& result) const { return only(result.value, OpKind::add); }

 private:
  void note(const Source& source, std::size_t reader);
  const Step* only(const Source& source, OpKind function, bool integer = false) const;
  void skip(const Source& source) { skipped_[static_cast<std::size_t>(source.index)] = true; }
  void keep_until(const Source& source, std::size_t reader);
  bool fuse_scales(std::size_t s);
  bool fuse_factors(std::size_t s);
  bool fuse_function_of_sum(std::size_t s);

  const TileProgram& program_;
  std::vector<int> readers_;       ///< of steps: how many read it
  std::vector<std::size_t> last_;  ///< of steps
  std::vector<bool> skipped_;      ///< of steps
  std::vector<std::optional<Fused>> fused_;
};

}  // namespace cermet::cpu

// Which steps of a tile program one function computes together: passes over the tile that are worth saving. The bits
// are those of the steps one by one.
#pragma once

#include <optional>
#include <span>
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
    std::vector<Source> operands;
  };
  /// A store in place of the steps that make what it stores.
  struct FusedStore {
    TileStore function;
    std::vector<Source> operands;
  };

  /// `value`: given beside the results.
  TileFusions(const TileProgram& program, std::optional<Source> value);

  const std::optional<Fused>& of(std::size_t step) const { return fused_[step]; }
  /// Taken in by its only reader.
  bool skips(std::size_t step) const { return skipped_[step]; }
  /// The last step that reads a step; the number of steps for results.
  std::size_t last_reader(std::size_t step) const { return last_[step]; }
  /// What stores a result; the function is null where float32 is not stored as its type.
  const FusedStore& store(std::size_t result) const { return stores_[result]; }

 private:
  void note(const Source& source, std::size_t reader);
  const Step* only(const Source& source, OpKind function, bool integer = false, DType round = DType::f32) const;
  void skip(const Source& source) { skipped_[static_cast<std::size_t>(source.index)] = true; }
  void keep_until(const Source& source, std::size_t reader);
  void take(std::size_t step, TileFunction function, std::vector<Source> operands, std::span<const Source> skipped);
  FusedStore store_of(const TileProgram::Result& result);
  struct Quantization {
    std::vector<Source> operands;  ///< x, or two that are added; scale, zero point
    std::vector<Source> skipped;   ///< steps
    bool of_sum;
  };
  std::optional<Quantization> quantization(const Source& value) const;
  bool fuse_requantize(std::size_t s);
  bool fuse_scales(std::size_t s);
  bool fuse_factors(std::size_t s);
  bool fuse_function_of_sum(std::size_t s);

  const TileProgram& program_;
  std::vector<int> readers_;       ///< of steps: how many read it
  std::vector<std::size_t> last_;  ///< of steps
  std::vector<bool> skipped_;      ///< of steps
  std::vector<std::optional<Fused>> fused_;
  std::vector<FusedStore> stores_;  ///< of results
};

}  // namespace cermet::cpu

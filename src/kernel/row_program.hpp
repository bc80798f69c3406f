// What a kernel computes along rows (of the last dimension): steps at each place, between reductions of whole rows.
#pragma once

#include "kernel/tile_program.hpp"

namespace cermet {

struct RowProgram {
  struct Reduction {
    enum class Kind : std::uint8_t {
      sum,
      mean,
      max,           ///< NaN where any is
      inverse_root,  ///< 1 / sqrt(mean of squares + eps)
    };
    Kind kind = Kind::sum;
    TileProgram::Source value;  ///< may read what earlier reductions gave
    float eps = 0;
  };
  /// What quantizes rows with scales of their own: dynamic_quant at the end of the region, or an operator of which it
  /// is a part.
  struct Quantization {
    std::size_t node = 0;  ///< whose attributes give the format
    TileProgram::Source value;
    std::vector<std::size_t> results;  ///< of the region: values, scales, and zero points where there are
  };

  Dims dims;         ///< [.., columns]
  int trailing = 1;  ///< dimensions of a row: more than one only of a norm alone
  TileProgram tile;  ///< input i: what reduction i gave. Results extend over places, or over rows where their last
                     ///< dimension is 1
  std::vector<Reduction> reductions;
  /// What the first operator along rows reads, or without reductions the one value that is stored or quantized: kernels
  /// keep it between passes.
  TileProgram::Source row;
  std::optional<Quantization> quantization;
  std::optional<std::size_t> overwritten;  ///< the extra whose memory a result that is `row` may share
  std::optional<std::size_t>
      gate;  ///< the silu of an operator that is a gate with its quantization: not bit for bit that of silu alone
  std::vector<bool> row_steps;       ///< which steps are the same at all places of a row
  std::vector<bool> results_by_row;  ///< which of the tile's results have one value for each row

  /// Whether a value is the same at all places of a row.
  bool goes_by_row(const TileProgram::Source& source) const;
  /// Which steps a value takes, without those that lead to `known` ones; those of rows are known.
  std::vector<bool> steps_behind(std::span<const TileProgram::Source> values,
                                 std::span<const TileProgram::Source> known) const;
  /// Which extras those steps read, or the values themselves.
  std::vector<bool> extras_of(const std::vector<bool>& steps, std::span<const TileProgram::Source> values,
                              std::span<const TileProgram::Source> known) const;
  std::string to_string() const;  ///< "in0 = mean(x0); in1 = inverse_root(s0, 1e-05); s0 = sub(x0, in0); .."
};

struct RowProgramOrReason {
  RowProgram program;
  std::optional<std::string> reason;
};

/// A region of norms, softmax, reductions of the last dimension and elementwise operators, in any order, perhaps with
/// dynamic_quant at its end; or one of the operators that are a norm or a gate with its quantization.
RowProgramOrReason row_program(const Region& region);

}  // namespace cermet

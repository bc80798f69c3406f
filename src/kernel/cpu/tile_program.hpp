// Tile programs on the CPU: interpreted a tile at a time, over values that stay in L1.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/tile_steps.hpp"
#include "kernel/kernel.hpp"
#include "kernel/tile_program.hpp"

namespace cermet::cpu {

/// A program as the interpreter runs it: a flat list of functions of the instruction set that is active where it is
/// made, when a kernel is bound.
class BoundTileProgram {
 public:
  /// Of a tile: rows times columns, which count as `least_columns` at least.
  static constexpr std::size_t most_values = 512, least_columns = 32;
  /// Of a program.
  static constexpr std::size_t most_inputs = 8, most_extras = 24, most_results = 4, most_slots = 12, most_numbers = 4,
                               most_operands = 6;

  /// Why a program cannot be run, beside its results giving a value that is not stored.
  static Decline declines(const TileProgram& program, std::optional<TileProgram::Source> value = {});

  BoundTileProgram() = default;
  /// `grouped`: operands of the region whose first dimension counts the groups of a grouped product.
  explicit BoundTileProgram(const TileProgram& program, std::span<const std::size_t> grouped = {},
                            std::optional<TileProgram::Source> value = {});

  /// Which of the region's results the program stores first.
  std::size_t first_result() const { return stores_.front().result; }

 private:
  friend class TileRun;
  friend class TileProgramCompiler;
  struct Extra {
    TileProgram::Extra what;
    bool grouped;
    RunConverter convert;  ///< to float32, or a copy
    std::uint8_t slot;     ///< where a tile of it is expanded; none is needed for a scalar
  };
  /// Operands are places in a list of values: inputs, extras, numbers, slots.
  struct Instruction {
    TileFunction function;
    std::array<std::uint8_t, most_operands> operands;
    std::uint8_t operand_count, slot;
    std::array<float, 2> parameters;
  };
  struct Store {
    TileStore function;
    std::array<std::uint8_t, most_operands> operands;
    std::uint8_t operand_count;
    std::size_t result;
  };
  using Number = std::array<float, TileOperand::repeated>;

  std::size_t inputs_ = 0;
  std::size_t slots_ = 0;  ///< the first ones are for extras
  std::vector<Extra> extras_;
  std::vector<Number> numbers_;
  std::vector<Instruction> instructions_;
  std::vector<Store> stores_;
  bool only_stores_ = false;           ///< one result, which is an input
  bool only_adds_ = false;             ///< one result: the first input and an extra, as a product with a bias
  bool ends_in_store_ = false;         ///< one result, of float32: what the last instruction makes
  std::optional<std::uint8_t> value_;  ///< operand that is given and not stored
  bool ends_in_value_ = false;         ///< it is what the last instruction makes, and nothing else reads it
};

/// A program with the operands and results of one launch; the results have the same dimensions. Threads share it.
class TileRun {
 public:
  /// Tiles of `result`; by default, of the first result.
  TileRun(const BoundTileProgram& program, const LaunchArgs& args)
      : TileRun(program, args, args.outputs[program.stores_[0].result].shape) {}
  TileRun(const BoundTileProgram& program, const LaunchArgs& args, const Shape& result);
  TileRun(const TileRun&) = delete;  // operands lie within
  /// Runs the program over a tile of its inputs and stores the results.
  void operator()(const TileOperand* inputs, const TileRange& range) const {
    if (program_.only_stores_)
      return program_.stores_[0].function(inputs + program_.stores_[0].operands[0], *results_[0], range);
    if (program_.only_adds_) return add_and_store(inputs, range);
    Memory memory;
    run(inputs, range, memory, nullptr);
  }

  /// What a program holds while it runs.
  struct Memory {
    alignas(64) float slots[BoundTileProgram::most_slots][BoundTileProgram::most_values];
  };
  /// The same for a program with a value that is not stored: where its tile is, one column after the other. It may be
  /// what `to` says, in `memory`, or where it was read.
  TileOperand value(const TileOperand* inputs, const TileRange& range, Memory& memory, const TileTarget& to) const;

 private:
  /// How a tile of an extra operand is had.
  enum class Form : std::uint8_t { repeated, columns_in_place, columns, other };
  struct ExtraView {
    Form form = Form::other;
    const TensorView* view = nullptr;
    std::optional<Rows> rows;     ///< of elements, and of one value for each row
    std::optional<Rows> indices;  ///< which of the rows is read, by row of the results
    bool wide_indices = false;    ///< i64
    std::int64_t element_bytes = 0, column_step = 0, group_step = 0;  ///< bytes; steps of one value for each column
    std::int64_t shared = 1;                                          ///< columns that share a value
    const std::byte* data = nullptr;                                  ///< of the first column
    alignas(64) std::array<float, TileOperand::repeated> scalar;
  };

  using Values = std::array<TileOperand, BoundTileProgram::most_inputs + BoundTileProgram::most_extras +
                                             BoundTileProgram::most_numbers + BoundTileProgram::most_slots>;
  Values run(const TileOperand* inputs, const TileRange& range, Memory& memory, const TileTarget* value) const;
  void add_and_store(const TileOperand* inputs, const TileRange& range) const;
  void look_at(std::size_t extra, const Shape& result);
  void look_at_columns(std::size_t extra, const Shape& result);
  TileOperand expand(std::size_t extra, const TileRange& range, float* to) const;
  void look_at_indices(std::size_t extra, const TensorView& indices, const Shape& result);
  const std::byte* row_of(std::size_t extra, std::int64_t row) const;
  TileOperand expand_columns(std::size_t extra, const TileRange& range, float* to) const;
  TileOperand expand_rows(std::size_t extra, const TileRange& range, float* to) const;
  TileOperand expand_elements(std::size_t extra, const TileRange& range, float* to) const;
  TileOperand expand_apart(std::size_t extra, const TileRange& range, float* to) const;

  const BoundTileProgram& program_;
  std::array<ExtraView, BoundTileProgram::most_extras> extras_;
  Values numbers_{};  ///< operands that are the same for every tile; others are filled in
  std::array<std::uint8_t, BoundTileProgram::most_extras> expanded_{};
  std::size_t expanded_count_ = 0;  ///< extras that are not numbers
  std::array<std::optional<Rows>, BoundTileProgram::most_results> results_;
  bool ends_in_place_ = false;  ///< the last instruction writes the result
};

}  // namespace cermet::cpu

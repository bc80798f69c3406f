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

/// A program as the interpreter runs it: a flat list of functions of the instruction set that is active where it is made, when a kernel is bound.
class BoundTileProgram {
 public:
  /// Of a tile: rows times columns, which count as `least_columns` at least.
  static constexpr std::size_t most_values = 512, least_columns = 32;
  /// Of a program.
  static constexpr std::size_t most_inputs = 4, most_extras = 12, most_results = 4, most_slots = 12, most_numbers = 4;

  /// Why a program cannot be run.
  static Decline declines(const TileProgram& program);

  BoundTileProgram() = default;
  /// `grouped`: operands of the region whose first dimension counts the groups of a grouped product.
  explicit BoundTileProgram(const TileProgram& program, std::span<const std::size_t> grouped = {});

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
    std::array<std::uint8_t, 3> operands;
    std::uint8_t slot;
    std::array<float, 2> parameters;
  };
  struct Store {
    TileStore function;
    std::array<std::uint8_t, 2> operands;
    std::size_t result;
  };
  using Number = std::array<float, TileOperand::repeated>;

  std::size_t inputs_ = 0;
  std::size_t slots_ = 0;  ///< the first ones are for extras
  std::vector<Extra> extras_;
  std::vector<Number> numbers_;
  std::vector<Instruction> instructions_;
  std::vector<Store> stores_;
  bool only_stores_ = false;    ///< one result, which is an input
  bool only_adds_ = false;      ///< one result: the first input and an extra, as a product with a bias
  bool ends_in_store_ = false;  ///< one result, of float32: what the last instruction makes
};

/// A program with the operands and results of one launch; the results have the same dimensions. Threads share it.
class TileRun {
 public:
  TileRun(const BoundTileProgram& program, const LaunchArgs& args);
  /// Runs the program over a tile of its inputs and stores the results.
  void operator()(const TileOperand* inputs, const TilePlace& place) const {
    if (program_.only_stores_) return program_.stores_[0].function(inputs + program_.stores_[0].operands[0], *results_[0], place);
    if (program_.only_adds_) return add_and_store(inputs, place);
    interpret(inputs, place);
  }

 private:
  /// How a tile of an extra operand is had.
  enum class Form : std::uint8_t { repeated, columns_in_place, columns, other };
  struct ExtraView {
    Form form = Form::other;
    const TensorView* view = nullptr;
    std::optional<Rows> rows;                                         ///< of elements, and of one value for each row
    std::int64_t element_bytes = 0, column_step = 0, group_step = 0;  ///< bytes; steps of one value for each column
    std::int64_t shared = 1;                                          ///< columns that share a value
    alignas(64) std::array<float, TileOperand::repeated> scalar;
  };

  void interpret(const TileOperand* inputs, const TilePlace& place) const;
  void add_and_store(const TileOperand* inputs, const TilePlace& place) const;
  void look_at(std::size_t extra, const Shape& result);
  void look_at_columns(std::size_t extra, const Shape& result);
  TileOperand expand(std::size_t extra, const TilePlace& place, float* to) const;
  TileOperand expand_columns(std::size_t extra, const TilePlace& place, float* to) const;
  TileOperand expand_rows(std::size_t extra, const TilePlace& place, float* to) const;
  TileOperand expand_elements(std::size_t extra, const TilePlace& place, float* to) const;

  const BoundTileProgram& program_;
  std::array<ExtraView, BoundTileProgram::most_extras> extras_;
  std::array<std::optional<Rows>, BoundTileProgram::most_results> results_;
  bool ends_in_place_ = false;  ///< the last instruction writes the result
};

}  // namespace cermet::cpu

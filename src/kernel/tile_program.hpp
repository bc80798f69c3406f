// What fills a hole of a kernel: arithmetic on the values at each place of a tile, as a list of steps. CUDA kernels
// compile it into their programs, CPU kernels run it over a tile in L1; the meaning of an epilogue is written once,
// here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "op/schema/region.hpp"

namespace cermet {

/// Steps are float32, or 32-bit integers that wrap; each is rounded by itself, never contracted with another, so that
/// every kernel gives the same bits.
struct TileProgram {
  /// How an operand extends over the rows and columns of a tile.
  enum class Extent : std::uint8_t {
    scalar,   ///< one value
    column,   ///< one for each column, alike for all rows
    row,      ///< one for each row
    element,  ///< one for each place
  };
  /// An operand of the region that the steps read, as float32 or as integers where it is i32.
  struct Extra {
    std::size_t operand = 0;
    DType dtype = DType::f32;
    Extent extent = Extent::element;
    std::int64_t first = 0, step = 1;  ///< column c of the tile is element first + c * step of the operand's row: half
                                       ///< of one, or every other element
    std::optional<std::size_t> index = {};  ///< the operand of the region whose integers say which row of this one is
                                            ///< read: gathered rows, of extent element
    bool takes_part() const { return first != 0 || step != 1; }
    friend bool operator==(const Extra&, const Extra&) = default;
  };
  struct Source {
    enum class From : std::uint8_t {
      input,  ///< what the kernel's loops give
      extra,
      step,    ///< the result of an earlier step
      number,  ///< a constant
    };
    From from = From::input;
    std::int32_t index = 0;
    float number = 0;
    friend bool operator==(const Source&, const Source&) = default;
  };
  struct Step {
    OpKind function = OpKind::add;  ///< an elementwise operator; cast: of an integer to float32, or none but its
                                    ///< rounding; where: b or c, as a is not 0 or is
    Source a, b;                    ///< b: of binary functions
    std::array<float, 2> parameters{};
    bool integer = false;         ///< on integers; a cast is not
    DType round = DType::f32;     ///< the type that the result is rounded to before it is read: that of a strict edge
    bool fused_multiply = false;  ///< add whose first operand is a product: both rounded once
    Source c{};                   ///< of where
    friend bool operator==(const Step&, const Step&) = default;
  };
  /// A result of the region: the value, rounded to its type. i8: to nearest, half to even, saturated; 0 for NaN.
  struct Result {
    std::size_t result = 0;
    Source value;
    DType dtype = DType::f32;
    friend bool operator==(const Result&, const Result&) = default;
  };

  std::vector<DType> inputs;  ///< f32 or i32
  std::vector<Extra> extras;
  std::vector<Step> steps;
  std::vector<Result> results;

  static bool is_binary(const Step& step);  ///< or where: it reads b
  static bool is_choice(const Step& step) { return step.function == OpKind::where; }
  bool is_integer(const Source& source) const;
  /// "s0 = add_i(in0, x0); s1 = cast(s0); s2 = mul(x1, s1); y0: bf16 = s2; x0: $4 i32 column; ..": alike for equal
  /// programs.
  std::string to_string() const;
  friend bool operator==(const TileProgram&, const TileProgram&) = default;
};

/// "in0", "x1", "s2", or the number.
std::string text_of(const TileProgram::Source& source);
std::string_view name_of(TileProgram::Extent extent);

/// A program, or why there is none.
struct TileProgramOrReason {
  TileProgram program;
  std::optional<std::string> reason;
};

/// What follows the sums of a product: its own scales, bias, activation, residual and zero points, then the elementwise
/// nodes after it in the region. inputs: the sums (i32 of int8 operands unless their scales cover blocks of the
/// reduction: such sums are scaled already, and float32), those of the second weight of a dual product, and where a
/// zero point is given the sums over the reduction of the weight's columns, i32. Order of rounding: semantics of
/// scaled_mm and dual_linear.
TileProgramOrReason product_epilogue(const Region& region);

/// What the loops of a kernel give an epilogue beside that; others decline regions that need it.
struct ProductLoops {
  bool gated = false;       ///< the sums of columns c and c + N / 2 together, so that a gate can follow (gate_after): a
                            ///< second input like the first
  bool row_scale = false;   ///< the scale of a row that is quantized before the product: the last input, f32
  bool combines = false;    ///< a token's rows are weighted and added after the epilogue, as moe_unpermute does
  std::size_t results = 1;  ///< most values that are stored for a place
  bool unweighted = false;  ///< of rows that no weight multiplies: the first input is what the product is there, 0
  bool repeats = false;     ///< operands are read that repeat among some rows, as a mask does for all heads
};
/// The node right after a product of stacked weights that multiplies half of its columns, through an activation, with
/// the other half: silu_and_mul or gelu_and_mul, the only reader. Nothing where there is none.
std::optional<std::size_t> gate_after(const Region& region);
TileProgramOrReason product_epilogue(const Region& region, ProductLoops loops);

/// A region of elementwise nodes alone (rows of pointwise.inc, cast, quantize, dequantize), whose results have the same
/// dimensions. No inputs; an operand that is broadcast among rows has the extent that it has within one.
TileProgramOrReason pointwise_program(const Region& region);

/// How an operand extends over results of these dimensions, the last of which are the columns; nothing where it does
/// not.
std::optional<TileProgram::Extent> extent_of(const Dims& operand, const Dims& result);
/// The same for an operand that broadcasts to the results: one that repeats among some rows is `element` or `row` by
/// its last dimension.
std::optional<TileProgram::Extent> broadcast_extent_of(const Dims& operand, const Dims& result);

}  // namespace cermet

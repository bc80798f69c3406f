// Turns the elementwise nodes of a region into steps of a tile program: what follows a product, a region of such nodes
// alone, and the rows of a reduction are built with it.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "kernel/tile_program.hpp"

namespace cermet {

class StepBuilder {
 public:
  using Extent = TileProgram::Extent;
  using Source = TileProgram::Source;
  /// How dimensions extend over the tile; nothing where they do not.
  using ExtentOf = std::function<std::optional<Extent>(const Dims&)>;

  /// place: what reasons say about where a node stands, " after linear".
  StepBuilder(const Region& region, ExtentOf extent_of, std::string place = {})
      : region_(region), extent_of_(std::move(extent_of)), place_(std::move(place)) {}

  const Region& region() const { return region_; }
  TileProgram& program() { return program_; }
  const std::optional<std::string>& reason() const { return reason_; }

  Source input(DType dtype);
  Source add(OpKind function, Source a, Source b = {}, bool integer = false);
  /// Operand `input` of a node, which comes from outside, from element `first` of its rows on.
  Source extra(std::size_t node, std::size_t input, Extent extent, std::int64_t first = 0, std::int64_t step = 1);
  static Source number(float value) { return {Source::From::number, 0, value}; }

  /// What result `output` of a node is.
  void set(std::size_t node, std::size_t output, Source value) { values_[{node, output}] = value; }
  std::optional<Source> value(std::size_t node, std::size_t output = 0) const;
  /// Whether a node reads the value of another that has one.
  bool reads_values(std::size_t node) const;
  /// Operand `input` of a node as it is read: from outside, or another node's result, rounded as the edge says.
  Source operand(std::size_t node, std::size_t input);
  /// A value of a type after an edge of this contract.
  Source rounded(Source value, DType dtype, Rounding rounding);

  /// Rows of a matrix by index, for loops that can read them so: of results whose last dimension is the columns.
  void follow_gather(std::size_t node);
  /// One of two values at each place.
  void follow_choice(std::size_t node);
  /// Whether follow() knows the operator: elementwise, or cast, quantize, dequantize.
  static bool knows(OpKind op);
  /// The steps of a node that is one of them.
  void follow(std::size_t node);

  /// Notes the first reason why there is no program.
  void fail(std::size_t node, std::string_view why);
  TileProgramOrReason finish();

 private:
  void follow_elementwise(std::size_t node);
  void follow_cast(std::size_t node);
  void follow_quantize(std::size_t node);
  Source parameter(std::size_t node, std::size_t input);
  Source add_extra(const TileProgram::Extra& wanted);

  const Region& region_;
  ExtentOf extent_of_;
  std::string place_;
  TileProgram program_;
  std::optional<std::string> reason_;
  std::map<std::pair<std::size_t, std::size_t>, Source> values_;  ///< by node and result
};

/// Whether an operand of the region is a number for each row of quantized values, without their last dimension.
bool goes_by_token(const Region& region, std::size_t operand);
/// Whether the operator is a row of pointwise.inc.
bool is_elementwise(OpKind op);

}  // namespace cermet

// What comes before a product in its region, made a block of rows at a time, where the rows are packed.
#pragma once

#include <optional>
#include <vector>

#include "kernel/cpu/movement/piece_map.hpp"

namespace cermet::cpu {

class Prologue {
 public:
  /// Why the nodes before the anchor do not run where its rows are packed.
  static Decline declines(const Region& region);

  Prologue() = default;
  /// Of a region that is not declined; nothing where the product is the first node.
  explicit Prologue(const Region& region);

  explicit operator bool() const { return static_cast<bool>(launch_) || static_cast<bool>(moved_) || makes_all(); }
  /// Whether all rows are made before any is packed, by make_all() and not by run(): those of a mean, which are few and
  /// read much.
  bool makes_all() const { return static_cast<bool>(mean_); }
  void make_all(const LaunchArgs& args, const TensorView& made) const;
  static std::int64_t workspace(const Region& region, std::int64_t rows);
  /// Where `rows` rows of the product's operand go.
  TensorView rows(std::int64_t rows, std::int64_t length, std::byte* memory) const;
  /// Makes rows [first, last) of the region, which are rows [first - base, last - base) of `all`, and of `scales` where
  /// they are quantized.
  void run(const LaunchArgs& args, std::int64_t first, std::int64_t last, const TensorView& all, std::int64_t base,
           const TensorView& scales = {}) const;

 private:
  /// What of an operand is for a block of rows.
  enum class Part : std::uint8_t {
    whole,
    rows,      ///< as many
    repeated,  ///< as many of the rows that it has, which repeat
    values,    ///< one value for each row, without a dimension for it: an index
  };
  static Part part_of(const Region& before, std::size_t operand, const Dims& rows);
  /// An operand of the region; absent where the nodes are given none.
  struct Input {
    std::optional<std::size_t> index;
    Part part = Part::whole;
  };
  void launch(const LaunchArgs& args, std::int64_t first, std::int64_t last, const TensorView& made,
              const TensorView& scales) const;
  /// The end of the rows from `first` on, `last` at most, that are made in one launch.
  std::int64_t end_of_launch(const LaunchArgs& args, std::int64_t first, std::int64_t last) const;

  Launcher mean_;  ///< of rows that are made together
  Shape mean_shape_;
  PieceMap moved_;   ///< what is copied first, to the place of the made rows
  Launcher launch_;  ///< what is computed of that, or of operands
  DType dtype_ = DType::f32;
  std::vector<Input> inputs_;
  std::vector<std::size_t> outputs_;  ///< what the launcher writes: see ProloguePart::results
  std::vector<std::size_t> copies_;   ///< results of the region that are the made rows
};

}  // namespace cermet::cpu

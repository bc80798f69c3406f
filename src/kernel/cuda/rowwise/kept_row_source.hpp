// The row that a kernel along rows keeps between its passes, as CUDA source: what is loaded of it, and how its values
// follow from that.
#pragma once

#include <string>

#include "kernel/row_program.hpp"

namespace cermet::cuda {

/// "Element<cermet::DType::bf16>"
std::string element_source(DType dtype);

class KeptRow {
 public:
  explicit KeptRow(const RowProgram& program);

  /// Extras whose elements are loaded with the row.
  const std::vector<bool>& extras() const { return extras_; }
  /// The first extra with the same memory: two may read different elements of one operand.
  std::size_t leader(std::size_t i) const;
  /// The definition of its type, "struct Source {..};"; none where the row is an operand as it is.
  std::string definition() const;
  /// "    const Source<L> source{at0, x1};\n", of pointers and numbers that are named so.
  std::string declaration() const;

 private:
  bool is_plain() const { return p_.row.from == TileProgram::Source::From::extra; }
  const TileProgram::Extra& extra(std::size_t i) const { return p_.tile.extras[i]; }
  bool goes_by_row(std::size_t i) const;
  /// Whether it is loaded where it is used: beside the halves of a gate, whose values are computed once, a vector of
  /// the columns is not worth its registers.
  bool is_loaded_late(std::size_t i) const;
  bool is_overwritten(std::size_t i) const;
  std::string load(std::size_t i) const;
  std::string vectors(const std::vector<bool>& extras) const;
  std::string elements(const std::vector<bool>& extras) const;
  std::string loop(std::span<const TileProgram::Source> values, std::span<const TileProgram::Source> known,
                   const std::string& before, const std::string& after) const;

  const RowProgram& p_;
  std::vector<bool> extras_;
  bool has_halves_ = false;
};

}  // namespace cermet::cuda

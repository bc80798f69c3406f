// What the host halves of row kernels share: rows of operands that are strided alike, the layouts that programs are
// compiled for, and how rows are quantized.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/rowwise/row_params.hpp"
#include "kernel/kernel.hpp"
#include "op/quantization.hpp"

namespace cermet::cuda {

/// An operand of a row kernel and how many of its trailing dimensions lie within a row.
struct RowView {
  const TensorView* view;
  int trailing = 1;
};

/// The view with leading dimensions of size 1, so that it has `rank`.
TensorView with_rank(const TensorView& view, int rank);

/// Leading dimensions of several operands, which are the same, as rows. Neighbouring dimensions that
/// every operand has at one stride are merged; kernels take three that remain, and more make more launches.
class StridedRows {
 public:
  static constexpr std::size_t most_operands = 12;
  /// All have as many leading dimensions as operand `leader`; its sizes count, and an operand whose size is 1 there is
  /// repeated.
  explicit StridedRows(std::span<const RowView> operands, std::size_t leader = 0);

  std::int64_t rows() const { return inner_ * middle_ * outer_; }  ///< of one launch; a task can count them
  std::int64_t launches() const { return launches_; }
  RowDims dims() const { return dims_; }
  bool uniform() const { return dims_.inner == 0; }
  /// Operand `i` in launch `launch`.
  RowOperand operand(std::size_t i, std::int64_t launch = 0) const;
  /// Whether vectors of `width` elements of operand i are aligned in every row.
  bool aligned(std::size_t i, int width) const;

 private:
  struct Operand {
    std::byte* data = nullptr;
    std::int64_t bytes = 1;  ///< of an element
    Shape steps;             ///< innermost dimension first, in elements
  };
  std::array<Operand, most_operands> operands_{};
  std::size_t count_;
  Shape sizes_;  ///< innermost dimension first, merged
  std::int64_t inner_ = 1, middle_ = 1, outer_ = 1, launches_ = 1;
  RowDims dims_{};
};

/// A layout as device code spells it.
inline std::string layout_text(const RowLayout& layout) { return "cermet::RowLayout" + config_text(layout); }

/// What one program of a row kernel is compiled for: its layout, and blocks that an SM must be able to hold.
struct RowVariant {
  RowLayout layout;
  int min_blocks = 1;
};

/// Elements of a row that one thread has where rows are many, and the registers that its program may use.
struct RowTuning {
  int elements = 32, registers = 72;
};

/// What the programs of a row kernel depend on.
struct RowSpec {
  std::int64_t columns = 0;                   ///< 0: known at run time only
  int width = 8;                              ///< elements of a vector
  std::int64_t group = 0;                     ///< neighbouring columns that are reduced together; 0: none
  RowTuning short_rows = {}, long_rows = {};  ///< of up to 6144 elements, and of more
  bool keep = false;                          ///< float32 values stay in registers between passes
  int few_cluster = 1;                        ///< blocks that share a long row where rows are few
  int threads = 1024;                         ///< of a block at most
  double loaded_bytes = 0;                    ///< that a thread loads for each column; 0: one element of a vector
  std::int64_t most_columns = 32768;          ///< that are held; longer rows are read again for each pass
  const Target* target = nullptr;
};

/// Blocks that share a long row on this target where rows are few.
int few_cluster(const Target* target);

/// The programs of a row kernel: for many rows, for few, and for rows of any length and alignment, in this order. Equal
/// ones are listed once.
class RowVariants {
 public:
  explicit RowVariants(const RowSpec& spec);
  const std::vector<RowVariant>& list() const { return list_; }
  int width() const { return width_; }
  /// Index of the program for these rows, whose operands are all aligned to vectors or not.
  std::size_t choose(const StridedRows& strided, bool aligned, const Target& target) const;
  std::int64_t items(std::size_t program, std::int64_t rows) const;

 private:
  std::vector<RowVariant> list_;
  std::size_t few_ = 0;
  int width_;
};

/// The program of a variant.
Program variant_program(std::string header, std::string task, const RowVariant& variant);

/// How a kernel's rows are quantized.
struct RowQuantization {
  QuantizedFormat format;
  bool exact = true;     ///< no quantized value may differ by a step
  bool bounded = false;  ///< an operand bounds the magnitudes that scales are made for

  bool groups() const { return format.group != 0; }  ///< scales have a dimension of groups
  /// Columns of a row that share a scale; 0: all of them.
  std::int64_t group(std::int64_t columns) const { return columns > 0 && format.group >= columns ? 0 : format.group; }
  /// The device's Quantization, "{.format = {..}, ..}".
  std::string text(std::int64_t columns) const;
};

/// The last `trailing` dimensions of operand 0 as one number; 0 where one is symbolic.
std::int64_t constant_columns(const Problem& problem, int trailing = 1);
/// Elements of a 16-byte vector of the widest of these types.
int vector_width(std::initializer_list<DType> types);
/// Whether a vector along the rows can be read `width` elements at a time.
bool is_aligned(const TensorView& vector, int width);
/// Type of an operand; float32 where it is not given.
DType type_or_f32(const Problem& problem, std::size_t operand);

}  // namespace cermet::cuda

// Tensors: the type of one (element type and possibly symbolic dimensions) and a view of one in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/dim.hpp"
#include "base/dtype.hpp"

namespace cermet {

/// Element type and dimensions of a tensor, before any memory is bound to it.
struct TensorType {
  DType dtype = DType::f32;
  Dims dims;

  friend bool operator==(const TensorType&, const TensorType&) = default;
  int rank() const { return static_cast<int>(dims.size()); }
  /// Number of elements and bytes; a Dim, because either may depend on a symbol.
  Dim elements() const { return product(dims); }
  Dim bytes() const { return product(dims) * byte_size(dtype); }
  bool is_constant() const;       ///< no dimension is symbolic
  std::string to_string() const;  ///< "bf16[T, 4096]"
};

/// Concrete dimensions of up to 8 axes, without heap memory.
class Shape {
 public:
  static constexpr int max_rank = 8;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t back() const { return dims_[static_cast<std::size_t>(rank_ - 1)]; }
  void push_back(std::int64_t dim);
  std::int64_t elements() const;  ///< 1 for rank 0
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  friend bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  std::string to_string() const;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

/// Strides, in elements, of a dense row-major tensor.
Shape dense_strides(const Shape& shape);

/// Memory seen as a tensor. Does not own. The last dimension is contiguous for every operator; leading ones may be
/// strided. A view with null data and `present == false` stands for an optional operand that was not given.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;  ///< in elements
  bool present = false;

  TensorView() = default;
  /// A dense row-major view.
  TensorView(void* memory, DType type, const Shape& dims);
  TensorView(void* memory, DType type, const Shape& dims, const Shape& steps)
      : data(memory), dtype(type), shape(dims), strides(steps), present(true) {}

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t elements() const { return shape.elements(); }
  bool is_dense() const;
  TensorType type() const;
};

/// Bytes of a dense tensor; throws Error(out_of_memory) where they overflow or a dimension is negative.
std::int64_t dense_bytes(DType dtype, const Shape& shape);
/// Dimensions with every symbol replaced by its value.
Shape bind(const Dims& dims, const SymbolValues& symbols);
/// Dimensions that are all constants.
Dims to_dims(const Shape& shape);

/// A tensor whose leading axes are walked as rows of the last `trailing` axes. Row r starts at row(r).
class Rows {
 public:
  /// The trailing axes must be dense among themselves, which operators check at creation. A tensor with fewer axes is
  /// one row.
  explicit Rows(const TensorView& view, int trailing = 1);
  std::int64_t count() const { return count_; }
  std::int64_t length() const { return length_; }  ///< elements of a row
  /// Address of row r, 0 <= r < count().
  std::byte* row(std::int64_t r) const {
    if (uniform_) return data_ + r * step_bytes_;
    return strided_row(r);
  }

 private:
  std::byte* strided_row(std::int64_t r) const;
  std::byte* data_;
  std::int64_t count_ = 1, length_ = 1, step_bytes_ = 0;
  bool uniform_ = true;
  Shape lead_dims_, lead_step_bytes_;
};

}  // namespace cermet

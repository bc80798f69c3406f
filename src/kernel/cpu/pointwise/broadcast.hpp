// Walking two operands and a result whose dimensions broadcast, in pieces of rows.
#pragma once

#include <algorithm>

#include "base/checked.hpp"
#include "base/tensor.hpp"

namespace cermet::cpu {

/// One row of an operand. Element i is at data + i * step elements; step is 1, or 0 where a single element is repeated.
struct BroadcastOperand {
  std::byte* data;
  DType dtype;
  int step;
};

class Broadcast {
 public:
  /// The shape of y is that of a and b together; operands of the shape of y may both be the same view. Pieces have at
  /// most `piece` elements.
  Broadcast(const TensorView& a, const TensorView& b, const TensorView& y, std::size_t piece)
      : views_{&a, &b, &y}, piece_(static_cast<std::int64_t>(piece)) {
    const bool flat = a.shape == y.shape && b.shape == y.shape && a.is_dense() && b.is_dense() && y.is_dense();
    const int rank = y.shape.rank();
    length_ = flat ? y.elements() : rank == 0 ? 1 : y.shape.back();
    for (int axis = 0; !flat && axis < rank - 1; ++axis) {
      lead_.push_back(y.shape[axis]);
      rows_ *= y.shape[axis];
    }
    for (std::size_t o = 0; o < views_.size(); ++o) describe(o, flat, rank);
    merge_axes();
    pieces_per_row_ = div_up(length_, piece_);
  }

  std::int64_t pieces() const { return rows_ * pieces_per_row_; }
  /// Pieces that together are worth handing to a thread.
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, std::min(length_, piece_)));
  }

  /// Whether rows are pieces that are evenly apart, and none repeats an element: a and b may be read, and y written, as
  /// tiles.
  bool is_tile() const { return pieces_per_row_ == 1 && lead_.rank() == 1 && step_[0] == 1 && step_[1] == 1; }
  /// Elements from one row of an operand to the next.
  std::int64_t row_step(std::size_t o) const { return step_bytes_[o][0] / byte_size(views_[o]->dtype); }
  std::int64_t length() const { return length_; }

  /// Calls body(a, b, y, first, n) for pieces [begin, end): elements [first, first + n) of one row of each.
  template <class Body>
  void for_pieces(std::int64_t begin, std::int64_t end, Body&& body) const {
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t row = p / pieces_per_row_, first = p % pieces_per_row_ * piece_;
      body(operand(0, row), operand(1, row), operand(2, row), static_cast<std::size_t>(first),
           static_cast<std::size_t>(std::min(piece_, length_ - first)));
    }
  }

 private:
  /// Axes that every operand walks as one: a row costs a division for each but the first.
  void merge_axes() {
    Shape lead;
    std::array<Shape, 3> steps;
    for (int axis = 0; axis < lead_.rank(); ++axis) {
      if (lead_[axis] == 1) continue;
      const int last = lead.rank() - 1;
      bool merges = last >= 0;
      for (std::size_t o = 0; merges && o < steps.size(); ++o)
        merges = steps[o][last] == step_bytes_[o][axis] * lead_[axis];
      if (merges) lead[last] *= lead_[axis];
      else lead.push_back(lead_[axis]);
      for (std::size_t o = 0; o < steps.size(); ++o) {
        if (merges) steps[o][last] = step_bytes_[o][axis];
        else steps[o].push_back(step_bytes_[o][axis]);
      }
    }
    lead_ = lead;
    step_bytes_ = steps;
  }

  void describe(std::size_t o, bool flat, int rank) {
    const TensorView& view = *views_[o];
    const auto bytes = byte_size(view.dtype);
    const int missing = rank - view.shape.rank();
    for (int axis = 0; axis < lead_.rank(); ++axis) {
      const int own = axis - missing;
      step_bytes_[o].push_back(own < 0 || view.shape[own] == 1 ? 0 : view.strides[own] * bytes);
    }
    step_[o] = flat || (view.shape.rank() > 0 && view.shape.back() == length_) ? 1 : 0;
  }

  BroadcastOperand operand(std::size_t o, std::int64_t row) const {
    std::byte* data = views_[o]->as<std::byte>();
    for (int axis = lead_.rank() - 1; axis > 0; --axis) {
      data += row % lead_[axis] * step_bytes_[o][axis];
      row /= lead_[axis];
    }
    if (lead_.rank() > 0) data += row * step_bytes_[o][0];
    return {data, views_[o]->dtype, step_[o]};
  }

  std::array<const TensorView*, 3> views_;
  std::int64_t piece_, length_ = 1, rows_ = 1, pieces_per_row_ = 1;
  Shape lead_;                       ///< leading dimensions of y, walked as rows: those of 1 left out, others merged
  std::array<Shape, 3> step_bytes_;  ///< per operand: bytes between adjacent elements along those
  std::array<int, 3> step_{};
};

}  // namespace cermet::cpu

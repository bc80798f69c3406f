// What resize does along each axis, from its attributes and the sizes of its operand and result.
#pragma once

#include <array>

#include "op/resize_axis.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

struct ResizePlan {
  resize::Rule rule;
  int rank = 0;
  std::array<resize::Axis, Shape::max_rank> axes{};
  std::array<bool, Shape::max_rank> resized{};  ///< whether the axis is not simply copied
  double extrapolation = 0;
};

/// The attributes, read once; sizes come with every launch.
class ResizeAttributes {
 public:
  ResizeAttributes(const Attributes& attributes, int rank);
  ResizePlan plan(const Shape& in, const Shape& out) const;

 private:
  resize::Rule rule_;
  int rank_;
  std::array<double, Shape::max_rank> scale_{}, begin_{}, end_{};  ///< scale 0: out / in
  double extrapolation_;
};

}  // namespace cermet

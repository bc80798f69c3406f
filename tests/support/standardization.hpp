// A row kernel with two reductions that is no operator: rows less their mean, over their standard deviation, from
// elementwise operators and means.
#pragma once

#include "tests/support/region_builder.hpp"

namespace cermet {

inline Region standardization(DType t, Dims dims, const Target* target) {
  RegionBuilder b(Rounding::fast, target);
  const Attributes along_rows{{"axes", Ints{-1}}, {"keepdims", true}};
  const auto x = b.operand({t, dims});
  const auto mean = b.add(OpKind::reduce_mean, {x}, along_rows);
  const auto centered = b.add(OpKind::sub, {x, mean});
  const auto variance = b.add(OpKind::reduce_mean, {b.add(OpKind::square, {centered})}, along_rows);
  b.result(b.add(OpKind::div, {centered, b.add(OpKind::sqrt, {variance})}));
  b.result(variance);
  b.anchor(mean);
  return b.build();
}

}  // namespace cermet

// Regions around reductions of rows that tests compile and run.
#pragma once

#include "op/schema/operator.hpp"
#include "tests/support/pointwise_regions.hpp"
#include "tests/support/standardization.hpp"

namespace cermet {

/// What a test wants of a region besides its norm.
struct RowCase {
  DType dtype = DType::bf16;
  Dims dims;
  std::string granularity;  ///< of the dynamic quantization at the end; none where empty
  Rounding rounding = Rounding::strict;
};

/// An elementwise chain before a norm, another after it, which reads operands of the first again, and perhaps
/// quantization.
inline Region norm_chain(OpKind norm, const RowCase& c, const Target* target) {
  RegionBuilder b(c.rounding, target);
  const TensorType rows{c.dtype, c.dims}, columns{c.dtype, {c.dims.back()}};
  const auto x = b.operand(rows), gate = b.operand(rows);
  std::vector<RegionBuilder::Value> operands{
      b.add(OpKind::mul, {b.add(OpKind::mul, {x, b.add(OpKind::silu, {gate})}), b.operand(columns)})};
  if (norm == OpKind::add_rms_norm) operands.push_back(b.operand(rows));
  operands.push_back(b.operand(columns));
  if (norm == OpKind::layer_norm) operands.push_back(b.operand(columns));
  const auto anchor = b.add(norm, operands, {{"eps", 1e-5}});
  if (norm == OpKind::add_rms_norm) b.result(b.result_of(anchor.node, 1));
  const auto after = b.add(OpKind::add, {b.add(OpKind::mul, {anchor, x}), gate});
  if (c.granularity.empty()) {
    b.result(after);
  } else {
    const auto q = b.add(OpKind::dynamic_quant, {after}, {{"granularity", c.granularity}});
    b.result(q);
    b.result(b.result_of(q.node, 1));
  }
  b.anchor(anchor);
  return b.build();
}

/// Softmax of scores that are scaled and biased, the bias repeated over the first dimension.
inline Region scaled_softmax(const RowCase& c, bool logarithm, const Target* target) {
  RegionBuilder b(c.rounding, target);
  Dims bias = c.dims;
  bias[0] = Dim(1);
  const auto scaled = b.add(OpKind::mul, {b.operand({c.dtype, c.dims}), b.operand({c.dtype, {}})});
  b.result(b.add(OpKind::softmax, {b.add(OpKind::add, {scaled, b.operand({c.dtype, bias})})}, {{"log", logarithm}}));
  return b.build();
}

/// A norm whose rows are quantized with a given scale, and leave unquantized, too.
inline Region quantized_norm(const RowCase& c, const Target* target) {
  RegionBuilder b(c.rounding, target);
  const auto y = b.add(OpKind::rms_norm, {b.operand({c.dtype, c.dims}), {}}, {{"eps", 1e-6}});
  b.result(y);
  b.result(b.add(OpKind::quantize, {y, b.operand({DType::f32, {}}), {}}));
  b.anchor(y);
  return b.build();
}

/// A sum that is stored and quantized: one reduction, of what no operator gave alone.
inline Region quantized_sum(const RowCase& c, const Target* target) {
  RegionBuilder b(c.rounding, target);
  const auto sum = b.add(OpKind::add, {b.operand({c.dtype, c.dims}), b.operand({c.dtype, c.dims})});
  const auto q = b.add(OpKind::dynamic_quant, {sum}, {{"granularity", c.granularity}});
  b.result(q);
  b.result(b.result_of(q.node, 1));
  b.result(sum);
  return b.build();
}

inline std::vector<NamedRegion> row_regions(const Target* target) {
  std::vector<NamedRegion> list;
  const auto name = [](std::string_view what, const RowCase& c) {
    return fmt::format("{}_{}_{}_{}_{}", what, name_of(c.dtype), c.dims.back().constant(), c.granularity,
                       name_of(c.rounding));
  };
  for (const RowCase& c : {RowCase{DType::bf16, {9, 4096}, ""},
                           {DType::bf16, {3, 2, 4096}, "token"},
                           {DType::f32, {5, 200}, "", Rounding::fast},
                           {DType::f16, {300, 1024}, "group"},
                           {DType::f32, {2, 131}, "token", Rounding::fast},
                           {DType::bf16, {2, 20480}, "token"}})
    for (const OpKind norm : {OpKind::rms_norm, OpKind::add_rms_norm, OpKind::layer_norm})
      list.push_back({name(definition(norm).name, c), norm_chain(norm, c, target)});
  for (const RowCase& c : {RowCase{DType::bf16, {4, 6, 512}, ""},
                           {DType::f32, {4, 3, 77}, "", Rounding::fast},
                           {DType::f32, {2, 5, 1536}, ""}})
    for (const bool logarithm : {false, true})
      list.push_back({name(logarithm ? "log_softmax" : "softmax", c), scaled_softmax(c, logarithm, target)});
  list.push_back({"quantized_norm", quantized_norm({DType::bf16, {7, 2048}, ""}, target)});
  list.push_back({"quantized_sum", quantized_sum({DType::bf16, {7, 2048}, "token"}, target)});
  list.push_back({"quantized_sum_of_many_rows", quantized_sum({DType::f16, {512, 256}, "token"}, target)});
  list.push_back({"standardization", standardization(DType::f32, {33, 1000}, target)});
  return list;
}

}  // namespace cermet

// Regions of elementwise operators that tests compile and run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/region_builder.hpp"

namespace cermet {

struct NamedRegion {
  std::string name;
  Region region;
};

/// A residual, scaled by a number and by columns: three operands that extend differently.
inline Region scaled_residual(DType t, Dims dims, Rounding rounding, const Target* target) {
  RegionBuilder b(rounding, target);
  const auto x = b.operand({t, dims}), residual = b.operand({t, dims}), scale = b.operand({t, {}}),
             column = b.operand({t, {dims.back()}});
  const auto scaled = b.add(OpKind::mul, {b.add(OpKind::mul, {x, scale}), column});
  b.result(b.add(OpKind::add, {residual, scaled}));
  return b.build();
}

/// Two results, one of them read inside, of bf16 rows and a float32 number for each row.
inline Region two_results(Rounding rounding, const Target* target) {
  RegionBuilder b(rounding, target);
  const auto x = b.operand({DType::bf16, {3, 5, 40}}), gate = b.operand({DType::bf16, {3, 1, 40}}),
             row = b.operand({DType::f32, {3, 5, 1}});
  const auto gated = b.add(OpKind::mul, {x, b.add(OpKind::silu, {gate})});
  const auto wide = b.add(OpKind::cast, {gated}, {{"out_dtype", "f32"}});
  b.result(gated);
  b.result(b.add(OpKind::clip, {b.add(OpKind::sub, {wide, row})}, {{"low", -1.5}, {"high", 2.0}}));
  return b.build();
}

/// Values that are quantized, and read again as another consumer would.
inline Region quantized_and_back(const char* code, Dims dims, Rounding rounding, const Target* target) {
  RegionBuilder b(rounding, target);
  const auto x = b.operand({DType::f16, dims}), step = b.operand({DType::f32, {dims.back()}}),
             offset = b.operand({DType::f32, {}});
  const auto rows = b.operand({DType::f32, Dims(dims.begin(), dims.end() - 1)});
  const auto q = b.add(OpKind::quantize, {b.add(OpKind::tanh, {x}), step, offset}, {{"out_dtype", code}});
  b.result(q);
  b.result(b.add(OpKind::dequantize, {q, rows, {}}, {{"granularity", "token"}, {"out_dtype", "bf16"}}));
  return b.build();
}

/// Comparisons, whose results are read as truth.
inline Region chosen_by_comparison(Rounding rounding, const Target* target) {
  RegionBuilder b(rounding, target);
  const auto x = b.operand({DType::f32, {7, 129}}), y = b.operand({DType::f32, {7, 129}}),
             n = b.operand({DType::i32, {7, 129}}), m = b.operand({DType::i32, {129}});
  const auto both = b.add(OpKind::logical_and,
                          {b.add(OpKind::less, {x, y}), b.add(OpKind::greater, {b.add(OpKind::mul, {n, m}), m})});
  b.result(both);
  b.result(b.add(OpKind::relu, {b.add(OpKind::sub, {n, m})}));
  return b.build();
}

inline std::vector<NamedRegion> pointwise_regions(const Target* target) {
  std::vector<NamedRegion> list;
  for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
    const std::string how = std::string("_") + std::string(name_of(rounding));
    list.push_back({"scaled_residual_bf16" + how, scaled_residual(DType::bf16, {64, 4096}, rounding, target)});
    list.push_back({"scaled_residual_f32" + how, scaled_residual(DType::f32, {2, 3, 33}, rounding, target)});
    list.push_back({"two_results" + how, two_results(rounding, target)});
    for (const char* code : {"i8", "f8_e4m3"})
      list.push_back({std::string("quantized_") + code + how, quantized_and_back(code, {6, 136}, rounding, target)});
    list.push_back({"chosen_by_comparison" + how, chosen_by_comparison(rounding, target)});
  }
  return list;
}

}  // namespace cermet

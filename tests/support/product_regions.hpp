// Products with what fills the hole after them: quantization, the gate of stacked weights, and values that leave
// beside the last.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/checked.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/region_text.hpp"

namespace cermet {

struct ProductRegion {
  std::string name, text;
  std::vector<Fill> fills;                ///< by operand of the region
  std::vector<std::string_view> kernels;  ///< that take it on compute capability 9.0; those for the tensor cores of
                                          ///< others and the CUDA cores do on all

  /// Its weights are constant.
  Region region(const Target* target) const {
    Region region = parse_region(text);
    region.set_target(target);
    RegionNode& product = region.nodes[static_cast<std::size_t>(region.anchor)];
    product.problem.constant_inputs = product.problem.op->kind == OpKind::dual_linear ? 6 : 2;
    return region;
  }
};

inline std::vector<ProductRegion> product_regions() {
  const Fill x = normal(), w = normal(0.05), step = constant(0.02), codes = integers(-127, 127),
             scale = uniform(0.001, 0.004), other = normal();
  const std::vector<std::string_view> many{"gemm.linear.hopper", "gemm.linear.tensor", "gemm.linear.general"},
      few{"gemm.linear.hopper", "gemm.linear.stream", "gemm.linear.tensor", "gemm.linear.general"},
      one{"gemv.linear", "gemm.linear.hopper", "gemm.linear.tensor", "gemm.linear.general"},
      scaled{"gemm.scaled_mm.hopper", "gemm.scaled_mm.tensor", "gemm.scaled_mm.general"},
      fp8{"gemm.scaled_mm.hopper", "gemm.scaled_mm.general"},
      few_fp8{"gemm.scaled_mm.hopper", "gemm.scaled_mm.stream", "gemm.scaled_mm.general"},
      grouped{"gemm.grouped_linear.hopper", "gemm.grouped_linear.tensor", "gemm.grouped_linear.general"};
  std::vector<ProductRegion> list;
  const auto add = [&](std::string name, std::string text, std::vector<Fill> fills,
                       const std::vector<std::string_view>& kernels) {
    list.push_back({std::move(name), std::move(text), std::move(fills), kernels});
  };
  const auto rows = [&](std::int64_t m) -> const std::vector<std::string_view>& {
    return m == 1 ? one : m < 65 ? few : many;
  };

  for (const std::int64_t m : {1, 7, 150}) {
    add(fmt::format("quantized_{}", m),
        fmt::format("{{n0 = linear($0: bf16[{0}, 272], $1: bf16[144, 272], $2: f32[144]); n1 = quantize(strict n0, $3: "
                    "f32[])}} anchor n0 -> n1",
                    m),
        {x, w, other, step}, rows(m));
    const std::int64_t few_rows = std::min<std::int64_t>(m, 60);  // of more, Hopper's product declines a second result
    add(fmt::format("sum_and_quantized_{}", few_rows),
        fmt::format("{{n0 = linear($0: bf16[{0}, 272], $1: bf16[144, 272]); n1 = add(strict n0, $2: bf16[{0}, 144]); "
                    "n2 = quantize(strict n1, $3: f32[144]) "
                    "{{out_dtype = \"f8_e4m3\"}}}} anchor n0 -> n1, n2",
                    few_rows),
        {x, w, other, step}, rows(few_rows));
    add(fmt::format("gate_{}", m),
        fmt::format("{{n0 = linear($0: f16[{}, 272], $1: f16[288, 272], $2: f32[288]); n1 = silu_and_mul(strict n0)}} "
                    "anchor n0 -> n1",
                    m),
        {x, w, other}, rows(m));
  }
  add("codes_and_numbers",
      "{n0 = linear($0: bf16[33, 264], $1: bf16[80, 264]); n1 = gelu(fast n0); n2 = quantize(fast n1, $2: f32[80], -, "
      "$3: i8[80]); "
      "n3 = dequantize(strict n2, $2: f32[80], $4: f32[80]) {granularity = \"broadcast\"}} anchor n0 -> n2, n3",
      {x, w, step, integers(-9, 9), integers(-9, 9)}, few);
  add("wide",
      "{n0 = linear($0: f32[60, 136], $1: bf16[1032, 136]) {out_dtype = \"f32\"}; n1 = silu(strict n0)} anchor n0 -> "
      "n0, n1",
      {x, w}, {"gemm.linear.hopper", "gemm.linear.general"});
  add("batches",
      "{n0 = matmul($0: bf16[3, 20, 72], $1: bf16[3, 136, 72]) {transpose_b = true}; n1 = mul(strict n0, $2: bf16[3, "
      "20, 1]); n2 = tanh(strict n1)} "
      "anchor n0 -> n0, n2",
      {x, w, other}, {"gemm.matmul.hopper", "gemm.matmul.tensor", "gemm.matmul.general"});
  add("two_weights",
      "{n0 = dual_linear($0: bf16[60, 136], $1: bf16[144, 136], $2: bf16[144, 136]) {out_dtype = \"f32\"}; n1 = "
      "quantize(strict n0, $3: f32[])} anchor n0 -> "
      "n0, n1",
      {x, w, w, step}, {"gemm.dual_linear.hopper", "gemm.dual_linear.tensor", "gemm.dual_linear.general"});
  add("scaled",
      "{n0 = scaled_mm($0: i8[60, 272], $1: i8[144, 272], $2: f32[60], $3: f32[144]) {out_dtype = \"f32\"}; n1 = "
      "relu(strict n0); "
      "n2 = quantize(strict n1, $4: f32[])} anchor n0 -> n1, n2",
      {codes, codes, scale, scale, step}, scaled);
  add("scaled_gate",
      "{n0 = scaled_mm($0: i8[150, 272], $1: i8[288, 272], $2: f32[150], $3: f32[288], $4: f32[288]) {out_dtype = "
      "\"f32\"}; n1 = silu_and_mul(strict n0)} "
      "anchor n0 -> n1",
      {codes, codes, scale, scale, other}, scaled);
  add("fp8_gate",
      "{n0 = scaled_mm($0: f8_e4m3[40, 1040], $1: f8_e4m3[288, 1040], $2: f32[40], $3: f32[288]) {out_dtype = "
      "\"f32\"}; "
      "n1 = gelu_and_mul(strict n0) {approximate = \"tanh\"}; n2 = quantize(strict n1, $4: f32[])} anchor n0 -> n1, n2",
      {x, x, scale, scale, step}, few_fp8);
  add("fp8_gate_long",
      "{n0 = scaled_mm($0: f8_e4m3[150, 2064], $1: f8_e4m3[288, 2064], $2: f32[150], $3: f32[288]) {out_dtype = "
      "\"bf16\"}; "
      "n1 = silu_and_mul(fast n0) {out_dtype = \"bf16\"}} anchor n0 -> n1",
      {x, x, scale, scale}, fp8);
  const auto conv = [&](std::string name, std::string_view operands, std::string_view attributes,
                        std::string_view after, std::vector<std::string_view> kernels) {
    add(std::move(name), fmt::format("{{n0 = conv({}) {{layout = \"nhwc\"{}}}; {}", operands, attributes, after),
        {x, w, other, other, step}, kernels);
  };
  const std::string_view both = "n1 = relu(strict n0)} anchor n0 -> n0, n1";
  conv("windows", "$0: f16[2, 9, 7, 24], $1: f16[72, 24, 3, 3], $2: f16[72]", ", pads = [1, 1, 1, 1]", both,
       {"conv.implicit", "conv.general"});
  conv("windows_quantized", "$0: f32[2, 9, 7, 12], $1: f32[20, 12, 3, 3], $2: f32[20], $3: f32[2, 9, 7, 20]",
       ", pads = [1, 1, 1, 1]", "n1 = quantize(strict n0, $4: f32[])} anchor n0 -> n0, n1",
       {"conv.implicit", "conv.general"});
  conv("windows_of_few_places", "$0: bf16[1, 7, 8, 64], $1: bf16[72, 64, 3, 3], $2: bf16[72]",
       ", pads = [1, 1, 1, 1], activation = \"silu\"", "n1 = mul(strict n0, $3: bf16[1, 7, 8, 1])} anchor n0 -> n0, n1",
       {"conv.hopper", "conv.implicit", "conv.general"});
  conv("pixels", "$0: f16[1, 8, 8, 40], $1: f16[72, 40, 1, 1], $2: f16[72], $3: f16[1, 8, 8, 72]", "", both,
       {"conv.pointwise.hopper", "conv.pointwise.tensor", "conv.pointwise.general", "conv.implicit", "conv.general"});
  conv("depthwise", "$0: f16[2, 9, 7, 40], $1: f16[40, 1, 3, 3], $2: f16[40]", ", pads = [1, 1, 1, 1], group = 40",
       "n1 = sigmoid(strict n0); n2 = mul(strict n0, strict n1)} anchor n0 -> n0, n2",
       {"conv.depthwise", "conv.general"});
  conv("first_layer", "$0: bf16[2, 19, 18, 3], $1: bf16[40, 3, 3, 3], $2: bf16[40]",
       ", pads = [1, 1, 1, 1], strides = [2, 2]", both, {"conv.few_channels", "conv.implicit", "conv.general"});
  add("channels_first",
      "{n0 = conv($0: f16[2, 6, 9, 7], $1: f16[7, 6, 3, 3], $2: f16[7]); n1 = mul(strict n0, $3: f16[5])} anchor n0 -> "
      "n0, n1",
      {x, w, other, other}, {"conv.general"});
  add("transposed",
      "{n0 = conv_transpose($0: f32[1, 5, 4, 6], $1: f32[5, 7, 3, 3], $2: f32[7]) {strides = [2, 2]}; n1 = relu(strict "
      "n0)} anchor n0 -> n0, n1",
      {x, w, other}, {"conv_transpose.general"});
  std::vector<double> offsets{0, 3, 3, 80, 150};
  const Fill wide = uniform(0.1, 0.4);
  const auto blocks = [&](std::string name, std::string_view x_type, std::int64_t m, std::int64_t n, std::int64_t k,
                          std::vector<std::string_view> kernels) {
    const bool is_fp8 = x_type != "i8";
    const std::int64_t over_k = div_up(k, std::int64_t{128}), over_n = div_up(n, std::int64_t{128});
    add(std::move(name),
        fmt::format("{{n0 = scaled_mm($0: {0}[{1}, {3}], $1: {0}[{2}, {3}], $2: f32[{1}, {4}], $3: f32[{5}, {4}]) "
                    "{{out_dtype = \"{6}\"}}; "
                    "n1 = silu_and_mul(strict n0)}} anchor n0 -> n1",
                    x_type, m, n, k, over_k, over_n, is_fp8 ? "bf16" : "f32"),
        {is_fp8 ? x : codes, is_fp8 ? x : codes, is_fp8 ? wide : scale, is_fp8 ? wide : scale}, std::move(kernels));
  };
  blocks("blocks_gate", "i8", 150, 512, 384, scaled);
  blocks("blocks_gate_1", "i8", 1, 512, 400,
         {"gemv.scaled_mm", "gemm.scaled_mm.hopper", "gemm.scaled_mm.tensor", "gemm.scaled_mm.general"});
  blocks("blocks_gate_odd", "i8", 1, 144, 272, {"gemv.scaled_mm"});
  blocks("blocks_gate_fp8", "f8_e4m3", 40, 256, 1040, fp8);
  blocks("blocks_gate_fp8_1", "f8_e4m3", 1, 256, 1040,
         {"gemv.scaled_mm", "gemm.scaled_mm.hopper", "gemm.scaled_mm.general"});
  for (const bool is_fp8 : {false, true})
    add(is_fp8 ? "blocks_grouped_gate_fp8" : "blocks_grouped_gate",
        fmt::format("{{n0 = grouped_linear($0: {0}[150, 1040], $1: {0}[4, 512, 1040], $2: i32[5], -, $3: f32[150, 9], "
                    "$4: f32[4, 4, 9]) "
                    "{{out_dtype = \"bf16\"}}; n1 = gelu_and_mul(strict n0)}} anchor n0 -> n1",
                    is_fp8 ? "f8_e4m3" : "i8"),
        {is_fp8 ? x : codes, is_fp8 ? x : codes, values(offsets), is_fp8 ? wide : scale, is_fp8 ? wide : scale},
        is_fp8 ? std::vector<std::string_view>{"gemm.grouped_linear.hopper", "gemm.grouped_linear.general"} : grouped);
  add("grouped_gate",
      "{n0 = grouped_linear($0: bf16[150, 136], $1: bf16[4, 144, 136], $2: i32[5], $3: bf16[4, 144]) {out_dtype = "
      "\"f32\"}; n1 = silu_and_mul(strict n0); "
      "n2 = clip(strict n1) {low = -1.0, high = 2.0}} anchor n0 -> n2",
      {x, w, values(offsets), other}, grouped);
  const std::vector<double> unweighted_offsets{0, 3, 3, 30, 40, 60}, few_offsets{0, 1, 1, 3, 4, 9};
  const std::string_view after = "n1 = add(strict n0, $3: bf16[60, 144]); n2 = sigmoid(strict n1)} anchor n0 -> n1, n2";
  add("rest", fmt::format("{{n0 = grouped_linear($0: bf16[60, 136], $1: bf16[4, 144, 136], $2: i32[6]); {}", after),
      {x, w, values(unweighted_offsets), other},
      {"gemm.grouped_linear.hopper", "gemm.grouped_linear.tensor", "gemm.grouped_linear.general"});
  add("rest_few",
      "{n0 = grouped_linear($0: f16[9, 136], $1: f16[4, 72, 136], $2: i64[6]); n1 = add(strict n0, $3: f16[72])} "
      "anchor n0 -> n1",
      {x, w, values(few_offsets), other},
      {"gemv.grouped_linear", "gemm.grouped_linear.hopper", "gemm.grouped_linear.tensor",
       "gemm.grouped_linear.general"});
  for (const bool alone : {false, true})
    add(alone ? "rest_gate_alone" : "rest_gate",
        "{n0 = grouped_linear($0: i8[60, 272], $1: i8[4, 144, 272], $2: i32[6], -, $3: f32[60], $4: f32[4, 144]); n1 = "
        "silu_and_mul(strict n0); "
        "n2 = add(strict n1, $5: f32[72])} anchor n0 -> n2",
        {codes, codes, values(alone ? std::vector<double>{0, 0, 0, 0, 0, 60} : unweighted_offsets), scale, scale,
         other},
        grouped);
  return list;
}

}  // namespace cermet

// Regions of a decode step's products of one token, with what comes before and after them.
#pragma once

#include "tests/support/pointwise_regions.hpp"

namespace cermet {

/// What a test wants of such a region.
struct DecodeCase {
  DType w = DType::i8;
  std::int64_t k = 2048, n = 90;
  std::string front;  ///< norm, add_norm, quant, norm_quant, add_norm_quant; of experts: permute, permute_quant, quant,
                      ///< and the first two after choose_
  bool gated = false;  ///< silu_and_mul ends it
  bool dual = false;   ///< dual_linear
  std::int64_t experts = 0, choices = 0;
  bool combined = false;    ///< moe_unpermute ends it
  bool unweighted = false;  ///< a last group has no weight
  DType normed =
      DType::f32;  ///< of a row that a normalization gives; where it is narrow, the sum is, too, and rounded before
  std::int64_t rows = 1;  ///< where there are no experts and nothing comes before; several are of the weight's type
};

inline RegionBuilder::Value front_of(RegionBuilder& b, const DecodeCase& c, RegionBuilder::Value& scale,
                                     RegionBuilder::Value& offsets) {
  const bool permutes = c.front.find("permute") != std::string::npos;
  const std::int64_t rows = c.experts == 0 || permutes ? c.rows : c.choices;
  const bool adds = c.front.starts_with("add_"), quantizes = c.front.ends_with("quant"),
             is_quantized = size_of(c.w) == 1 && !quantizes;
  const auto x = b.operand({is_quantized || c.rows > 1 ? c.w : DType::f32, {rows, c.k}});
  Attributes codes;
  if (quantizes && c.w != DType::i8) codes.set("out_dtype", std::string(name_of(c.w)));
  if (is_quantized) scale = b.operand({DType::f32, {rows}});
  if (c.front.empty()) return x;
  if (c.front.find("norm") != std::string::npos) {
    std::vector<RegionBuilder::Value> operands{x};
    if (adds) operands.push_back(b.operand({c.normed, {rows, c.k}}));
    operands.push_back(b.operand({DType::bf16, {c.k}}));
    const OpKind op = quantizes ? (adds ? OpKind::add_rms_norm_quant : OpKind::rms_norm_quant)
                      : adds    ? OpKind::add_rms_norm
                                : OpKind::rms_norm;
    Attributes attributes = codes;
    attributes.set("eps", 1e-5);
    if (c.normed != DType::f32) attributes.set("out_dtype", std::string(name_of(c.normed)));
    if (c.normed != DType::f32 && adds) attributes.set("round_sum", true);
    const auto y = b.add(op, operands, attributes);
    if (adds) b.result(b.result_of(y.node, 1));
    if (quantizes) scale = b.result_of(y.node, adds ? 2 : 1);
    else b.result(y);
    return y;
  }
  auto y = x;
  if (permutes) {
    RegionBuilder::Value ids;
    if (c.front.starts_with("choose_")) {
      const auto weights = b.add(OpKind::topk_gating, {b.operand({DType::f32, {1, c.experts}})},
                                 {{"k", c.choices}, {"renormalize", true}});
      b.result(weights);
      ids = b.result_of(weights.node, 1);
    } else {
      ids = b.operand({DType::i32, {1, c.choices}});
    }
    y = b.add(OpKind::moe_permute, {x, ids}, {{"experts", c.experts}});
    offsets = b.result_of(y.node, 1);
    b.result(offsets);
    b.result(b.result_of(y.node, 2));
  }
  if (quantizes) {
    y = b.add(OpKind::dynamic_quant, {y}, codes);
    scale = b.result_of(y.node, 1);
  }
  return y;
}

inline Region decode_region(const DecodeCase& c, const Target* target) {
  RegionBuilder b(Rounding::strict, target);
  RegionBuilder::Value scale, offsets;
  const auto x = front_of(b, c, scale, offsets);
  const bool scaled = size_of(c.w) == 1;
  RegionBuilder::Value product;
  if (c.experts > 0) {
    if (!offsets.given()) offsets = b.operand({DType::i32, {c.experts + (c.unweighted ? 2 : 1)}});
    std::vector<RegionBuilder::Value> operands{x, b.operand({c.w, {c.experts, c.n, c.k}}), offsets};
    if (scaled) operands.insert(operands.end(), {{}, scale, b.operand({DType::f32, {c.experts, c.n}})});
    product = b.add(OpKind::grouped_linear, operands);
  } else if (scaled) {
    product = b.add(OpKind::scaled_mm, {x, b.operand({c.w, {c.n, c.k}}), scale, b.operand({DType::f32, {c.n}})},
                    {{"out_dtype", "f32"}});
  } else if (c.dual) {
    product = b.add(OpKind::dual_linear, {x, b.operand({c.w, {c.n, c.k}}), b.operand({c.w, {c.n, c.k}})},
                    {{"out_dtype", "f32"}});
  } else {
    product = b.add(OpKind::linear, {x, b.operand({c.w, {c.n, c.k}})}, {{"out_dtype", "f32"}});
  }
  auto y = product;
  if (c.gated) y = b.add(OpKind::silu_and_mul, {y});
  if (c.combined)
    y = b.add(OpKind::moe_unpermute,
              {y, b.operand({DType::i32, {1, c.choices}}), b.operand({DType::f32, {1, c.choices}})});
  b.result(y);
  b.anchor(product);
  Region region = b.build();
  region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs = c.dual ? 6 : 2;
  return region;
}

/// Products of one row of bf16 weights, of both forms of a gate.
inline std::vector<NamedRegion> bf16_row_regions(const Target* target) {
  std::vector<NamedRegion> list;
  for (const std::int64_t k : {512, 768, 2048, 4096, 8192, 14336})
    for (const std::string front : {"", "norm", "add_norm"}) {
      if (!front.empty() && k > 8192) continue;  // what is normalized before a product are hidden states
      const auto add = [&](const char* form, bool gated, bool dual) {
        list.push_back(
            {fmt::format("{}{}_{}", front, form, k),
             decode_region({.w = DType::bf16, .k = k, .n = 300, .front = front, .gated = gated, .dual = dual},
                           target)});
      };
      add("linear", false, false);
      add("gated", true, false);
      add("dual", false, true);
    }
  return list;
}

/// A token some of whose experts are elsewhere.
inline std::vector<NamedRegion> unweighted_regions(const Target* target) {
  std::vector<NamedRegion> list;
  for (const std::int64_t choices : {1, 6}) {
    DecodeCase c{.w = DType::bf16,
                 .k = 768,
                 .n = 300,
                 .front = "",
                 .experts = 40,
                 .choices = choices,
                 .combined = true,
                 .unweighted = true};
    list.push_back({fmt::format("unweighted_bf16_of_{}", choices), decode_region(c, target)});
    c.w = DType::i8, c.front = "quant";
    list.push_back({fmt::format("unweighted_i8_of_{}", choices), decode_region(c, target)});
  }
  return list;
}

inline std::vector<NamedRegion> decode_regions(const Target* target) {
  std::vector<NamedRegion> list;
  const auto add = [&](const std::string& name, const DecodeCase& c) {
    list.push_back({name, decode_region(c, target)});
  };
  for (const std::int64_t k : {264, 2048, 4096, 8192}) {
    add(fmt::format("gated_i8_{}", k), {.k = k, .front = "", .gated = true});
    for (const char* front : {"quant", "norm_quant", "add_norm_quant"})
      for (const bool gated : {false, true})
        if (k <= 2048 || front == std::string("quant"))
          add(fmt::format("{}_{}{}", front, k, gated ? "_gated" : ""), {.k = k, .front = front, .gated = gated});
    for (const char* front : {"quant", "norm_quant", "add_norm_quant"})
      if (k == 2048 || (k == 264 && front == std::string("quant")))
        add(fmt::format("fp8_{}_{}", front, k),
            {.w = k == 264 ? DType::f8_e5m2 : DType::f8_e4m3, .k = k, .front = front, .gated = k == 264});
    add(fmt::format("gated_bf16_{}", k), {.w = DType::bf16, .k = k, .front = "norm", .gated = true});
    add(fmt::format("router_{}", k), {.w = DType::bf16, .k = k, .front = "add_norm"});
    add(fmt::format("narrow_norm_{}", k), {.w = DType::bf16, .k = k, .front = "norm", .normed = DType::bf16});
    add(fmt::format("narrow_sum_{}", k), {.w = DType::f16, .k = k, .front = "add_norm", .normed = DType::f16});
  }
  for (const DType w : {DType::bf16, DType::i8, DType::f8_e4m3})
    for (const std::int64_t choices : {1, 2, 3, 6, 8}) {
      if (w == DType::f8_e4m3 && choices != 6) continue;
      const bool quantizes = size_of(w) == 1;
      const std::string name = fmt::format("{}_of_{}", name_of(w), choices);
      const std::string front = quantizes ? "permute_quant" : "permute", before = choices % 2 == 0 ? "choose_" : "";
      DecodeCase first{
          .w = w, .k = 2048, .n = 96, .front = before + front, .gated = true, .experts = 40, .choices = choices};
      add("experts_" + name, first);
      first.gated = false, first.k = 264, first.front = front;
      add("experts_ungated_" + name, first);
      for (const std::int64_t k : {48, 768, 1408})
        add(fmt::format("combined_{}_{}", name, k), {.w = w,
                                                     .k = k,
                                                     .n = 300,
                                                     .front = quantizes ? "quant" : "",
                                                     .experts = 40,
                                                     .choices = choices,
                                                     .combined = true});
    }
  return list;
}

}  // namespace cermet

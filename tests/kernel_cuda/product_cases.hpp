// GEMMs with more tiles than a large GPU has SMs, so that each thread block computes several: rings of stages and
// barrier phases go on from tile to tile, and results leave while the next tile is under way.
#pragma once

#include <algorithm>
#include <vector>

#include "op/schema/case.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

/// A case with the kernel that is to take it and how many tiles the busiest of an H200's 132 SMs computes.
struct PersistentCase {
  OpKind op;
  std::string_view kernel;
  std::int64_t rounds;
  Case recipe;
};

inline std::vector<PersistentCase> persistent_cases() {
  const auto real = [](DType t, std::vector<Dim> dims, std::int64_t padding = 0) {
    return CaseOperand{{t, std::move(dims)}, normal(), padding};
  };
  const auto weight = [](DType t, std::vector<Dim> dims, std::int64_t padding = 0) {
    return CaseOperand{{t, std::move(dims)}, t == DType::i8 ? integers(-128, 127) : normal(), padding, true};
  };
  const auto codes = [](std::vector<Dim> dims) {
    return CaseOperand{{DType::i8, std::move(dims)}, integers(-128, 127)};
  };
  const auto scale = [](std::vector<Dim> dims) {
    return CaseOperand{{DType::f32, std::move(dims)}, uniform(0.001, 0.02)};
  };
  const auto to = [](std::string_view dtype) { return Attributes{{"out_dtype", std::string(dtype)}}; };
  /// Experts of 0, 1, 2 .. 9 rows, over and over, and one with many.
  const auto experts = [](std::int64_t count, std::int64_t last) {
    std::vector<double> list{0};
    for (std::int64_t e = 0; e + 1 < count; ++e) list.push_back(list.back() + static_cast<double>(e % 10));
    list.push_back(list.back() + static_cast<double>(last));
    return list;
  };
  constexpr DType bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32, fp8 = DType::f8_e4m3;
  constexpr std::string_view linear = "gemm.linear.hopper", dual = "gemm.dual_linear.hopper",
                             scaled = "gemm.scaled_mm.hopper", grouped = "gemm.grouped_linear.hopper",
                             matmul = "gemm.matmul.hopper";
  std::vector<PersistentCase> list;
  const auto add = [&](OpKind op, std::string_view kernel, std::int64_t rounds, Case recipe) {
    list.push_back({op, kernel, rounds, std::move(recipe)});
  };
  // Tiles of every width, rings that do and do not end with a tile, tails in rows, columns and reduction.
  add(OpKind::linear, linear, 2,
      {"rounds_bf16", {real(bf16, {300, 264}), weight(bf16, {11528, 264}), real(f32, {11528})}, to("f32")});
  add(OpKind::linear, linear, 3, {"rounds_bf16_three", {real(bf16, {200, 72}, 8), weight(bf16, {34056, 72})}});
  add(OpKind::linear, linear, 3,
      {"rounds_f16_one_stage", {real(f16, {640, 64}), weight(f16, {7000, 64}), real(f16, {7000})}});
  add(OpKind::linear, linear, 2, {"rounds_f32", {real(f32, {150, 136}), weight(bf16, {8456, 136})}, to("bf16")});
  add(OpKind::dual_linear, dual, 2,
      {"rounds_bf16", {real(bf16, {150, 264}), weight(bf16, {8456, 264}), weight(bf16, {8456, 264}, 8)}});
  add(OpKind::dual_linear, dual, 2,
      {"rounds_f32_biases",
       {real(f32, {150, 72}), weight(bf16, {8456, 72}), weight(bf16, {8456, 72}), real(bf16, {8456}),
        real(f32, {8456})},
       to("f32")});
  add(OpKind::scaled_mm, scaled, 2,
      {"rounds_i8",
       {codes({300, 272}), weight(DType::i8, {11536, 272}), scale({300}), scale({11536}), real(bf16, {11536})},
       to("bf16")});
  add(OpKind::scaled_mm, scaled, 2,
      {"rounds_i8_no_scales", {codes({300, 144}), weight(DType::i8, {11536, 144})}, to("f32")});
  add(OpKind::scaled_mm, scaled, 2,
      {"rounds_i8_blocks",
       {codes({150, 272}), weight(DType::i8, {8464, 272}), scale({150, 3}), scale({67, 3})},
       to("f16")});
  add(OpKind::scaled_mm, scaled, 2,
      {"rounds_fp8", {real(fp8, {150, 1040}), weight(fp8, {8464, 1040}), scale({150}), scale({8464})}, to("bf16")});
  const std::vector<double> uneven = experts(60, 140), wide = experts(25, 200);
  const auto rows = [](const std::vector<double>& offsets) { return static_cast<std::int64_t>(offsets.back()); };
  const auto offsets = [](const std::vector<double>& of) {
    return CaseOperand{{DType::i32, {static_cast<std::int64_t>(of.size())}}, values(of)};
  };
  add(OpKind::grouped_linear, grouped, 3,
      {"rounds_bf16",
       {real(bf16, {rows(uneven), 136}), weight(bf16, {60, 520, 136}), offsets(uneven), real(bf16, {60, 520})},
       to("f32")});
  add(OpKind::grouped_linear, grouped, 2,
      {"rounds_i8",
       {codes({rows(wide), 144}),
        weight(DType::i8, {25, 1040, 144}),
        offsets(wide),
        {},
        scale({rows(wide)}),
        scale({25, 1040})},
       to("bf16")});
  add(OpKind::grouped_linear, grouped, 2,
      {"rounds_fp8",
       {real(fp8, {rows(wide), 1040}),
        weight(fp8, {25, 528, 1040}),
        offsets(wide),
        {},
        scale({rows(wide)}),
        scale({25, 528})},
       to("bf16")});
  add(OpKind::matmul, matmul, 19,
      {"rounds_batches", {real(bf16, {70, 90, 72}), real(bf16, {70, 520, 72})}, {{"transpose_b", true}}});
  return list;
}

}  // namespace cermet

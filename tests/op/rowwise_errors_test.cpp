// What row-wise operators reject at creation, with the exact messages.
#include <gtest/gtest.h>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

struct Refusal {
  OpKind kind;
  std::vector<std::optional<TensorType>> operands;
  Attributes attributes;
  std::string message;
};

std::string refusal_of(const Refusal& refusal) {
  try {
    make_problem(definition(refusal.kind), refusal.operands, refusal.attributes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using enum DType;

TEST(Refusals, Normalization) {
  const TensorType x{f32, {4, 16}};
  const std::vector<Refusal> refusals{
      {OpKind::add_rms_norm,
       {x, TensorType{f32, {4, 8}}},
       {},
       "add_rms_norm: operand 1 (residual): expected dimensions [4, 16] (those of x), found f32[4, 8]"},
      {OpKind::add_rms_norm,
       {x, x, TensorType{f32, {8}}},
       {},
       "add_rms_norm: operand 2 (weight): expected dimension -1 to be 16 (that of x), found f32[8]"},
      {OpKind::add_rms_norm,
       {x, x},
       {{"eps", -1.0}},
       "add_rms_norm: attribute 'eps': expected a non-negative number, found -1.0"},
      {OpKind::layer_norm,
       {x, TensorType{f32, {16}}, TensorType{f32, {4, 16}}},
       {},
       "layer_norm: operand 2 (bias): expected dimensions [16] (those of weight), found f32[4, 16]"},
      {OpKind::group_norm,
       {TensorType{f32, {2, 6, 5}}},
       {{"groups", std::int64_t{4}}},
       "group_norm: attribute 'groups': expected a positive divisor of 6 channels, found 4"},
      {OpKind::rms_norm_quant,
       {x, std::nullopt, std::nullopt, std::nullopt, TensorType{f32, {}}},
       {},
       "rms_norm_quant: operand 4 (offset): expected nothing without a scale, found f32[]"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(refusal_of(refusal), refusal.message);
}

TEST(Refusals, ActivationAndPosition) {
  const TensorType q{bf16, {5, 4, 16}}, k{bf16, {5, 2, 16}}, table{f32, {50, 8}}, positions{i32, {5}};
  const std::vector<Refusal> refusals{
      {OpKind::silu_and_mul,
       {TensorType{f32, {3, 7}}},
       {},
       "silu_and_mul: operand 0 (x): expected an even, constant last dimension, found f32[3, 7]"},
      {OpKind::silu_and_mul,
       {TensorType{f32, {3, 8}}},
       {{"gate", "middle"}},
       "silu_and_mul: attribute 'gate': expected one of first, second, found \"middle\""},
      {OpKind::silu_and_mul_quant,
       {TensorType{f32, {3, 8}}, TensorType{f32, {8}}},
       {},
       "silu_and_mul_quant: operand 1 (smooth): expected dimensions [4] (half the last one of x), found f32[8]"},
      {OpKind::silu_and_mul_quant,
       {TensorType{f32, {3, 8}}, std::nullopt, std::nullopt, TensorType{f32, {}}},
       {},
       "silu_and_mul_quant: operand 3 (offset): expected nothing without a scale, found f32[]"},
      {OpKind::rope,
       {q, k, table, table, positions},
       {{"rotary_dim", std::int64_t{18}}},
       "rope: attribute 'rotary_dim': expected an even number of at most 16 (the head size; 0 means all of it, which "
       "must then be even), found 18"},
      {OpKind::rope,
       {q, k, table, TensorType{f32, {40, 8}}, positions},
       {},
       "rope: operand 3 (sin): expected dimension 0 to be 50 (that of cos), found f32[40, 8]"},
      {OpKind::rope,
       {q, TensorType{f32, {5, 2, 16}}, table, table, positions},
       {},
       "rope: operand 1 (k): expected bf16 (that of q), found f32"},
      {OpKind::rope,
       {q, k, table, table, TensorType{i32, {4}}},
       {},
       "rope: operand 4 (positions): expected dimensions [5] (the leading ones of q), found i32[4]"},
      {OpKind::rope,
       {q, k, table, table, TensorType{f32, {5}}},
       {},
       "rope: operand 4 (positions): expected i32 or i64, found f32"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(refusal_of(refusal), refusal.message);
}

TEST(Refusals, Quantization) {
  const TensorType x{f32, {4, 16}};
  const std::vector<Refusal> refusals{
      {OpKind::quantize,
       {x, TensorType{f32, {4}}},
       {},
       "quantize: operand 1 (scale): expected dimensions that broadcast to f32[4, 16], found f32[4]"},
      {OpKind::dynamic_quant,
       {x},
       {{"range", "127.5"}, {"out_dtype", "f8_e4m3"}},
       "dynamic_quant: attribute 'range': expected \"127\" for fp8, found \"127.5\""},
      {OpKind::dynamic_quant,
       {x},
       {{"asymmetric", true}, {"out_dtype", "f8_e5m2"}},
       "dynamic_quant: attribute 'asymmetric': expected false for fp8, found true"},
      {OpKind::dynamic_quant,
       {x, TensorType{f32, {3, 16}}},
       {},
       "dynamic_quant: operand 1 (smooth): expected [K] without a group index, found f32[3, 16]"},
      {OpKind::dynamic_quant,
       {x},
       {{"granularity", "group"}, {"group_size", std::int64_t{0}}},
       "dynamic_quant: attribute 'group_size': expected a positive number, found 0"},
      {OpKind::dequantize,
       {TensorType{i8, {4, 16}}, TensorType{f32, {16}}},
       {},
       "dequantize: operand 1 (scale): expected dimensions [4] (those of q without the last), found f32[16]"},
      {OpKind::dequant_swiglu_quant,
       {TensorType{i32, {4, 16}}, TensorType{f32, {16}}, TensorType{f32, {4}}},
       {{"quantization", "static"}},
       "dequant_swiglu_quant: attribute 'quantization': expected \"dynamic\" without smooth, which is the static "
       "scale, found \"static\""},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(refusal_of(refusal), refusal.message);
}

TEST(Refusals, Elementwise) {
  const std::vector<Refusal> refusals{
      {OpKind::add,
       {TensorType{f32, {4, 16}}, TensorType{f32, {4, 15}}},
       {},
       "add: operand 1 (b): expected dimensions that broadcast with [4, 16], found [4, 15]"},
      {OpKind::add,
       {TensorType{f32, {4}}, TensorType{bf16, {4}}},
       {},
       "add: operand 1 (b): expected f32 (that of a), found bf16"},
      {OpKind::exp, {TensorType{i32, {4}}}, {}, "exp: operand 0 (x): expected f16, bf16, f32 or f64, found i32"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(refusal_of(refusal), refusal.message);
}

TEST(Inference, KeepsSymbolicTokens) {
  const Dim tokens = Dim::symbol("T");
  const Problem quantized =
      make_problem(definition(OpKind::dynamic_quant), {TensorType{bf16, {tokens, 300}}}, {{"granularity", "group"}});
  EXPECT_EQ(quantized.outputs[1].to_string(), "f32[T, 3]");
  const TensorType table{f32, {50, 8}};
  const Problem rotated = make_problem(
      definition(OpKind::rope),
      {TensorType{bf16, {tokens, 4, 16}}, TensorType{bf16, {tokens, 2, 16}}, table, table, TensorType{i32, {tokens}}},
      {});
  EXPECT_EQ(rotated.outputs[1].to_string(), "bf16[T, 2, 16]");
  const Problem sum = make_problem(definition(OpKind::add), {TensorType{f32, {tokens, 8}}, TensorType{f32, {8}}}, {});
  EXPECT_EQ(sum.outputs[0].to_string(), "f32[T, 8]");
}

}  // namespace
}  // namespace cermet

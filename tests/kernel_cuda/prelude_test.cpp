// Epilogues as CUDA source.
#include "kernel/cuda/prelude.hpp"

#include <gtest/gtest.h>

#include "device/device.hpp"
#include "jit/wrapper.hpp"
#include "kernel/cuda/kernels.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/region.hpp"

namespace cermet::cuda {
namespace {

/// The source with a plain name.
std::string text_of(GeneratedType type) {
  const std::size_t at = type.source.find(type.name);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(type.name.find("Epilogue_"), 0u);
  return at == std::string::npos ? type.source : type.source.replace(at, type.name.size(), "NAME");
}

TEST(Prelude, OfAnEpilogueWithoutSteps) {
  const Problem product = make_problem(definition(OpKind::linear),
                                       {TensorType{DType::bf16, {4, 64}}, TensorType{DType::bf16, {32, 64}}}, {});
  EXPECT_EQ(text_of(epilogue_type(product_epilogue(product).program, {}, false)),
            R"(#include "kernel/cuda/device/pointwise/functions.cuh"

struct NAME {
  static constexpr int extras = 0;
  static constexpr bool column_sums = false;
  static constexpr cermet::DType out = cermet::DType::bf16;
  static constexpr cermet::epilogue::Extra extra[] = {{}};
  static CERMET_DEVICE float value(float in0, const cermet::epilogue::Values<0>&) {
    return in0;
  }
  static constexpr bool pairs = false;
};
)");
}

TEST(Prelude, OfZeroPointsAndAnIntegerResult) {
  const TensorType a{DType::i8, {4, 64}}, b{DType::i8, {32, 64}};
  const Problem product = make_problem(definition(OpKind::scaled_mm), {a, b, {}, {}, {}, TensorType{DType::i32, {4}}},
                                       {{"out_dtype", "i32"}});
  const EpilogueExtra zero_points{DType::i32, TileProgram::Extent::row, 1};
  EXPECT_EQ(text_of(epilogue_type(product_epilogue(product).program, std::span(&zero_points, 1), true)),
            R"(#include "kernel/cuda/device/pointwise/functions.cuh"

struct NAME {
  static constexpr int extras = 1;
  static constexpr bool column_sums = true;
  static constexpr cermet::DType out = cermet::DType::i32;
  static constexpr cermet::epilogue::Extra extra[] = {{cermet::DType::i32, cermet::epilogue::Extent::row, 1}};
  static CERMET_DEVICE int32_t value(int32_t in0, int32_t in1, const cermet::epilogue::Values<1>& x) {
    const int32_t x0 = x.integer(0);
    const int32_t s0 = static_cast<int32_t>(static_cast<uint32_t>(x0) * static_cast<uint32_t>(in1));
    const int32_t s1 = static_cast<int32_t>(static_cast<uint32_t>(in0) - static_cast<uint32_t>(s0));
    return s1;
  }
  static constexpr bool pairs = false;
};
)");
}

TEST(Prelude, OfTwoResultsAtATime) {
  const Problem product =
      make_problem(definition(OpKind::linear), {TensorType{DType::f16, {4, 64}}, TensorType{DType::f16, {32, 64}}}, {});
  const Problem add = make_problem(definition(OpKind::add), {product.outputs[0], TensorType{DType::f16, {32}}}, {});
  const EpilogueExtra bias{DType::f16, TileProgram::Extent::column, 1};
  Region region = chained(product, add);
  region.anchor = 0;
  const std::string text = text_of(epilogue_type(product_epilogue(region).program, std::span(&bias, 1), false));
  EXPECT_NE(text.find("static constexpr bool pairs = true;"), std::string::npos) << text;
  EXPECT_NE(text.find("s0p = cermet::pointwise::f16_pair(in0a, in0b);"), std::string::npos) << text;
  EXPECT_NE(text.find("s1p = cermet::pointwise::add_pairs(s0p, x0p);"), std::string::npos) << text;
}

// All that is compiled for a product with bias, GELU, a scale for each row and a residual.
TEST(Prelude, AProgramOfHopperWithALongEpilogue) {
  const auto f16 = [](std::vector<Dim> dims) { return TensorType{DType::f16, std::move(dims)}; };
  Problem product = make_problem(definition(OpKind::linear), {f16({256, 1024}), f16({512, 1024}), f16({512})}, {});
  product.constant_inputs = 0b110;
  Region region = followed(product, {{OpKind::gelu}, {OpKind::mul, f16({256, 1})}, {OpKind::add, f16({256, 512})}});
  const auto device = make_null_device(90);
  region.set_target(device->target());
  const auto kernels = kernels_of(OpKind::linear);
  const Kernel& kernel = **std::ranges::find(kernels, "gemm.linear.hopper", &Kernel::name);
  EXPECT_EQ(kernel.declines(region), std::nullopt);
  const std::vector<Program> programs = kernel.programs(region, {{"tile_m", 128}, {"tile_n", 128}, {"stages", 5}});
  expect_golden("kernel_cuda/golden/linear_hopper_epilogue.cu", jit::wrapper_source(programs.front()));
}

}  // namespace
}  // namespace cermet::cuda

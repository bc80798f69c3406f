// Nodes before a product, which run where its rows are packed: the same bits as kernels one after another.
#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

Region with_constants(const RegionBuilder& b, const Value& anchor, std::uint64_t inputs) {
  RegionBuilder copy = b;
  copy.anchor(anchor);
  Region region = copy.build();
  region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs = inputs;
  return region;
}

std::string reason(const Region& region) {
  for (const Kernel* kernel : cpu::kernels_of(OpKind::linear))
    if (kernel->name == "gemm.linear.packed") return kernel->declines(region).value_or("taken");
  return {};
}

/// What the run of a region throws.
std::string error_of_run(const Region& region, const std::vector<Fill>& fills) {
  for (const Kernel* kernel : cpu::kernels_of(OpKind::linear)) {
    if (kernel->name != "gemm.linear.packed") continue;
    ThreadPool pool(2);
    const std::vector<OwnedTensor> operands = make_operands(region, fills), results = make_results(region);
    try {
      run_one(region, *kernel, pool, views_of(operands), views_of(results));
    } catch (const Error& error) {
      return error.what();
    }
  }
  return "no error";
}

TEST(Prologue, Normalization) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t rows : {1, 4, 33, 1030}) {
      RegionBuilder b(Rounding::strict);
      const Value normed = b.add(OpKind::rms_norm, {b.operand(type(dtype, {rows, 96})), b.operand(type(dtype, {96}))});
      const Value product = b.add(OpKind::linear, {normed, b.operand(type(dtype, {40, 96}))});
      b.result(product);
      expect_region_conforms(with_constants(b, product, 2), {normal(), normal(), normal(0.1)}, 1);
    }
}

TEST(Prologue, OfWeightsThatAreNotKnownBeforehand) {
  for (const std::int64_t rows : {1, 9, 130}) {
    RegionBuilder norm(Rounding::strict), groups(Rounding::strict);
    const TensorType x = type(DType::bf16, {rows, 70});
    const Value sum =
        norm.add(OpKind::add_rms_norm, {norm.operand(x), norm.operand(x), norm.operand(type(DType::f32, {70}))});
    norm.result(norm.result_of(sum.node, 1));
    norm.result(norm.add(OpKind::dual_linear,
                         {sum, norm.operand(type(DType::bf16, {40, 70})), norm.operand(type(DType::bf16, {40, 70}))}));
    expect_region_conforms(norm.build(), {normal(), normal(), normal(), normal(0.1), normal(0.1)}, 1);
    const Value gate = groups.add(OpKind::mul, {groups.add(OpKind::silu, {groups.operand(x)}), groups.operand(x)});
    groups.result(groups.add(OpKind::grouped_linear, {gate, groups.operand(type(DType::bf16, {2, 40, 70})),
                                                      groups.operand(type(DType::i32, {3}))}));
    expect_region_conforms(groups.build(), {normal(), normal(), normal(0.1), values({0, 1, static_cast<double>(rows)})},
                           1);
  }
}

TEST(Prologue, NormalizationWhoseSumLeaves) {
  RegionBuilder b(Rounding::strict);
  const TensorType t = type(DType::bf16, {30, 64});
  const Value normed = b.add(OpKind::add_rms_norm, {b.operand(t), b.operand(t), b.operand(type(DType::bf16, {64}))});
  const Value w = b.operand(type(DType::bf16, {50, 64})), product = b.add(OpKind::linear, {normed, w});
  b.result(b.result_of(0, 1));
  b.result(b.add(OpKind::add, {product, b.operand(type(DType::bf16, {30, 50}))}));
  expect_region_conforms(with_constants(b, product, 2), {normal(), normal(), normal(), normal(0.1), normal()}, 1);
}

TEST(Prologue, NormalizationOfRowsInSeveralDimensions) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t rows : {1, 7, 350}) {
      RegionBuilder b(Rounding::strict);
      const TensorType vector = type(dtype, {96});
      const Value normed =
          b.add(OpKind::layer_norm, {b.operand(type(dtype, {2, rows, 2, 96})), b.operand(vector), b.operand(vector)});
      const Value product = b.add(OpKind::linear, {normed, b.operand(type(dtype, {40, 96}))});
      b.result(b.add(OpKind::gelu, {product}));
      expect_region_conforms(with_constants(b, product, 2), {normal(), normal(), normal(), normal(0.1)}, 1);
    }
}

TEST(Prologue, NormalizationThatLeaves) {
  for (const std::int64_t rows : {1, 33, 700}) {
    RegionBuilder b(Rounding::strict);
    const Value normed =
        b.add(OpKind::layer_norm, {b.operand(type(DType::f32, {2, rows, 96})), b.operand(type(DType::f32, {96}))});
    const Value product = b.add(OpKind::linear, {normed, b.operand(type(DType::f32, {40, 96}))});
    b.result(b.add(OpKind::relu, {product}));
    b.result(normed);
    expect_region_conforms(with_constants(b, product, 2), {normal(), normal(), normal(0.1)}, 1);
  }
}

/// Words by an index, which is an operand, and positions, which may repeat among sequences, summed and normalized: as
/// they begin a transformer.
struct Embeddings {
  RegionBuilder b{Rounding::strict};
  Value sum, normed, product;

  Embeddings(const Dims& tokens, const Dims& positions, DType index = DType::i64, DType dtype = DType::f32) {
    Dims table = positions;
    table.emplace_back(96);
    const Value words = b.add(OpKind::gather, {b.operand(type(dtype, {50, 96})), b.operand(type(index, tokens))},
                              {{"axis", std::int64_t{0}}});
    sum = b.add(OpKind::add, {words, b.operand(type(dtype, table))});
    normed = b.add(OpKind::layer_norm, {sum, b.operand(type(dtype, {96})), b.operand(type(dtype, {96}))});
    product = b.add(OpKind::linear, {normed, b.operand(type(dtype, {40, 96}))});
  }
  Region region() const { return with_constants(b, product, 2); }
};
const std::vector<Fill> embedding_fills{normal(), integers(-50, 49), normal(), normal(), normal(), normal(0.1)};

TEST(Prologue, EmbeddingsAndTheirNorm) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [tokens, positions] : {std::pair{Dims{1, 7}, Dims{1, 7}},
                                            {Dims{3, 350}, Dims{1, 350}},
                                            {Dims{3, 5}, Dims{5}},
                                            {Dims{2, 9}, Dims{1, 1}},
                                            {Dims{33}, Dims{33}}}) {
      Embeddings e(tokens, positions, tokens.size() == 1 ? DType::i32 : DType::i64, dtype);
      e.b.result(e.product);
      e.b.result(e.normed);
      e.b.result(e.sum);
      EXPECT_EQ(reason(e.region()), "taken");
      expect_region_conforms(e.region(), embedding_fills, 1);
    }
}

TEST(Prologue, EmbeddingsThatDoNotGoByRowsStay) {
  Embeddings e({3, 5}, {3, 1});
  e.b.result(e.product);
  EXPECT_EQ(reason(e.region()), "layer_norm before linear: an operand repeats among rows");
}

TEST(Prologue, AnIndexOutsideIsTheGathersError) {
  Embeddings e({2, 4}, {1, 4});
  e.b.result(e.product);
  std::vector<Fill> fills = embedding_fills;
  fills[1] = values({0, 1, 2, 3, 4, 5, 6, 50});
  EXPECT_EQ(error_of_run(e.region(), fills), "gather: operand 1 (indices): expected an index in [-50, 50), found 50");
}

/// [2, 4 h, 6, 32] by windows of [4, 6], each of them rolled by one row.
Value rolled_windows(RegionBuilder& b, const Value& image, std::int64_t h) {
  const auto rows = [&](std::int64_t first, std::int64_t last) {
    return b.add(OpKind::slice, {image}, {{"axes", Ints{1}}, {"starts", Ints{first}}, {"ends", Ints{last}}});
  };
  const Value front = rows(1, 4 * h), back = rows(0, 1);
  const Value rolled = b.add(OpKind::concat, {front, back}, {{"axis", std::int64_t{1}}});
  const Value parted = b.add(OpKind::reshape, {rolled}, {{"shape", Ints{2, h, 4, 2, 3, 32}}});
  const Value turned = b.add(OpKind::transpose, {parted}, {{"permutation", Ints{0, 1, 3, 2, 4, 5}}});
  return b.add(OpKind::reshape, {turned}, {{"shape", Ints{4 * h, 12, 32}}});
}

TEST(Prologue, RowsThatAreMoved) {
  for (const std::int64_t h : {1, 5, 32})
    for (const bool normalizes : {false, true}) {
      RegionBuilder b(Rounding::strict);
      Value x = rolled_windows(b, b.operand(type(DType::f32, {2, 4 * h, 6, 32})), h);
      std::vector<Fill> fills{normal()};
      if (normalizes) {
        x = b.add(OpKind::layer_norm, {x, b.operand(type(DType::f32, {32})), b.operand(type(DType::f32, {32}))});
        fills.insert(fills.end(), {normal(), normal()});
      }
      const Value product = b.add(OpKind::linear, {x, b.operand(type(DType::f32, {40, 32}))});
      b.result(b.add(OpKind::add, {product, b.operand(type(DType::f32, {4 * h, 12, 40}))}));
      fills.insert(fills.end(), {normal(0.1), normal()});
      expect_region_conforms(with_constants(b, product, 2), fills, 1);
    }
}

TEST(Prologue, MeanOfImages) {
  for (const std::int64_t images : {1, 3}) {
    RegionBuilder b(Rounding::strict);
    const Value mean = b.add(OpKind::reduce_mean, {b.operand(type(DType::f32, {images, 7, 5, 96}))},
                             {{"axes", Ints{1, 2}}, {"keepdims", true}});
    const Value rows = b.add(OpKind::reshape, {mean}, {{"shape", Ints{images, 96}}});
    const Value product =
        b.add(OpKind::linear, {rows, b.operand(type(DType::f32, {40, 96})), b.operand(type(DType::f32, {40}))});
    b.result(b.add(OpKind::relu, {product}));
    expect_region_conforms(with_constants(b, product, 6), {normal(), normal(0.1), normal()}, 1);
  }
}

TEST(Prologue, DeclinesMeansOfManyRowsOrReadElsewhere) {
  for (const bool leaves : {false, true}) {
    RegionBuilder b(Rounding::strict);
    const Value mean = b.add(OpKind::reduce_mean, {b.operand(type(DType::f32, {leaves ? 2 : 65, 3, 8}))},
                             {{"axes", Ints{1}}, {"keepdims", false}});
    const Value product = b.add(OpKind::linear, {mean, b.operand(type(DType::f32, {4, 8}))});
    b.result(product);
    if (leaves) b.result(mean);
    EXPECT_EQ(reason(with_constants(b, product, 2)), leaves ? "reduce_mean before linear: others read it, too"
                                                            : "reduce_mean before linear: its rows are many");
  }
}

TEST(Prologue, ElementwiseChain) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    RegionBuilder b(Rounding::strict);
    const TensorType t = type(dtype, {21, 130}), w = type(dtype, {33, 130});
    const Value gated = b.add(OpKind::mul, {b.add(OpKind::silu, {b.operand(t)}), b.operand(t)});
    const Value scaled = b.add(OpKind::mul, {gated, b.operand(type(dtype, {21, 1}))});
    const Value product = b.add(OpKind::dual_linear, {scaled, b.operand(w), b.operand(w)}, {{"activation", "gelu"}});
    b.result(product);
    b.result(gated);
    expect_region_conforms(with_constants(b, product, 6), {normal(), normal(), normal(), normal(0.1), normal(0.1)}, 1,
                           8);
  }
}

TEST(Prologue, GatedGelu) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t rows : {1, 33, 700}) {
      RegionBuilder b(Rounding::strict);
      const Value gated = b.add(OpKind::gelu_and_mul, {b.operand(type(dtype, {2, rows, 192}))}, {{"gate", "second"}});
      const Value product = b.add(OpKind::linear, {gated, b.operand(type(dtype, {40, 96}))});
      b.result(b.add(OpKind::add, {product, b.operand(type(dtype, {2, rows, 40}))}));
      if (rows == 33) b.result(gated);
      expect_region_conforms(with_constants(b, product, 2), {normal(), normal(0.1), normal()}, 1);
    }
}

TEST(Prologue, OfGroups) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool gated : {false, true})
      for (const std::int64_t rows : {3, 50, 700}) {
        RegionBuilder b(Rounding::strict);
        const Value x = b.operand(type(dtype, {rows, gated ? 142 : 71}));
        const Value made = b.add(gated ? OpKind::silu_and_mul : OpKind::gelu, {x});
        const Value w = b.operand(type(dtype, {4, 40, 71})), offsets = b.operand(type(DType::i64, {5}));
        const Value product = b.add(OpKind::grouped_linear, {made, w, offsets});
        b.result(b.add(OpKind::relu, {product}));
        const Fill bounds = values({0, 2, 2, static_cast<double>(rows - 1), static_cast<double>(rows)});
        expect_region_conforms(with_constants(b, product, 2), {normal(), normal(0.1), bounds}, 1);
      }
}

TEST(Prologue, ScalesOfTokens) {
  for (const std::int64_t rows : {1, 33, 70})
    for (const bool activates : {false, true}) {
      RegionBuilder b(Rounding::strict);
      const Value q = b.operand(type(DType::i8, {rows, 70})), scale = b.operand(type(DType::f32, {rows})),
                  offset = b.operand(type(DType::i32, {rows}));
      Value x = b.add(OpKind::dequantize, {q, scale, offset}, {{"granularity", "token"}});
      if (activates) x = b.add(OpKind::relu, {x});
      const Value product = b.add(OpKind::linear, {x, b.operand(type(DType::f32, {40, 70}))});
      b.result(product);
      expect_region_conforms(with_constants(b, product, 2),
                             {integers(-127, 127), uniform(0.005, 0.02), integers(-20, 20), normal(0.1)}, 1);
    }
}

TEST(Prologue, DeclinesScalesOfTokensThatAreAlsoColumns) {
  RegionBuilder b(Rounding::strict);
  const Value scale = b.operand(type(DType::f32, {64}));
  const Value x = b.add(OpKind::dequantize, {b.operand(type(DType::i8, {64, 64})), scale}, {{"granularity", "token"}});
  const Value product = b.add(OpKind::linear, {b.add(OpKind::add, {x, scale}), b.operand(type(DType::f32, {40, 64}))});
  b.result(product);
  EXPECT_EQ(reason(with_constants(b, product, 2)), "add before linear: an operand goes by row and by column");
}

TEST(Prologue, DeclinesNormalizationOfTheWholeMatrix) {
  const TensorType t = type(DType::f32, {64, 96});
  for (const OpKind op : {OpKind::rms_norm, OpKind::add_rms_norm, OpKind::layer_norm}) {
    RegionBuilder b(Rounding::strict);
    std::vector<Value> operands{b.operand(t), b.operand(t)};
    if (op != OpKind::rms_norm) operands.push_back(b.operand(t));
    const Value product = b.add(OpKind::linear, {b.add(op, operands), b.operand(type(DType::f32, {40, 96}))});
    b.result(product);
    if (op == OpKind::add_rms_norm) b.result(b.result_of(0, 1));
    EXPECT_EQ(reason(with_constants(b, product, 2)),
              fmt::format("{} before linear: its weight covers several dimensions", definition(op).name));
  }
}

TEST(Prologue, DeclinesRowsThatAreMovedByElementsOrReadElsewhere) {
  const TensorType image = type(DType::f32, {8, 64}), w = type(DType::f32, {64, 8});
  RegionBuilder columns(Rounding::strict);
  const Value turned = columns.add(OpKind::transpose, {columns.operand(image)}, {{"permutation", Ints{1, 0}}});
  const Value first = columns.add(OpKind::linear, {turned, columns.operand(w)});
  columns.result(first);
  EXPECT_EQ(reason(with_constants(columns, first, 2)),
            "transpose before linear: runs of 4 bytes stay together, and 64 are worth a copy of their own");
  RegionBuilder elsewhere(Rounding::strict);
  const Value half = elsewhere.add(OpKind::slice, {elsewhere.operand(image)},
                                   {{"axes", Ints{0}}, {"starts", Ints{4}}, {"ends", Ints{8}}});
  const Value second = elsewhere.add(OpKind::linear, {half, elsewhere.operand(type(DType::f32, {8, 64}))});
  elsewhere.result(second);
  elsewhere.result(half);
  EXPECT_EQ(reason(with_constants(elsewhere, second, 2)), "slice before linear: what is moved is read elsewhere");
}

TEST(Prologue, Declines) {
  const TensorType t = type(DType::bf16, {4, 64}), w = type(DType::bf16, {64, 64});
  RegionBuilder softmax(Rounding::strict);
  const Value weights = softmax.add(OpKind::softmax, {softmax.operand(t)}),
              first = softmax.add(OpKind::linear, {weights, softmax.operand(w)});
  softmax.result(first);
  EXPECT_EQ(reason(with_constants(softmax, first, 2)),
            "softmax before linear: only elementwise operators, a normalization, with what is elementwise or gathered "
            "before it, or a gate can precede");
  RegionBuilder fast(Rounding::fast);
  const Value product = fast.add(OpKind::linear, {fast.add(OpKind::relu, {fast.operand(t)}), fast.operand(w)});
  fast.result(product);
  EXPECT_EQ(reason(with_constants(fast, product, 2)), "relu before linear: float32 is packed as the operand's type");
}

}  // namespace
}  // namespace cermet

// Graphs of operators through the C and the C++ interface.
#include "cermet/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/api/refusal.hpp"
#include "tests/api/small_graph.hpp"
#include "tests/support/heap.hpp"

namespace cermet::test {
namespace {

TEST(GraphFace, RunsForEverySizeOfItsRange) {
  const graph made = small_graph();
  session compiled = made.compile();
  EXPECT_EQ(compiled.inputs()[0].text, "f32[T, 2]");
  EXPECT_EQ(compiled.inputs()[0].shape, (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(compiled.inputs()[0].symbols, (std::vector<std::string>{"T", "2"}));
  EXPECT_EQ(compiled.outputs()[1].name, "product");
  for (const std::int64_t rows : {1, 3, 8}) {
    Values given, sum;
    for (std::int64_t i = 0; i < 2 * rows; ++i) given.push_back(static_cast<float>(i) - 2);
    for (const float v : given) sum.push_back(std::max(2 * v, 0.0f) + v);
    const std::vector<tensor> results = compiled(tensor({rows, 2}, given));
    EXPECT_EQ(results[0].values(), sum);
    EXPECT_EQ(results[1].values()[0], -4);
  }
  EXPECT_GT(compiled.steps(), 0u);
  EXPECT_GE(compiled.constant_bytes(), 16u);
  EXPECT_NE(compiled.explain().find("select-kernels: "), std::string::npos);
}

TEST(GraphFace, WritesTheCallersMemoryAndAllocatesNothing) {
  session compiled = small_graph().compile();
  const tensor x({3, 2}, Values{1, 2, 3, 4, 5, 6}), y({3, 2}), product({3, 2});
  compiled.run({x}, {y, product});
  compiled.run({x}, {y, product});
  EXPECT_EQ(y.values(), (Values{3, 6, 9, 12, 15, 18}));
  EXPECT_EQ(product.values(), (Values{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(compiled.result(0).data(), y.data());
  const DLTensor in = x.dl(), first = y.dl();
  const DLTensor* const inputs[]{&in};
  DLTensor out = first, *const outputs[]{&out, nullptr};
  ASSERT_EQ(cermet_session_run(compiled.get(), inputs, 1, outputs, 2, nullptr), CERMET_OK);
  const std::int64_t before = heap::allocations();
  ASSERT_EQ(cermet_session_run(compiled.get(), inputs, 1, outputs, 2, nullptr), CERMET_OK);
  EXPECT_EQ(heap::allocations(), before);
  EXPECT_NE(compiled.result(1).data(), product.data()) << "a result that was not given is the session's own";
  EXPECT_EQ(compiled.result_copy(1).values(), product.values());
}

TEST(GraphFace, ResultsInAnInputsMemoryAreWrittenWhenItIsRead) {
  session compiled = small_graph().compile();
  const tensor x({2, 2}, Values{1, -2, 3, -4}), product({2, 2});
  compiled.run({x}, {x, product});
  EXPECT_EQ(x.values(), (Values{3, -2, 9, -4}));
  EXPECT_EQ(product.values(), (Values{2, -4, 6, -8}));
  EXPECT_SAYS(compiled.run({x}, {x}), "small: expected 2 outputs or none, found 1");
  EXPECT_SAYS(compiled.run({x}, {product, product}),
              "output 1 (product): expected memory of its own, found that of output 0");
}

TEST(GraphFace, AValueMayBeSeveralResultsAndAnInputOne) {
  graph made("doubles");
  const value x = made.input("x", dtype::f32, {2});
  const value y = made.neg(x);
  made.output("a", y);
  made.output("b", y);
  made.output("same", x);
  made.output("row", made.reshape(y, {{1, 2}}));
  session compiled = made.compile();
  const tensor given({2}, Values{1, 2});
  const std::vector<tensor> results = compiled(given);
  EXPECT_EQ(results[0].values(), (Values{-1, -2}));
  EXPECT_EQ(results[1].values(), (Values{-1, -2}));
  EXPECT_EQ(results[2].data(), given.data());
  EXPECT_EQ(results[3].values(), (Values{-1, -2}));
  EXPECT_EQ(results[3].shape(), (std::vector<std::int64_t>{1, 2}));
  const tensor a({2}), other({2});
  EXPECT_SAYS(compiled.run({given}, {a, tensor(), other, tensor()}),
              "output 2 (same): expected the memory of input 'x', which it shares, or none, found another");
  EXPECT_SAYS(compiled.run({given}, {given, tensor(), tensor(), tensor()}),
              "output 0 (a): expected memory of its own, found that of input 'x'");
}

TEST(GraphFace, TextIsTheSameGraph) {
  graph made = small_graph();
  {
    const auto layer = made.scope("layers.0");
    const auto part = made.scope("gate");
    made.output("gate", made.silu(made.find("x")));
  }
  const value two = made.literal("two", tensor({1}, Values{2}));
  made.output("more", made.apply("mul", {made.find("x"), two}, {}, {"doubled"}).front());
  EXPECT_EQ(made.info(made.find("doubled")).text, "f32[T, 2]");
  const std::string text = made.text();
  EXPECT_NE(text.find("// layers.0.gate"), std::string::npos) << text;
  graph copy = graph::parse(text);
  EXPECT_EQ(copy.text(), text);
  EXPECT_SAYS(copy.compile(), "constant 'w': expected values, given by cermet_graph_set_constant(), found none");
  EXPECT_SAYS(copy.set_constant("two", twice),
              "constant 'two': expected a constant that graph 'small' declares without values, found another value");
  EXPECT_SAYS(copy.set_constant("v", twice), "found none");
  copy.set_constant("w", twice);
  const tensor x({1, 2}, Values{3, -1});
  session a = made.compile(), b = copy.compile({{}, "none"});
  const std::vector<tensor> left = a(x), right = b(x);
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i].values(), right[i].values()) << i;
  EXPECT_SAYS(graph::parse("graph x {"), "graph text, line 2: expected '}', found the end");
}

TEST(GraphFace, MarksSuperKernels) {
  graph made("marked");
  const value x = made.input("x", dtype::f32, {4});
  value y;
  {
    const auto scope = made.super_kernel("sp1", "stream-fusion=1:strict-scope-check=bypass");
    y = made.relu(x);
    const auto outside = made.super_kernel();
    y = made.neg(y);
  }
  {
    const auto again = made.super_kernel("sp1");
    made.output("y", made.exp(y));
  }
  made.output("z", made.sin(y));
  const std::string text = made.text();
  EXPECT_NE(text.find("super_kernel sp1 \"stream-fusion=1:strict-scope-check=bypass\""), std::string::npos) << text;
  for (const char* line :
       {"relu(%x) : f32[4] in sp1", "neg(%relu) : f32[4] outside", "exp(%neg) : f32[4] in sp1", "sin(%neg) : f32[4]\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  session marked = made.compile();
  const tensor given({4}, Values{1, -2, 3, 0});
  graph plain("plain");
  const value p = plain.neg(plain.relu(plain.input("x", dtype::f32, {4})));
  plain.output("y", plain.exp(p));
  EXPECT_EQ(marked(given)[0].values(), plain.compile()(given)[0].values());
  compile_options all;
  all.super_kernel = "decode";
  EXPECT_EQ(plain.compile(all)(given)[0].values(), marked(given)[0].values());
  all.super_kernel = "sideways";
  EXPECT_SAYS(plain.compile(all), "sideways");
  EXPECT_SAYS((void)made.super_kernel("sp2", "fast=1"), "super-kernel 'sp2'");
  EXPECT_SAYS((void)made.super_kernel("sp1", "stream-fusion=0"), "super-kernel 'sp1'");
  expect_refused(cermet_graph_super_kernel_begin(made.get(), nullptr, "width=2"),
                 {"super-kernel without a name", "found 'width=2'"});
  expect_refused(cermet_graph_super_kernel_end(made.get()), {"super-kernel: expected one that was begun, found none"});
}

TEST(GraphFace, LeavesDefaultsOutOfItsText) {
  graph made("norm");
  const value x = made.input("x", dtype::f32, {"T", 4});
  made.output("y", made.rms_norm(x, {{}, 1e-3}));
  EXPECT_NE(made.text().find("rms_norm(%x) {eps = 0.001} : f32[T, 4]"), std::string::npos) << made.text();
}

TEST(GraphFace, OperatorsOfSeveralResultsAndListsOfOperands) {
  graph made("several");
  const value x = made.input("x", dtype::f32, {2, 4});
  const nodes::dynamic_quant_results codes = made.dynamic_quant(x);
  EXPECT_TRUE(codes.q);
  EXPECT_TRUE(codes.scale);
  EXPECT_FALSE(codes.zero_point);
  const std::vector<value> halves = made.split(x, {1, {2, 2}});
  ASSERT_EQ(halves.size(), 2u);
  made.output("swapped", made.concat({halves[1], halves[0]}, {1}));
  made.output("back", made.dequantize(codes.q, codes.scale));
  session compiled = made.compile();
  const std::vector<tensor> results = compiled(tensor({2, 4}, Values{127, 0, 1, -127, 1, 2, 3, 127}));
  EXPECT_EQ(results[0].values(), (Values{1, -127, 127, 0, 3, 127, 1, 2}));
  EXPECT_EQ(results[1].values(), (Values{127, 0, 1, -127, 1, 2, 3, 127}));
}

TEST(GraphFace, StateIsUpdatedInPlace) {
  graph made("state");
  const value key = made.input("key", dtype::f32, {"T", 1, 4}), val = made.input("value", dtype::f32, {"T", 1, 4});
  const value keys = made.input("keys", dtype::f32, {2, 1, 8, 4}),
              vals = made.input("values", dtype::f32, {2, 1, 8, 4}), slots = made.input("slots", dtype::i64, {"T"});
  const auto written = made.kv_cache_write(key, val, keys, vals, slots);
  made.output("new_keys", written.k_cache);
  made.output("new_values", written.v_cache);
  session compiled = made.compile({{{"T", 4}}});
  const tensor k({1, 1, 4}, Values{1, 2, 3, 4}), cache({2, 1, 8, 4}, Values(64)), other({2, 1, 8, 4}, Values(64)),
      slot({1}, dtype::i64);
  static_cast<std::int64_t*>(slot.data())[0] = 5;
  EXPECT_EQ(cermet_session_output_alias(compiled.get(), 0), 2);
  compiled.run({k, k, cache, other, slot});
  EXPECT_EQ(cache.values()[20], 1);
  EXPECT_EQ(cache.values()[23], 4);
  EXPECT_EQ(compiled.result(0).data(), cache.data());
  EXPECT_SAYS(compiled.run({k, k, cache, other, slot}, {other, tensor()}), "expected the memory of input 'keys'");
}

TEST(GraphFace, SessionsOutliveGraphAndHandle) {
  std::unique_ptr<session> compiled;
  {
    const handle cpu("cpu", 1);
    compiled = std::make_unique<session>(small_graph(cpu).compile());
  }
  EXPECT_EQ((*compiled)(tensor({1, 2}, Values{1, 2})).front().values(), (Values{3, 6}));
}

void expect_compiles_only(const char* device) {
  const handle on(device, 1);
  session compiled = small_graph(on).compile();
  EXPECT_GT(compiled.steps(), 0u);
  std::vector<std::int64_t> shape{2, 2};
  const DLDevice place = std::string(device) == "null" ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, 0};
  const tensor x = tensor::view(nullptr, shape, dtype::f32, {}, place);
  compiled.run({x}, {x, tensor()});
  EXPECT_SAYS(compiled.result(0), "expected a device that computes");
}

TEST(GraphFace, CompilesOnTheNullDevice) { expect_compiles_only("null"); }

#ifdef CERMET_HAS_CUDA_PLUGIN
TEST(GraphFace, CompilesOnANullGpu) { expect_compiles_only("null:sm_90"); }
#endif

}  // namespace
}  // namespace cermet::test

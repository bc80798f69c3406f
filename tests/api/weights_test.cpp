// Weights that sessions share, memory of the caller's, and orders of dimensions, through the C and the C++ interface.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/api/refusal.hpp"
#include "tests/api/small_graph.hpp"

namespace cermet::test {
namespace {

/// y = x w^T, and w + w, which is computed once.
graph product_graph(const std::string& size, bool has_values, const tensor& w) {
  if (!has_values)
    return graph::parse("graph product {\n  symbol " + size + " : 1..8\n  input %x : f32[" + size +
                        ", 2]\n  constant %w : f32[2, 2]\n  constant %both : f32[4, 2] = concat(%w, %w)\n  %y = "
                        "linear(%x, %both) : f32[" +
                        size + ", 4]\n  output y = %y\n}\n");
  graph made("product");
  made.symbol(size, 1, 8);
  made.output("y", made.linear(made.input("x", dtype::f32, {size, 2}), made.constant("w", w)));
  return made;
}

TEST(Weights, AreSharedAndReplaced) {
  const tensor w({2, 2}, Values{1, 2, 3, 4}), other({2, 2}, Values{5, 6, 7, 8});
  weights store;
  session first = product_graph("T", true, w).compile({.weights = store});
  const std::size_t bytes = store.bytes();
  session second = product_graph("S", true, w).compile({.weights = store});
  EXPECT_EQ(store.bytes(), bytes) << "what is packed is packed once";
  session folded = product_graph("T", false, w).compile({.weights = store});
  const tensor x({1, 2}, Values{1, 10});
  EXPECT_EQ(first(x)[0].values(), (Values{21, 43}));
  EXPECT_EQ(folded(x)[0].values(), (Values{21, 43, 21, 43}));
  store.set("w", other);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(first(x)[0].values(), (Values{65, 87}));
    EXPECT_EQ(second(x)[0].values(), (Values{65, 87}));
    EXPECT_EQ(folded(x)[0].values(), (Values{65, 87, 65, 87})) << "what was computed of it is computed again";
  }
  store.set("w", w);
  EXPECT_EQ(second(x)[0].values(), (Values{21, 43}));
}

TEST(Weights, RowMajorOnesAreReadWhereTheyAre) {
  weights store;
  const tensor one({64}, Values(64, 1.0f)), two({64}, Values(64, 2.0f));
  store.set("bias", one);
  session compiled = graph::parse(
                         "graph g {\n  input %x : f32[64]\n  constant %bias : f32[64]\n  %y = add(%x, %bias) : "
                         "f32[64]\n  output y = %y\n  output bias = %bias\n}\n")
                         .compile({.weights = store});
  EXPECT_EQ(store.bytes(), 0u);
  const tensor x({64}, Values(64, 3.0f));
  EXPECT_EQ(compiled(x)[0].values(), Values(64, 4.0f));
  store.set("bias", two);
  const std::vector<tensor> results = compiled(x);
  EXPECT_EQ(results[0].values(), Values(64, 5.0f));
  EXPECT_EQ(results[1].values(), Values(64, 2.0f));
}

TEST(Weights, NameWhatDoesNotFit) {
  const tensor w({2, 2}, Values{1, 2, 3, 4}), wide({2, 3}, Values(6));
  weights store;
  EXPECT_SAYS(product_graph("T", false, w).compile({.weights = store}),
              "constant 'w': expected values, of the graph or of the weights, found none");
  store.set("w", wide);
  EXPECT_SAYS(product_graph("T", false, w).compile({.weights = store}),
              "constant 'w': expected f32[2, 2], found f32[2, 3] in the weights");
  EXPECT_SAYS(store.set("w", w),
              "weight 'w': expected f32[2, 3], the type of the one that it replaces, found f32[2, 2]");
  const handle other("cpu", 1);
  EXPECT_SAYS(small_graph(other).compile({.weights = store}), "weights: expected a store of the graph's handle");
  expect_refused(cermet_weights_create(nullptr, nullptr), {"handle", "NULL"});
  expect_refused(cermet_weights_set(store.get(), nullptr, nullptr, nullptr), {"name", "NULL"});
  EXPECT_EQ(cermet_weights_bytes(nullptr), 0u);
}

struct Counted {
  std::int64_t held = 0, calls = 0, most = -1;
};

void* counted_allocate(std::size_t bytes, void* user) {
  auto& counted = *static_cast<Counted*>(user);
  if (counted.most >= 0 && static_cast<std::int64_t>(bytes) > counted.most) return nullptr;
  counted.held += static_cast<std::int64_t>(bytes);
  ++counted.calls;
  return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
}
void counted_release(void* memory, std::size_t bytes, void* user) {
  static_cast<Counted*>(user)->held -= static_cast<std::int64_t>(bytes);
  std::free(memory);
}

TEST(Allocator, HasTheMemoryOfGraphs) {
  Counted counted;
  handle on("cpu", 1);
  on.set_allocator(counted_allocate, counted_release, &counted);
  {
    session compiled = small_graph(on).compile();
    EXPECT_GE(counted.held, static_cast<std::int64_t>(compiled.arena_bytes() + compiled.constant_bytes()));
    EXPECT_GE(counted.calls, 2);
    EXPECT_EQ(compiled(tensor({1, 2}, Values{1, -2}))[0].values(), (Values{3, -2}));
  }
  EXPECT_EQ(counted.held, 0);
  counted.most = 8;
  EXPECT_SAYS(small_graph(on).compile(), "from the caller's allocator, found none");
  EXPECT_EQ(counted.held, 0);
  on.set_allocator(nullptr, nullptr);
  const std::int64_t calls = counted.calls;
  small_graph(on).compile();
  EXPECT_EQ(counted.calls, calls);
  EXPECT_SAYS(on.set_allocator(counted_allocate, nullptr),
              "allocator: expected allocate and release, or none, found one");
  expect_refused(cermet_handle_set_allocator(nullptr, nullptr, nullptr, nullptr), {"handle", "NULL"});
}

/// relu of images [1, 3, H, 2], given and returned with their channels last.
graph image_graph() {
  graph made("images");
  made.symbol("H", 1, 4);
  const std::vector<std::int64_t> last{0, 2, 3, 1};
  const value x = made.input("x", dtype::f32, {1, 3, "H", 2}, last);
  made.output("y", made.relu(x), last);
  made.output("plain", made.neg(x));
  return made;
}

TEST(Order, OperandsLieAsTheCallerHasThem) {
  session compiled = image_graph().compile();
  EXPECT_EQ(compiled.inputs()[0].text, "f32[1, 3, H, 2]");
  EXPECT_EQ(compiled.outputs()[0].text, "f32[1, 3, H, 2]");
  Values stored(6), plain(6), kept(6);  // H = 1: [1, 1, 2, 3] in memory
  for (std::size_t w = 0; w < 2; ++w)
    for (std::size_t c = 0; c < 3; ++c) {
      stored[w * 3 + c] = static_cast<float>(w * 3 + c) - 2;
      kept[w * 3 + c] = std::max(stored[w * 3 + c], 0.0f);
      plain[c * 2 + w] = -stored[w * 3 + c];
    }
  Values out(6);
  const std::vector<std::int64_t> shape{1, 3, 1, 2}, strides{6, 1, 6, 3};
  const tensor x = tensor::view(stored.data(), shape, dtype::f32, strides),
               y = tensor::view(out.data(), shape, dtype::f32, strides), negative(shape);
  EXPECT_EQ(compiled.output_shape(0, {x}), shape);
  compiled.run({x}, {y, negative});
  EXPECT_EQ(out, kept);
  EXPECT_EQ(negative.values(), plain);
  const tensor own = compiled.result_copy(0);
  EXPECT_EQ(own.shape(), shape);
  std::int64_t order[8];
  EXPECT_EQ(cermet_session_input_order(compiled.get(), 0, order), 4);
  EXPECT_EQ(order[3], 1);
  EXPECT_EQ(cermet_session_output_order(compiled.get(), 1, order), 0);
}

TEST(Order, IsPartOfTheText) {
  const graph made = image_graph();
  EXPECT_NE(made.text().find("input %x : f32[1, H, 2, 3] order [0, 2, 3, 1]\n"), std::string::npos) << made.text();
  const graph copy = graph::parse(made.text());
  EXPECT_EQ(copy.text(), made.text());
  EXPECT_EQ(copy.compile().inputs()[0].text, "f32[1, 3, H, 2]");
}

TEST(Order, RefusesOtherMemory) {
  session compiled = image_graph().compile();
  EXPECT_SAYS(compiled.run({tensor({1, 3, 2, 2})}), "input 0 (x): expected");
  graph made("g");
  EXPECT_SAYS(made.input("x", dtype::f32, {2, 3}, {0, 0}),
              "input 'x': order: expected each of 2 dimensions once, found [0, 0]");
  EXPECT_SAYS(made.input("x", dtype::f32, {2, 3}, {0}), "order: expected an entry for each of 2 dimensions, found 1");
  const value x = made.input("x", dtype::f32, {2, 3});
  EXPECT_SAYS(made.output("y", x, {1, 2}), "output 'y': order: expected each of 2 dimensions once, found [1, 2]");
}

}  // namespace
}  // namespace cermet::test

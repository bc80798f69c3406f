// Values of attention that are the first columns of the keys (MLA): one cache, of which v_cache is a view, by get_op
// and in a graph that was read from text.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/small_graph.hpp"

namespace cermet::test {
namespace {

tensor integers_of(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& list) {
  tensor t(std::move(shape), dtype::i32);
  std::copy(list.begin(), list.end(), t.data<std::int32_t>());
  return t;
}

/// 3 queries of a sequence of 5 tokens in pages of one token, 4 heads, keys of 576 and values of 512 elements.
struct OneCache {
  std::vector<std::int64_t> strides{576, 576, 576, 1};
  tensor q{{3, 4, 576}}, k{{6, 1, 1, 576}}, table = integers_of({1, 5}, {5, 2, 0, 3, 1}),
                                            length = integers_of({1}, {5}), starts = integers_of({2}, {0, 3});

  OneCache() {
    for (int i = 0; i < 3 * 4 * 576; ++i) q.data<float>()[i] = std::sin(static_cast<float>(i));
    for (int i = 0; i < 6 * 576; ++i) k.data<float>()[i] = std::cos(0.3f * static_cast<float>(i));
  }
  tensor view() const { return tensor::view(k.data<float>(), {6, 1, 1, 512}, dtype::f32, strides); }
  tensor copy() const {
    tensor v({6, 1, 1, 512});
    for (int row = 0; row < 6; ++row) std::copy_n(k.data<float>() + 576 * row, 512, v.data<float>() + 512 * row);
    return v;
  }
  std::vector<tensor> operands(const tensor& v) const { return {q, k, v, table, length, starts}; }
  operation attention(const tensor& v) const {
    return get_op("incre_flash_attention", {q, k, v, table, length, starts});
  }
};

TEST(AttentionViews, OfOneCacheGiveWhatTwoGive) {
  const OneCache c;
  const tensor v = c.copy();
  const Values wanted = c.attention(v)(c.operands(v)).values();
  EXPECT_EQ(wanted.size(), 3u * 4 * 512);
  EXPECT_EQ(c.attention(c.view())(c.operands(c.view())).values(), wanted);
  EXPECT_EQ(c.attention(v)(c.operands(c.view())).values(), wanted) << "one callable takes both";

  graph made("mla");
  const value q = made.input("q", dtype::f32, {3, 4, 576}), k = made.input("k_cache", dtype::f32, {6, 1, 1, 576}),
              values = made.input("v_cache", dtype::f32, {6, 1, 1, 512}),
              table = made.input("block_tables", dtype::i32, {1, 5}),
              length = made.input("context_lens", dtype::i32, {1}),
              starts = made.input("query_starts", dtype::i32, {2});
  made.output("o", made.apply("incre_flash_attention", {q, k, values, table, length, starts}, {}).front());
  session compiled = graph::parse(made.text()).compile();
  const tensor o({3, 4, 512});
  compiled.run(c.operands(c.view()), {o});
  EXPECT_EQ(o.values(), wanted);
}

}  // namespace
}  // namespace cermet::test

// Attention as frameworks write it, in random sizes and spellings: transposed and repeated heads, masks of places, and
// rotations whose angles are computed. What it becomes computes the same, and moves nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/fold_constants.hpp"
#include "graph/rewrite/rule.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "op/operands.hpp"
#include "tests/graph/evaluate.hpp"

namespace cermet {
namespace {

enum class Mask : std::uint8_t { none, triangle, compared, positions, window };

class Block {
 public:
  explicit Block(unsigned seed) : random_(seed) {
    batch_ = pick(1, 2), kv_heads_ = pick(1, 3), group_ = pick(1, 3), queries_ = pick(1, 4), size_ = 2 * pick(1, 4);
    keys_ = queries_ + pick(1, 3);
    is_cut = keys_ > 2;
    mask = static_cast<Mask>(pick(0, 4));
    rotates = pick(0, 1) == 1;
    hides = mask != Mask::none && pick(0, 3) == 0;
    by_bias = mask != Mask::none && pick(0, 2) == 0;
    const std::int64_t heads = kv_heads_ * group_;
    ValueId q = heads_of("q", queries_, heads), k = heads_of("k", keys_, kv_heads_),
            v = heads_of("v", keys_, kv_heads_);
    if (rotates) q = rotated(q);
    std::vector<ValueId> operands{q, repeated(k), repeated(v)};
    operands.resize(op::flash_attention::mask + 1);
    if (mask != Mask::none) {
      const ValueId seen = all_masks();
      if (by_bias)
        operands[op::flash_attention::bias] =
            graph.apply(OpKind::where, {seen, number("zero", 0), number("low", -INFINITY)});
      else operands[op::flash_attention::mask] = seen;
    }
    const ValueId o = graph.apply(
        OpKind::flash_attention, operands,
        {{"causal", false}, {"q_layout", "bhsd"}, {"k_layout", "bhsd"}, {"v_layout", "bhsd"}, {"o_layout", "bhsd"}});
    const ValueId tokens = graph.apply(OpKind::transpose, {o}, {{"permutation", Ints{0, 2, 1, 3}}});
    graph.add_output("y", reshape(tokens, {batch_, queries_, heads * size_}));
    given["position"] = {static_cast<double>(keys_ - queries_ - pick(0, 1))};
  }

  Graph graph;
  std::map<std::string, std::vector<double>> given;
  Mask mask;
  bool rotates, hides, by_bias, is_cut;  ///< is_cut: a window leaves out a key

 private:
  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  ValueId reshape(ValueId x, const Ints& shape) { return graph.apply(OpKind::reshape, {x}, {{"shape", shape}}); }
  ValueId number(std::string_view name, float value) {
    return graph.add_constant(name, TensorData::of<float>({DType::f32, {}}, {value}));
  }
  ValueId counting(std::string_view name, std::int64_t count, std::int64_t first = 0) {
    std::vector<std::int32_t> list(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = static_cast<std::int32_t>(first + static_cast<std::int64_t>(i));
    return graph.add_constant(fmt::format("{}.{}", name, ++numbers_),
                              TensorData::of<std::int32_t>({DType::i32, {count}}, list));
  }

  ValueId heads_of(std::string_view name, std::int64_t tokens, std::int64_t heads) {
    const ValueId x = graph.add_input(name, {DType::f32, {batch_, tokens, heads * size_}});
    return graph.apply(OpKind::transpose, {reshape(x, {batch_, tokens, heads, size_})},
                       {{"permutation", Ints{0, 2, 1, 3}}});
  }
  ValueId repeated(ValueId x) {
    if (group_ == 1) return x;
    const ValueId apart = reshape(x, {batch_, kv_heads_, 1, keys_, size_});
    const ValueId wide =
        graph.apply(OpKind::expand, {apart}, {{"shape", Ints{batch_, kv_heads_, group_, keys_, size_}}});
    return reshape(wide, {batch_, kv_heads_ * group_, keys_, size_});
  }

  ValueId rotated(ValueId x) {
    const std::int64_t half = size_ / 2;
    const ValueId places = graph.apply(OpKind::cast, {places_of_queries()}, {{"out_dtype", "f32"}});
    std::vector<float> list;
    for (std::int64_t i = 0; i < half; ++i) list.push_back(1.0f / static_cast<float>(1 + i));
    const ValueId frequencies = graph.add_constant("frequencies", TensorData::of<float>({DType::f32, {half}}, list));
    const ValueId angles = graph.apply(OpKind::mul, {reshape(places, {queries_, 1}), frequencies});
    const ValueId twice = graph.apply(OpKind::concat, {angles, angles}, {{"axis", 1}});
    const ValueId cosines = reshape(graph.apply(OpKind::cos, {twice}), {1, 1, queries_, size_}),
                  sines = reshape(graph.apply(OpKind::sin, {twice}), {1, 1, queries_, size_});
    const auto part = [&](std::int64_t first) {
      return graph.apply(OpKind::slice, {x},
                         {{"axes", Ints{3}}, {"starts", Ints{first}}, {"ends", Ints{first + half}}});
    };
    const ValueId first = part(0), second = part(half);
    const ValueId turned = graph.apply(OpKind::concat, {graph.apply(OpKind::neg, {second}), first}, {{"axis", 3}});
    return graph.apply(OpKind::add,
                       {graph.apply(OpKind::mul, {x, cosines}), graph.apply(OpKind::mul, {turned, sines})});
  }

  ValueId places_of_queries() {
    if (mask != Mask::positions) return counting("places", queries_, keys_ - queries_);
    if (!position_) position_ = graph.add_input("position", {DType::i32, {1}});
    return graph.apply(OpKind::add, {position_, counting("offsets", queries_)});
  }

  ValueId own_mask() {
    if (mask == Mask::triangle) {
      std::vector<std::uint8_t> seen;
      for (std::int64_t i = 0; i < queries_; ++i)
        for (std::int64_t j = 0; j < keys_; ++j) seen.push_back(j <= i + keys_ - queries_);
      return graph.add_constant("seen", TensorData::of<std::uint8_t>({DType::boolean, {queries_, keys_}}, seen));
    }
    const ValueId keys = counting("keys", keys_), places = reshape(places_of_queries(), {queries_, 1});
    const ValueId causal = graph.apply(OpKind::less_equal, {keys, places});
    if (mask != Mask::window) return causal;
    const ValueId width = graph.add_constant("width", TensorData::of<std::int32_t>({DType::i32, {}}, {2}));
    const ValueId near = graph.apply(OpKind::less, {graph.apply(OpKind::sub, {places, keys}), width});
    return graph.apply(OpKind::logical_and, {near, causal});
  }
  ValueId all_masks() {
    ValueId seen = reshape(own_mask(), {1, 1, queries_, keys_});
    if (hides)
      seen =
          graph.apply(OpKind::logical_and, {seen, graph.add_input("shown", {DType::boolean, {batch_, 1, 1, keys_}})});
    return graph.apply(OpKind::expand, {seen}, {{"shape", Ints{batch_, 1, queries_, keys_}}});
  }

  std::mt19937 random_;
  std::int64_t batch_, kv_heads_, group_, queries_, keys_, size_;
  ValueId position_;
  int numbers_ = 0;
};

TEST(FrameworkAttention, EverySpellingIsOneBlockThatMovesNothing) {
  int of_each[5] = {};
  for (unsigned seed = 0; seed < 600; ++seed) {
    const Block block(seed);
    ++of_each[static_cast<int>(block.mask)];
    verify(block.graph);
    const Graph after = rewrite(fold_constants(block.graph).graph, rewrite_rules(),
                                block.by_bias ? RoundingClass::fast : RoundingClass::strict)
                            .graph;
    verify(after);
    const std::string text = fmt::format("{}\n{}{}", seed, to_text(block.graph), to_text(after));
    const auto count = [&](OpKind op) { return std::ranges::count(after.nodes(), op, &Node::op); };
    ASSERT_EQ(count(OpKind::transpose), 0) << text;
    ASSERT_EQ(count(OpKind::rope), block.rotates ? 1 : 0) << text;
    const auto attention = std::ranges::find(after.nodes(), OpKind::flash_attention, &Node::op);
    ASSERT_NE(attention, after.nodes().end()) << text;
    const auto has = [&](std::size_t operand) {
      return attention->inputs.size() > operand && static_cast<bool>(attention->inputs[operand]);
    };
    ASSERT_FALSE(has(op::flash_attention::bias)) << text;
    ASSERT_EQ(has(op::flash_attention::mask), block.hides) << text;
    ASSERT_EQ(has(op::flash_attention::lengths), block.mask == Mask::positions) << text;
    ASSERT_EQ(attention->attributes.find("window") != nullptr, block.mask == Mask::window && block.is_cut) << text;
    const auto expected = Evaluation(block.graph, {}, block.given).outputs().at("y"),
               found = Evaluation(after, {}, block.given).outputs().at("y");
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(expected[i], found[i], 1e-5) << "element " << i << " of " << text;
  }
  for (const int blocks : of_each) EXPECT_GT(blocks, 60);
}

/// Sines that a factor of each element follows: nothing says that both elements of a pair have one.
TEST(FrameworkAttention, TablesThatDifferStay) {
  const Graph graph = parse_graph(R"(graph g {
  input %x : f32[3, 4]
  input %f : f32[3, 2]
  input %scale : f32[4]
  %twice = concat(%f, %f) {axis = 1} : f32[3, 4]
  %cos = cos(%twice) : f32[3, 4]
  %sines = sin(%twice) : f32[3, 4]
  %sin = mul(%sines, %scale) : f32[3, 4]
  %first = slice(%x) {axes = [1], ends = [2], starts = [0]} : f32[3, 2]
  %second = slice(%x) {axes = [1], ends = [4], starts = [2]} : f32[3, 2]
  %negative = neg(%second) : f32[3, 2]
  %turned = concat(%negative, %first) {axis = 1} : f32[3, 4]
  %straight = mul(%x, %cos) : f32[3, 4]
  %across = mul(%turned, %sin) : f32[3, 4]
  %y = add(%straight, %across) : f32[3, 4]
  output y = %y
})");
  const Graph after = rewrite(graph, rewrite_rules()).graph;
  EXPECT_EQ(std::ranges::count(after.nodes(), OpKind::rope, &Node::op), 0) << to_text(after);
}

}  // namespace
}  // namespace cermet

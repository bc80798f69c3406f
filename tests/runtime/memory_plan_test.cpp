#include "runtime/memory_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "base/checked.hpp"
#include "graph/text.hpp"
#include "tests/runtime/tokens.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

void expect_valid(const std::vector<Lifetime>& blocks, const Placement& placement, std::int64_t alignment) {
  ASSERT_EQ(placement.offsets.size(), blocks.size());
  EXPECT_GE(placement.bytes, placement.lower_bound);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(placement.offsets[i] % alignment, 0);
    ASSERT_LE(placement.offsets[i] + blocks[i].bytes, placement.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      const bool apart = placement.offsets[i] + blocks[i].bytes <= placement.offsets[j] ||
                         placement.offsets[j] + blocks[j].bytes <= placement.offsets[i];
      ASSERT_TRUE(!together || apart || blocks[i].bytes == 0 || blocks[j].bytes == 0) << "blocks " << i << " and " << j;
    }
  }
}

/// Random lifetimes: nothing that lives together overlaps, and the arena stays near the lower bound.
TEST(Placement, RandomLifetimesNeverOverlap) {
  std::mt19937 random(7);
  double wasted = 0, bound = 0;
  for (int round = 0; round < 200; ++round) {
    const int steps = 1 + static_cast<int>(random() % 60);
    std::vector<Lifetime> blocks(random() % 120);
    for (Lifetime& block : blocks) {
      block.bytes = random() % 5 == 0 ? 0 : static_cast<std::int64_t>(random() % 10000);
      block.first = static_cast<std::int32_t>(random() % static_cast<unsigned>(steps));
      block.last = random() % 10 == 0 ? steps : std::min(steps, block.first + static_cast<std::int32_t>(random() % 6));
    }
    const Placement placement = place(blocks);
    expect_valid(blocks, placement, 64);
    wasted += static_cast<double>(placement.bytes - placement.lower_bound);
    bound += static_cast<double>(placement.lower_bound);
  }
  EXPECT_LT(wasted / bound, 0.12);
}

/// The same places as a comparison of all pairs gives.
TEST(Placement, IsThatOfAllPairs) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> blocks(1 + random() % 90);
    for (Lifetime& block : blocks) {
      block.first = static_cast<std::int32_t>(random() % 40);
      block.last = block.first + static_cast<std::int32_t>(random() % 12);
      block.bytes = static_cast<std::int64_t>(random() % 20) * 48;
    }
    const Placement placement = place(blocks);
    std::vector<std::size_t> order(blocks.size()), placed;
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
    for (const std::size_t i : order) {
      if (blocks[i].bytes == 0) continue;
      std::map<std::int64_t, std::int64_t> taken;  // offsets and ends of blocks that live with this one
      for (const std::size_t other : placed)
        if (blocks[i].first <= blocks[other].last && blocks[other].first <= blocks[i].last) {
          std::int64_t& last = taken[placement.offsets[other]];
          last = std::max(last, placement.offsets[other] + round_up(blocks[other].bytes, 64));
        }
      std::int64_t end = 0, best = -1, best_size = std::numeric_limits<std::int64_t>::max();
      for (const auto& [offset, last] : taken) {
        if (offset - end >= round_up(blocks[i].bytes, 64) && offset - end < best_size)
          best = end, best_size = offset - end;
        end = std::max(end, last);
      }
      ASSERT_EQ(placement.offsets[i], best >= 0 ? best : end) << "round " << round << ", block " << i;
      placed.push_back(i);
    }
  }
}

TEST(Placement, AlignsAndReachesTheLowerBoundOfAChain) {
  std::vector<Lifetime> chain;
  for (std::int32_t step = 0; step < 50; ++step) chain.push_back({1000, step, step + 1});
  const Placement placement = place(chain);
  expect_valid(chain, placement, 64);
  EXPECT_EQ(placement.bytes, 2 * 1024);
  EXPECT_EQ(placement.lower_bound, 2 * 1024);
  EXPECT_EQ(place({}).bytes, 0);
  const std::vector<Lifetime> huge(3, {std::int64_t{1} << 62, 0, 0});
  EXPECT_EQ(error_text([&] { place(huge); }),
            "memory plan: expected values of less than 2^63 bytes together, found more");
}

TEST(DenseBytes, ChecksDimensions) {
  const Dim T = Dim::symbol("T");
  EXPECT_EQ(dense_bytes({DType::bf16, {T, 8, T}}, tokens(3)), 144) << "a type may hold several symbols";
  EXPECT_EQ(dense_bytes({DType::f32, {}}, {}), 4);
  EXPECT_EQ(dense_bytes({DType::f32, {1 << 30, 1 << 30, 1 << 30, 0}}, {}), 0);
  EXPECT_EQ(error_text([&] {
              dense_bytes({DType::f32, {T + -5}}, tokens(3));
            }),
            "dimension T-5 of f32[T-5]: expected a non-negative size, found -2");
  EXPECT_EQ(error_text([&] {
              dense_bytes({DType::f32, {T * (1 << 30), 1 << 30}}, tokens(4));
            }),
            "f32[1073741824*T, 1073741824]: expected less than 2^62 bytes, found more");
}

/// The plan of a graph's text; every node is a step but those in `views`.
struct Planned {
  Graph graph;
  MemoryPlan plan;

  Planned(std::string_view text, const std::vector<std::int32_t>& views = {}) : graph(parse_graph(text)) {
    std::vector<FusionGroup> groups = plan_fusion(graph, tokens(16));
    std::erase_if(groups, [&](const FusionGroup& group) {
      return std::find(views.begin(), views.end(), group.nodes[0]) != views.end();
    });
    plan = plan_memory(graph, groups, views, tokens(16));
  }
  std::int64_t offset(std::string_view name) const {
    return plan.offset[static_cast<std::size_t>(graph.find(name).index)];
  }
  std::int32_t root(std::string_view name) const { return plan.root[static_cast<std::size_t>(graph.find(name).index)]; }
  std::int32_t id(std::string_view name) const { return graph.find(name).index; }
};

TEST(MemoryPlan, ResultsLiveToTheEndAndOthersAreReused) {
  // gather cannot work in place, so adjacent values of the chain need separate memory.
  const Planned p(R"(graph chain {
    input %x : f32[T, 64]
    input %i : i32[16]
    %a = gather(%x, %i) : f32[16, 64]
    %b = gather(%a, %i) : f32[16, 64]
    %c = gather(%b, %i) : f32[16, 64]
    %d = gather(%c, %i) : f32[16, 64]
    output kept = %a
    output y = %d
  })");
  EXPECT_EQ(p.offset("x"), -1);
  EXPECT_NE(p.offset("b"), p.offset("a"));
  EXPECT_NE(p.offset("c"), p.offset("a")) << "a result of the graph lives on";
  EXPECT_EQ(p.offset("d"), p.offset("b")) << "b is dead when d is made";
  EXPECT_EQ(p.plan.bytes, 3 * 4096);
  EXPECT_EQ(p.plan.lower_bound, p.plan.bytes);
  EXPECT_EQ(p.plan.total, 4 * 4096);
}

TEST(MemoryPlan, ResultsTakeTheMemoryOfDyingOperands) {
  const Planned p(R"(graph chain {
    input %x : f32[T, 64]
    %a = rms_norm(%x) : f32[T, 64]
    %b = rms_norm(%a) : f32[T, 64]
    %c = rms_norm(%b) : f32[T, 64]
    %d = rms_norm(%b) {out_dtype = "bf16"} : bf16[T, 64]
    %y = rms_norm(%c) : f32[T, 64]
    output y = %y
    output d = %d
  })");
  EXPECT_NE(p.offset("a"), -1);
  EXPECT_EQ(p.root("b"), p.id("a")) << "a dies when b is made";
  EXPECT_EQ(p.root("c"), p.id("c")) << "b is read once more";
  EXPECT_EQ(p.root("d"), p.id("d")) << "of another type";
  EXPECT_EQ(p.root("y"), p.id("c"));
  EXPECT_NE(p.root("a"), p.id("x")) << "what the caller bound is never overwritten";
}

TEST(MemoryPlan, StateAndViewsShareMemory) {
  constexpr std::string_view text = R"(graph state {
    input %x : f32[T, 32]
    input %k_cache : f32[8, 1, 16, 32]
    input %slots : i32[T]
    %a = rms_norm(%x) : f32[T, 32]
    %heads = reshape(%a) {shape = [0, 1, 32]} : f32[T, 1, 32]
    %v_cache = rms_norm(%k_cache) : f32[8, 1, 16, 32]
    %k_new, %v_new = kv_cache_write(%heads, %heads, %k_cache, %v_cache, %slots) : f32[8, 1, 16, 32], f32[8, 1, 16, 32]
    %flat = reshape(%heads) {shape = [-1]} : f32[32*T]
    output k = %k_new
    output v = %v_new
    output flat = %flat
  })";
  const Planned p(text, {1, 4});
  EXPECT_EQ(p.root("k_new"), p.id("k_cache"));
  EXPECT_EQ(p.offset("k_new"), -1) << "lives where the caller bound it";
  EXPECT_EQ(p.root("v_new"), p.id("v_cache"));
  EXPECT_EQ(p.offset("v_new"), p.offset("v_cache"));
  EXPECT_EQ(p.root("heads"), p.id("a"));
  EXPECT_EQ(p.root("flat"), p.id("a"));
  EXPECT_EQ(p.plan.bytes, 16 * 32 * 4 + 8 * 16 * 32 * 4);
  const Planned copied(text);
  EXPECT_EQ(copied.root("flat"), copied.id("flat"));
}

TEST(MemoryPlan, BranchesThatRunSideBySideShareNoMemory) {
  const Graph graph = parse_graph(
      "graph g {\n  input %x : f32[8, 64]\n  %a = cast(%x) {out_dtype = \"bf16\"} : bf16[8, 64]\n  %b = softmax(%a) : "
      "bf16[8, 64]\n"
      "  %c = cast(%b) {out_dtype = \"f32\"} : f32[8, 64]\n  %d = cast(%x) {out_dtype = \"bf16\"} : bf16[8, 64]\n  %e "
      "= sigmoid(%d) : bf16[8, 64]\n"
      "  %f = cast(%e) {out_dtype = \"f32\"} : f32[8, 64]\n  %s = add(%c, %f) : f32[8, 64]\n  %y = cast(%s) {out_dtype "
      "= \"bf16\"} : bf16[8, 64]\n"
      "  output y = %y\n}\n");
  const std::vector<FusionGroup> groups = plan_fusion(graph, {});
  const auto planned = [&](std::int32_t walk) {
    return plan_memory(graph, groups, {}, {}, {}, std::vector<std::int32_t>(groups.size(), walk));
  };
  const auto share = [&](const MemoryPlan& plan, std::string_view some, std::string_view others) {
    for (const char a : some)
      for (const char b : others)
        if (plan.offset[static_cast<std::size_t>(graph.find({&a, 1}).index)] ==
            plan.offset[static_cast<std::size_t>(graph.find({&b, 1}).index)])
          return true;
    return false;
  };
  const MemoryPlan one_by_one = planned(-1), side_by_side = planned(0);
  EXPECT_TRUE(share(one_by_one, "ab", "def"));
  EXPECT_FALSE(share(side_by_side, "abc", "def"));
  EXPECT_LT(one_by_one.bytes, side_by_side.bytes);
  EXPECT_LT(side_by_side.bytes, side_by_side.total) << "what follows from both branches may have their memory";
}

}  // namespace
}  // namespace cermet

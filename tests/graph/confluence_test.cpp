// Rules of algebra on layers of exported models: in whatever order they are applied, the work that is left is the same.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "graph/rewrite/cost.hpp"
#include "graph/rewrite/reference_page.hpp"
#include "graph/rewrite/rule.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

constexpr std::uint32_t orders = 12;

std::vector<std::string> corpus() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(CERMET_SOURCE_DIR "/tests/graph/corpus"))
    if (file.path().extension() == ".graph" && file.path().stem().extension() != ".rewritten")
      names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}
Graph layer(const std::string& name) {
  return parse_graph(read_text(CERMET_SOURCE_DIR "/tests/graph/corpus/" + name + ".graph"));
}

class ExportedLayer : public testing::TestWithParam<std::string> {};

TEST_P(ExportedLayer, IsRewrittenAsApproved) {
  const Rewritten result = rewrite(layer(GetParam()), rewrite_rules());
  verify(result.graph);
  std::string counts;
  for (const RuleCount& count : result.counts) counts += fmt::format("// {} {}\n", count.name, count.times);
  expect_golden("graph/corpus/" + GetParam() + ".rewritten.graph", counts + to_text(result.graph));
  EXPECT_TRUE(rewrite(result.graph, rewrite_rules()).counts.empty()) << "a second time changes nothing";
}

TEST_P(ExportedLayer, OrderDoesNotMatter) {
  const Graph graph = layer(GetParam());
  for (const RoundingClass most : {RoundingClass::strict, RoundingClass::fast}) {
    const double best = work_of(rewrite(graph, rewrite_rules(), most).graph);
    EXPECT_LT(best, work_of(graph));
    for (std::uint32_t seed = 1; seed <= orders; ++seed) {
      const Rewritten other = rewrite(graph, rewrite_rules(), {.most = most, .order_seed = seed});
      verify(other.graph);
      EXPECT_EQ(work_of(other.graph), best) << name_of(most) << ", seed " << seed << '\n' << to_text(other.graph);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, ExportedLayer, testing::ValuesIn(corpus()),
                         [](const auto& test) { return test.param; });

TEST(Rules, PageIsUpToDate) { expect_golden("../docs/reference/rules.md", rule_reference_markdown()); }

/// Chains that algebra shortens, 20,000 nodes: every second one goes.
TEST(Rules, TakeTimeInProportionToTheGraph) {
  constexpr int links = 5000;
  Graph graph;
  ValueId x = graph.add_input("x", {DType::f32, {Dim::symbol("T"), 8}});
  const ValueId one = graph.add_constant("one", TensorData::of(TensorType{DType::f32, {}}, std::vector<float>{1}));
  for (int i = 0; i < links; ++i)
    x = graph.apply(OpKind::mul,
                    {graph.apply(OpKind::tanh, {graph.apply(OpKind::neg, {graph.apply(OpKind::neg, {x})})}), one});
  graph.add_output("y", x);
  const auto start = std::chrono::steady_clock::now();
  const Rewritten result = rewrite(graph, rewrite_rules());
  std::printf("%zu nodes rewritten in %.2f s\n", graph.nodes().size(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  EXPECT_EQ(result.graph.nodes().size(), static_cast<std::size_t>(links));
}

}  // namespace
}  // namespace cermet

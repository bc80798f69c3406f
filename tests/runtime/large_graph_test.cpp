// Graphs of tens of thousands of nodes, as imported models have them: every step of compilation grows with the graph
// and not with its square.
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <optional>

#include "graph/text.hpp"
#include "runtime/compile.hpp"
#include "runtime/context.hpp"
#include "tests/model/plugin.hpp"

namespace cermet {
namespace {

constexpr int nodes_per_layer = 10;

/// Layers with a residual, a stacked projection that is split, reshapes that cost nothing, products and elementwise
/// operators.
Graph layered_graph(int layers) {
  std::string text =
      "graph large {\n input %x0 : f32[T, 16]\n constant %norm : f32[16]\n constant %up : f32[48, 16]\n constant %down "
      ": f32[16, 16]\n";
  for (int i = 0; i < layers; ++i)
    text += fmt::format(
        R"( %n{0} = rms_norm(%x{0}, %norm) : f32[T, 16]  // layers.{0}
 %u{0} = linear(%n{0}, %up) : f32[T, 48]  // layers.{0}
 %a{0}, %b{0}, %c{0} = split(%u{0}) {{axis = -1, sizes = [16, 16, 16]}} : f32[T, 16], f32[T, 16], f32[T, 16]  // layers.{0}
 %h{0} = reshape(%a{0}) {{shape = [0, 4, 4]}} : f32[T, 4, 4]  // layers.{0}
 %s{0} = silu(%h{0}) : f32[T, 4, 4]  // layers.{0}
 %f{0} = reshape(%s{0}) {{shape = [0, 16]}} : f32[T, 16]  // layers.{0}
 %m{0} = mul(%f{0}, %b{0}) : f32[T, 16]  // layers.{0}
 %g{0} = add(%m{0}, %c{0}) : f32[T, 16]  // layers.{0}
 %d{0} = linear(%g{0}, %down) : f32[T, 16]  // layers.{0}
 %x{1} = add(%x{0}, %d{0}) : f32[T, 16]  // layers.{0}
)",
        i, i + 1);
  return parse_graph(text + fmt::format(" output y = %x{}\n}}", layers));
}

/// Processor seconds of each step, by name.
using Times = std::map<std::string, double>;

Times compile_times(int layers, const std::string& device_name) {
  const Context context({device_name, 1});
  CompileOptions options;
  options.queue = context.queue();
  options.maximum.set(Symbol("T"), 4);
  WeightStore weights([](const std::string&, std::int64_t, const TensorView&) {}, context.pool(), context.queue());
  std::vector<CompileStep> report;
  const Graph graph = layered_graph(layers);
  EXPECT_EQ(graph.nodes().size(), static_cast<std::size_t>(layers * nodes_per_layer));
  const std::clock_t start = std::clock();
  compile(graph, context.device(), weights, context.pool(), options, &report);
  Times times{{"all, with verification", static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC}};
  for (const CompileStep& step : report) times[step.name] = step.processor_seconds;
  return times;
}

void keep_best(Times& best, const Times& times) {
  for (const auto& [step, seconds] : times) {
    const auto known = best.try_emplace(step, seconds).first;
    known->second = std::min(known->second, seconds);
  }
}

/// The first step that takes so much longer for four times the nodes that it cannot be n log n (4.6 times, and up to 7
/// where a cache holds one graph and not the other); n^2 is 16 times. Steps of a few milliseconds are too short to
/// tell.
std::optional<std::string> find_steep(const Times& small, const Times& large) {
  for (const auto& [step, seconds] : large)
    if (seconds > 0.02 && seconds > 11 * small.at(step))
      return fmt::format("{}: {:.4f} s for 5,000 nodes, {:.4f} s for 20,000", step, small.at(step), seconds);
  return std::nullopt;
}

class LargeGraph : public testing::TestWithParam<std::string> {};

TEST_P(LargeGraph, CompilesInTimeInProportionToItsNodes) {
  if (GetParam().starts_with("null:"))
    if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  compile_times(1, GetParam());  // kernels come from the cache from now on
  Times small, large;
  std::optional<std::string> steep;
  for (int round = 0; round < 2 || (steep && round < 8);
       ++round) {  // the best of several: other processes cost cache and clock rate
    keep_best(small, compile_times(500, GetParam()));
    keep_best(large, compile_times(2000, GetParam()));
    steep = find_steep(small, large);
  }
  for (const auto& [step, seconds] : large)
    std::printf("  %-24s %7.4f s, %4.1f times that of a quarter\n", step.c_str(), seconds, seconds / small[step]);
  EXPECT_FALSE(steep) << *steep;
  EXPECT_LT(large["all, with verification"], 5);  // about half a second; a generous bound, because machines are shared
}

TEST(Growth, OfASquareIsFound) {
  Times small, large;
  for (int round = 0; round < 4; ++round)
    for (const int count : {5000, 20000}) {
      const std::clock_t start = std::clock();
      volatile int equal = 0;
      for (int i = 0; i < count; ++i)
        for (int j = 0; j < count; j += 4) equal = equal + (i == j);
      keep_best(count == 5000 ? small : large,
                {{"square", static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC}});
    }
  EXPECT_TRUE(find_steep(small, large)) << small["square"] << ' ' << large["square"];
  EXPECT_FALSE(find_steep({{"linear", 0.01}}, {{"linear", 0.05}}));
}

INSTANTIATE_TEST_SUITE_P(Devices, LargeGraph, testing::Values("cpu", "null:sm_90"),
                         [](const auto& test) { return test.param == "cpu" ? "cpu" : "cuda"; });

}  // namespace
}  // namespace cermet

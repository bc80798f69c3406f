// Thousands of random graphs: fused must be what unfused is.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "device/cuda/plugin.hpp"
#include "graph/text.hpp"
#include "op/schema/reference.hpp"
#include "tests/runtime/random/checks.hpp"
#include "tests/runtime/random/exact_run.hpp"
#include "tests/runtime/random/random_graph.hpp"
#include "tests/runtime/random/shrink.hpp"
#include "tests/support/golden.hpp"

namespace cermet::test {
namespace {

/// Errors are faults, too.
std::optional<std::string> fault_of(const Graph& graph, Context& context, const std::vector<std::int64_t>& sizes,
                                    bool is_continuous, Ways ways = Ways::all) {
  try {
    return find_fault(graph, context, sizes, is_continuous, ways);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Kind of a fault, so that a graph does not shrink to one that fails in another way.
std::string kind_of(const std::string& fault) { return fault.substr(0, fault.find(',')); }

/// Half of the ways to compile a graph that one test tries; the other test tries the others.
enum class Half : std::uint8_t { first, second };
Ways ways_of(std::uint64_t seed, Half half) {
  return (seed % 2 == 0) == (half == Half::first) ? Ways::bits : Ways::precision;
}

void check(std::uint64_t first, std::uint64_t count, const char* device, std::optional<Half> half = {}) {
  Context context(ContextOptions{.device = device, .threads = 1});
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    const RandomGraph drawn = random_graph(seed);
    const Ways ways = half ? ways_of(seed, *half) : Ways::all;
    const auto fault = fault_of(drawn.graph, context, drawn.sizes, drawn.is_continuous, ways);
    if (!fault) continue;
    const Graph small = shrink(drawn.graph, [&](const Graph& graph) {
      const auto other = fault_of(graph, context, drawn.sizes, drawn.is_continuous, ways);
      return other && kind_of(*other) == kind_of(*fault);
    });
    ADD_FAILURE() << "graph " << seed << ": " << *fault << "\nsmallest graph that fails alike: "
                  << fault_of(small, context, drawn.sizes, drawn.is_continuous, ways).value_or("none") << "\n"
                  << to_text(small);
    ++failures;
  }
}

class RandomGraphs : public testing::TestWithParam<int> {};
TEST_P(RandomGraphs, KeepBitsAndPrecision) {
  check(static_cast<std::uint64_t>(GetParam()) * 100, 100, "cpu", Half::first);
}
INSTANTIATE_TEST_SUITE_P(Fast, RandomGraphs, testing::Range(0, 100));

class LongRandomGraphs : public testing::TestWithParam<int> {};
TEST_P(LongRandomGraphs, KeepBitsAndPrecisionInOtherWays) {
  check(static_cast<std::uint64_t>(GetParam()) * 100, 100, "cpu", Half::second);
}
INSTANTIATE_TEST_SUITE_P(All, LongRandomGraphs, testing::Range(0, 100));

/// Elements of all results, each with its error in units of what roundings may make of it.
double sum_of_errors(const std::map<std::string, std::vector<double>>& exact,
                     const std::map<std::string, std::vector<double>>& allowed,
                     const std::map<std::string, std::vector<double>>& found) {
  double sum = 0;
  for (const auto& [name, list] : exact)
    for (std::size_t i = 0; i < list.size(); ++i)
      if (allowed.at(name)[i] > 0)
        sum += std::abs(found.at(name)[i] - list[i]) / allowed.at(name)[i] / static_cast<double>(list.size());
  return sum;
}

/// Against float64, summed over graphs: rules that compute in another order, and float32 between operators, lose
/// nothing that single operators keep.
TEST(RandomGraph, FastFusionIsNoFartherFromExactThanSingleOperators) {
  Context context(ContextOptions{.device = "cpu", .threads = 1});
  double single = 0, fused = 0;
  int graphs = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const RandomGraph drawn = random_graph(seed);
    if (!drawn.is_continuous) continue;
    const SymbolValues maximum = drawn.maximum();
    const ExactRun exact(drawn.graph, maximum);
    if (!(exact.largest() < 1e4)) continue;
    const auto results = exact.outputs(), allowed = allowed_errors(drawn.graph, maximum, results, 1);
    single +=
        sum_of_errors(results, allowed, FusedRun(drawn.graph, context, maximum, {}, fill_operand).results(maximum));
    fused +=
        sum_of_errors(results, allowed,
                      FusedRun(drawn.graph, context, maximum, {FusionMode::full, Rounding::fast, false}, fill_operand)
                          .results(maximum));
    ++graphs;
  }
  EXPECT_GT(graphs, 200);
  EXPECT_GT(single, 0);
  EXPECT_LE(fused, single) << graphs << " graphs";
  RecordProperty("single", std::to_string(single));
  RecordProperty("fused", std::to_string(fused));
}

class GpuRandomGraphs : public testing::TestWithParam<int> {};
TEST_P(GpuRandomGraphs, KeepPrecision) {
  if (const std::string reason = cuda::unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  check(static_cast<std::uint64_t>(GetParam()) * 25, 25, "cuda", Half::first);
}
INSTANTIATE_TEST_SUITE_P(All, GpuRandomGraphs, testing::Range(0, 400));

TEST(RandomGraph, IsTheSameForTheSameSeed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = to_text(random_graph(seed).graph);
    EXPECT_EQ(text, to_text(random_graph(seed).graph));
    EXPECT_EQ(to_text(parse_graph(text)), text);
  }
}

TEST(RandomGraph, ShrinksToWhatFails) {
  const auto has_norm = [](const Graph& graph) {
    return std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op == OpKind::rms_norm; });
  };
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomGraph drawn = random_graph(seed);
    if (!has_norm(drawn.graph)) continue;
    ++seen;
    EXPECT_EQ(shrink(drawn.graph, has_norm).nodes().size(), 1u) << seed;
  }
  EXPECT_GT(seen, 5);
}

/// Graphs that once failed, as shrink() left them.
TEST(RandomGraph, FoundBeforeStaysRight) {
  Context context(ContextOptions{.device = "cpu", .threads = 1});
  for (const auto& entry : std::filesystem::directory_iterator(CERMET_SOURCE_DIR "/tests/runtime/random/found")) {
    const Graph graph = parse_graph(read_text(entry.path()));
    const auto fault = fault_of(graph, context, {most_tokens, 1, 3, 0}, true);
    EXPECT_FALSE(fault) << entry.path().filename() << ": " << *fault;
  }
}

/// Graphs of networks and of rewrite rules: strict fusion keeps their bits, too.
TEST(WrittenGraphs, KeepTheirBits) {
  Context context(ContextOptions{.device = "cpu", .threads = 1});
  const Fill fill = [](const std::string& name, const TensorView& tensor) {  // indices into anything
    if (!is_integer(tensor.dtype)) return fill_operand(name, tensor);
    for (std::int64_t i = 0; i < tensor.elements(); ++i) store(tensor, i, static_cast<double>(i % 2));
  };
  int ran = 0;
  for (const char* folder : {"corpus", "golden/rewrite"})
    for (const auto& entry :
         std::filesystem::directory_iterator(CERMET_SOURCE_DIR "/tests/graph/" + std::string(folder))) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".graph") || name.ends_with(".rewritten.graph")) continue;
      SCOPED_TRACE(name);
      const Graph graph = parse_graph(read_text(entry.path()));
      SymbolValues symbols;
      for (const Value& value : graph.values())
        for (const Dim& d : value.type.dims)
          for (const Symbol& symbol : d.symbols()) symbols.set(symbol, 2);
      const auto lost = find_lost_bits(graph, context, symbols, fill);
      EXPECT_FALSE(lost) << *lost;
      ++ran;
    }
  EXPECT_GT(ran, 50);
}

}  // namespace
}  // namespace cermet::test

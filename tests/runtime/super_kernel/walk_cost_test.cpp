// The model that decides whether a region is linked, against every region that was timed both ways
// (docs/notes/super-kernels-cuda.md).
#include "runtime/super_kernel/walk_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "jit/walk.hpp"
#include "runtime/record.hpp"
#include "tests/model/plugin.hpp"
#include "tests/runtime/super_kernel/walked_step.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::walk_cost_test_file {
namespace {

constexpr double us = 1e-6;
constexpr std::uint32_t blocks = 132;

Target h200() {
  Target target;
  target.compute_capability = 90;
  target.multiprocessors = blocks;
  return target;
}
const DeviceLimits limits{.source = "H200", .clock_hz = 1.755e9, .read_bytes_per_second = 4.563e12};

struct MeasuredRegion {
  std::string name;
  std::vector<DealtLaunch> launches = {};
  Needs needs = {};
  std::int64_t spilled = 0;
  double graph = 0, walk = 0;  ///< us a run

  WalkCost cost(std::int64_t in_flight = jit::walk_in_flight) const {
    WalkCost cost = walk_cost(launches, needs, blocks, in_flight, limits, h200());
    cost.spills = spill_seconds(launches.size(), spilled);
    return cost;
  }
};

Needs one_after_the_other(std::size_t launches) {
  Needs needs(launches);
  for (std::uint32_t i = 1; i < launches; ++i) needs[i] = {i - 1};
  return needs;
}

/// Launches that stream weights to all blocks, and others, which move so many bytes each. The modelled times of
/// products do not matter: a chain has no branches, and products lose nothing beside their boundaries.
MeasuredRegion chain(const std::string& name, std::uint32_t products, std::uint32_t others, double other_bytes,
                     std::int64_t spilled, double graph, double walk) {
  std::vector<DealtLaunch> launches(products, {blocks, 5 * us, true});
  launches.resize(products + others, {blocks, other_bytes / limits.read_bytes_per_second, false});
  return {name, launches, one_after_the_other(launches.size()), spilled, graph, walk};
}

/// Branches of 4 launches on 16 rows of 4096 in float32. The last one adds up, where it joins.
MeasuredRegion rows(const std::string& name, std::uint32_t branches, bool last_joins, bool side_by_side, double graph,
                    double walk) {
  MeasuredRegion region{.name = name, .graph = graph, .walk = walk};
  const double item = 2 * 4096 * 4 * blocks / limits.read_bytes_per_second;
  std::vector<std::uint32_t> ends;
  for (std::uint32_t b = 0; b < branches; ++b)
    for (std::uint32_t l = 0; l < 4; ++l) {
      const auto at = static_cast<std::uint32_t>(region.launches.size());
      region.launches.push_back({16, item, false});
      region.needs.push_back(l == 0 ? std::vector<std::uint32_t>() : std::vector{at - 1});
      if (l == 3 && b + 1 < branches) ends.push_back(at);
    }
  region.needs.back().insert(region.needs.back().begin(), ends.begin(), ends.end());
  if (!last_joins) region.launches.pop_back(), region.needs.pop_back();
  if (!side_by_side) region.needs = one_after_the_other(region.launches.size());
  return region;
}

/// Rows as of ("All models, walk beside graph", "Branches side by side", "Items that are claimed"); whole models of 1B
/// and 8B have layers of 5 and 9 launches, one of which is attention over keys and values of 512 tokens.
std::vector<MeasuredRegion> measured_regions() {
  return {
      rows("a branch", 1, true, true, 14.5, 22.8),
      rows("a branch, in turn", 1, true, false, 14.5, 22.3),
      rows("two branches", 2, true, true, 23.6, 27.6),
      rows("two branches, in turn", 2, true, false, 23.6, 37.2),
      rows("four branches", 4, false, true, 41.0, 29.3),
      rows("four branches, in turn", 4, false, false, 41.0, 66.4),
      chain("1B bf16", 65, 21, 1e6, 40, 756.7, 828.1),
      chain("1B bf16, second run", 65, 21, 1e6, 40, 763.9, 830.1),
      chain("1B int8, int8 head", 65, 21, 1e6, 40, 520.1, 609.6),
      chain("1B bf16, context 8192", 65, 21, 16.8e6, 40, 863.5, 915.0),
      chain("8B bf16, 8 layers", 33, 13, 2.1e6, 456, 1133.2, 1251.3),
      chain("8B bf16", 129, 37, 2.1e6, 456, 3768.8, 4236.5),
      chain("8B int8, 8 layers", 33, 45, 2.1e6, 608, 767.9, 1047.5),
      chain("8B int8", 129, 165, 2.1e6, 608, 2331, 3484),
      chain("mixture bf16, 6 layers", 25, 23, 0.5e6, 488, 360.7, 547.6),
      chain("mixture int8, 6 layers", 25, 23, 0.5e6, 512, 272.5, 469.7),
      chain("1B bf16, 2 rows", 65, 69, 1e6, 0, 887, 1362),
      chain("1B bf16, 8 rows", 65, 69, 4.2e6, 0, 943, 1058),
      chain("1B bf16, 16 rows", 65, 69, 8.4e6, 152, 1074, 1598),
      chain("attention of 16 sequences between products", 2, 1, 67e6, 168, 41.4, 71.8),
      chain("int8 864 x 7168 x 4096 and its gate", 0, 2, 60e6, 128, 52.6, 87.9),
  };
}

TEST(WalkCost, HasTheSignOfEveryRegionThatWasMeasured) {
  for (const MeasuredRegion& region : measured_regions()) {
    const WalkCost cost = region.cost();
    const double measured = region.walk - region.graph;
    SCOPED_TRACE(fmt::format(
        "{}: {:.1f} us measured; predicted {:.1f} + {:.1f} of spills - {:.1f} saved - {:.1f} = {:.1f}", region.name,
        measured, cost.walk / us, cost.spills / us, cost.saved / us, cost.graph / us, cost.loss() / us));
    RecordProperty(region.name, fmt::format("{:.1f} {:.1f}", measured, cost.loss() / us));
    EXPECT_EQ(cost.loss() < 0, measured < 0);
    EXPECT_EQ(cost.saved > 0.001 * us, region.name == "two branches" || region.name == "four branches");
    EXPECT_GT(cost.loss() / us, std::min(measured, 0.0)) << "no more is promised than was measured";
  }
}

TEST(WalkCost, IsNearWhatRowsAndADecodeStepTook) {
  const std::vector<MeasuredRegion> regions = measured_regions();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(regions[i].cost().loss() / us, regions[i].walk - regions[i].graph, 3) << regions[i].name;
  for (std::size_t i = 6; i < 8; ++i) {
    const double found = regions[i].cost().loss() / us, measured = regions[i].walk - regions[i].graph;
    EXPECT_GT(found, measured) << regions[i].name;
    EXPECT_LT(found, 1.7 * measured) << regions[i].name;
  }
}

TEST(WalkCost, CountsWhatEachPartIsFor) {
  const MeasuredRegion region = chain("products", 84, 0, 0, 0, 0, 0);
  const WalkCost cost = region.cost(), more = region.cost(2 * jit::walk_in_flight);
  EXPECT_NEAR(more.walk - cost.walk, 84 * static_cast<double>(jit::walk_in_flight) * blocks / 4.563e12, 1e-9)
      << "a release waits for the bytes on their way";
  EXPECT_EQ(more.graph, cost.graph);
  EXPECT_NEAR(cost.loss() / us, 70 + 2.2, 2) << "the 69 us of a step of 83 boundaries, and what a walk takes to start";
  EXPECT_EQ(cost.saved, 0);
  EXPECT_EQ(cost.spills, 0);
  MeasuredRegion one = rows("four branches", 4, false, true, 0, 0);
  EXPECT_LT(one.cost().loss(), 0);
  one.spilled = 456;
  EXPECT_GT(one.cost().loss(), 0) << "code that spills takes back what lies side by side saves";
  const std::vector<DealtLaunch> empty(20, {0, us, false});
  EXPECT_NEAR(walk_cost(empty, Needs(20), blocks, jit::walk_in_flight, limits, h200()).loss() / us, 2.2, 0.01)
      << "no block takes any of them";
}

/// As compiled, where no option asks for a walk: kernels that join, in regions that are linked.
TEST(WalkCost, LinksFourBranchesAndNoFewer) {
  for (const int branches : {1, 2, 4}) {
    Step step("null:sm_90", "decode", "", branches_step(branches, 4, 4096));
    step.session.run();
    const std::vector<SuperRegion>& regions = step.session.executable().super_kernels()->regions;
    EXPECT_EQ(regions.size(), branches == 4 ? 1u : 0u) << branches << ": launches by themselves have 512 threads";
    for (const SuperRegion& region : regions)
      EXPECT_EQ(region.end_launch, 15u) << "the sum has 512 threads in any case";
    Step in_turn("null:sm_90", "decode", "stream-fusion=0", branches_step(branches, 4, 4096));
    in_turn.session.run();
    EXPECT_TRUE(in_turn.session.executable().super_kernels()->regions.empty()) << branches;
  }
}

TEST(WalkCost, ChoosesNoKernelsForWalksOfSizesThatVary) {
  const auto configs_of = [](const std::string& select, const std::string& rows) {
    std::string text = branches_step(4, 4, 4096);
    for (std::size_t at = 0; (at = text.find("[16,", at)) != std::string::npos; ++at)
      text.replace(at, 4, "[" + rows + ",");
    text.insert(text.find('\n') + 1, "  symbol T : 0..16\n");
    Context context({"null:sm_90", 2});
    std::vector<CompileRecord> records;
    SessionOptions options = Step::options_of(select, "");
    options.fusion.records = &records;
    options.maximum.set(Symbol("T"), 16);
    const Session session(parse_graph(text), context, load_by_name, options);
    std::vector<Config> configs;
    for (const BlockRecord& block : records.at(0).blocks) configs.push_back(block.choice.config);
    return configs;
  };
  EXPECT_EQ(configs_of("decode", "T"), configs_of("", "T"));
  EXPECT_NE(configs_of("decode", "16"), configs_of("", "16"));
}

TEST(WalkCost, LeavesShortRowsToTheirLaunches) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  const auto link = [](int columns) {
    Step step("null:sm_90", "decode", "strict-scope-check=abort", branches_step(4, 4, columns, false));
    step.session.run();
    return error_text([&] { step.session.executable().launched_plan(); });
  };
  EXPECT_EQ(link(4096), "no error");
  const std::string shorter = link(512);  // which join as they are
  EXPECT_NE(shorter.find("launches 0 to 15: loss: "), std::string::npos) << shorter;
  EXPECT_NE(shorter.find(" us a run; its boundaries and bodies take "), std::string::npos) << shorter;
}

}  // namespace
}  // namespace cermet::walk_cost_test_file

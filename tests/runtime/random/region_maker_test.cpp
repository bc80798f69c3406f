// Ten thousand random regions, each one launch of a GPU, and the bits of launches one by one.
#include "tests/runtime/random/region_maker.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "graph/text.hpp"
#include "runtime/session.hpp"
#include "runtime/super_kernel/deal.hpp"
#include "tests/runtime/super_kernel/walked_step.hpp"

namespace cermet::test {
namespace {

constexpr int regions_each = 50;

constexpr std::array options_list{"width=132", "profile=1", "width=7", "width=33:stream-fusion=0",
                                  "width=64:debug-sync-all=1"};

/// All results, one after the other, and whether they say something.
struct Results {
  std::vector<std::byte> bytes;
  std::int64_t finite = 0, elements = 0;
  friend bool operator==(const Results& a, const Results& b) { return a.bytes == b.bytes; }
};

class RegionRun {
 public:
  RegionRun(const RandomRegion& drawn, Context& context, WeightStore& weights) : drawn_(drawn), context_(context) {
    SessionOptions options;
    options.maximum.set(Symbol("T"), most_region_rows);
    options.fusion.mode = FusionMode::none;
    options.skip = {"common-subexpressions"};
    session_.emplace(drawn.graph, context, weights, options);
    SymbolValues symbols;
    symbols.set(Symbol("T"), drawn.rows);
    for (const Value& value : drawn.graph.values()) {
      if (value.kind != ValueKind::input) continue;
      Input& input = inputs_.emplace_back(
          value.name, OwnedTensor(value.type.dtype, cermet::bind(value.type.dims, symbols)), DeviceBuffer());
      input.memory = context.device().allocate(std::max<std::int64_t>(bytes_of(input.values.view), 1));
      TensorView view = input.values.view;
      view.data = input.memory.data();
      session_->bind(value.name, view);
    }
  }

  /// Of inputs of this number: who reads what a run of other inputs has left gives other bits.
  Results run(int number) {
    for (Input& input : inputs_) {
      fill_region_operand(input.name, number, input.values.view);
      context_.stream()->upload(input.memory.data(), input.values.view.data, bytes_of(input.values.view));
      context_.stream()->synchronize();
    }
    session_->run();
    Results all;
    for (const GraphOutput& output : drawn_.graph.outputs()) {
      const TensorView view = session_->host_output(output.name);
      all.bytes.insert(all.bytes.end(), view.as<std::byte>(), view.as<std::byte>() + bytes_of(view));
      for (std::int64_t i = 0; i < view.elements(); ++i) all.finite += std::isfinite(view.as<float>()[i]) ? 1 : 0;
      all.elements += view.elements();
    }
    return all;
  }
  Executable& executable() { return session_->executable(); }

 private:
  struct Input {
    std::string name;
    OwnedTensor values;
    DeviceBuffer memory;
  };
  static std::int64_t bytes_of(const TensorView& view) { return dense_bytes(view.dtype, view.shape); }

  const RandomRegion& drawn_;
  Context& context_;
  std::vector<Input> inputs_;
  std::optional<Session> session_;
};

struct Counts {
  std::int64_t regions = 0, launches = 0, finite = 0, elements = 0;
};

/// The first run is launched one by one; later ones are linked.
void check(std::uint64_t seed, Context& context, WeightStore& weights, RegionKind kind, Counts& counts) {
  const std::string options = options_list[seed % options_list.size()];
  const RandomRegion drawn = random_region(seed, kind, options);
  SCOPED_TRACE(fmt::format("region {}, {}", seed, options));
  RegionRun runs(drawn, context, weights);
  const Results expected = runs.run(0);
  ASSERT_TRUE(runs.executable().linked_regions().empty());
  const Results others = runs.run(1);
  const auto linked = runs.executable().linked_regions();
  ASSERT_EQ(linked.size(), drawn.breaks + 1) << to_text(drawn.graph);
  ASSERT_FALSE(expected == others) << "results depend on inputs";
  for (int run = 0; run < 6; ++run) {
    ASSERT_TRUE(runs.run(0) == expected) << "run " << run << "\n" << to_text(drawn.graph);
    ASSERT_TRUE(runs.run(1) == others) << "run " << run << "\n" << to_text(drawn.graph);
  }
  for (const auto& region : linked) counts.launches += static_cast<std::int64_t>(region->count());
  counts.regions += static_cast<std::int64_t>(linked.size());
  counts.finite += expected.finite;
  counts.elements += expected.elements;
}

class LongGpuRandomRegions : public testing::TestWithParam<int> {};

/// A graph of three kinds is of int8. Bodies are linked once for each kind, so that ten thousand regions take minutes.
TEST_P(LongGpuRandomRegions, GiveTheBitsOfLaunchesOneByOne) {
  if (const std::string reason = cuda::unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  Context context(ContextOptions{.device = "cuda", .threads = 1});
  if (context.target()->compute_capability != 90) GTEST_SKIP() << "super-kernels need compute capability 9.0";
  const RegionKind kind = GetParam() % 3 == 2 ? RegionKind::int8 : RegionKind::bf16;
  WeightStore weights(
      [](const std::string& name, std::int64_t, const TensorView& to) { fill_region_operand(name, 0, to); },
      context.pool(), context.queue());
  Counts counts;
  for (int i = 0; i < regions_each; ++i)
    check(static_cast<std::uint64_t>(GetParam() * regions_each + i), context, weights, kind, counts);
  EXPECT_GT(counts.finite, counts.elements * 9 / 10);
  RecordProperty("regions", static_cast<int>(counts.regions));
  RecordProperty("launches", static_cast<int>(counts.launches));
}
INSTANTIATE_TEST_SUITE_P(All, LongGpuRandomRegions, testing::Range(0, 200));

/// What a region links: its bodies, and how its shared memory is divided.
using Linked = std::pair<std::set<std::string>, std::int64_t>;
Linked linked_by(Executable& executable, const SuperRegion& region,
                 const std::vector<std::vector<std::uint32_t>>& needs, const Target& target) {
  std::vector<cuda::Program> programs;
  Linked linked;
  std::int64_t all_needs = 0;
  for (std::size_t l = region.first_launch; l < region.end_launch; ++l) {
    const Launch& launch = executable.plan().launches()[l];
    const cermet::Region& part = executable.steps()[launch.step].region;
    Choice choice = select_kernel(part);
    choose_joinable(part, choice);
    programs.push_back(choice.kernel->programs(part, choice.config).at(launch.program));
    all_needs += static_cast<std::int64_t>(needs[l - region.first_launch].size());
    const std::string body = programs.back().prelude + programs.back().task;
    linked.first.insert(body);
  }
  linked.second = jit::walk_shape(programs, target, std::ssize(programs), all_needs).stages;
  return linked;
}

/// Without a GPU: what is drawn joins as it should, and blocks that go on in any order come to an end, with what they
/// read there.
TEST(LongRandomRegionGraphs, HoldInAnyOrderOfBlocks) {
  for (const RegionKind kind : {RegionKind::bf16, RegionKind::int8}) {
    Context context(ContextOptions{.device = "null:sm_90", .threads = 1});
    WeightStore weights([](const std::string&, std::int64_t, const TensorView&) {}, context.pool(), context.queue());
    std::set<Linked> linked;
    int moved = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const RandomRegion drawn = random_region(seed, kind, "width=132");
      SCOPED_TRACE(fmt::format("region {}", seed));
      RegionRun run(drawn, context, weights);
      run.executable().run([&] {
        SymbolValues symbols;
        symbols.set(Symbol("T"), drawn.rows);
        return symbols;
      }());
      const SuperFormation& formation = *run.executable().super_kernels();
      ASSERT_EQ(formation.regions.size(), drawn.breaks + 1);
      const Plan& plan = run.executable().plan();
      for (const SuperRegion& region : formation.regions) {
        const std::size_t count = region.end_launch - region.first_launch;
        const auto needs = region_needs(plan, region.first_launch, count);
        linked.insert(linked_by(run.executable(), region, needs, *context.target()));
        std::vector<DealtLaunch> dealt;
        for (std::size_t l = region.first_launch; l < region.end_launch; ++l)
          dealt.push_back({plan.launches()[l].items, 1e-6});
        for (const std::uint32_t blocks : {132u, 7u}) {
          const std::vector<std::uint32_t> first_block = first_blocks(dealt, needs, blocks);
          moved += std::ranges::any_of(first_block, [](std::uint32_t block) { return block > 0; }) ? 1 : 0;
          EXPECT_EQ(walk_in_any_order(plan, blocks, seed, needs, region.first_launch, first_block), "");
        }
      }
    }
    EXPECT_GT(moved, 20) << "launches that do not need each other lie on different blocks";
    EXPECT_LE(linked.size(), 10u) << "thousands of regions are thousands of lists for the same code";
  }
}

}  // namespace
}  // namespace cermet::test

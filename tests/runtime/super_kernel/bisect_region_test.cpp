// A launch of a region that comes too early must be found, and nothing else.
#include <gtest/gtest.h>

#include "runtime/bisect_region.hpp"
#include "runtime/session.hpp"
#include "runtime/super_kernel/super_region.hpp"
#include "tests/runtime/graph_harness.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

const std::string two_regions =
    "graph two {\n  symbol T : 1..32\n  super_kernel one\n  super_kernel other\n  input %x : f32[T, 64]\n  constant %w "
    ": f32[64, 64]\n  constant %g : f32[64]\n"
    "  %a = rms_norm(%x, %g) : f32[T, 64] in one  // a\n  %b = linear(%a, %w) : f32[T, 64] in one  // b\n  %c = "
    "softmax(%b) : f32[T, 64] in one  // c\n"
    "  %d = linear(%c, %w) : f32[T, 64]  // between\n"
    "  %e = rms_norm(%d, %g) : f32[T, 64] in other  // e\n  %f = linear(%e, %w) : f32[T, 64] in other  // f\n  %h = "
    "softmax(%f) : f32[T, 64] in other  // h\n"
    "  output y = %h\n}\n";

class RegionBisect : public testing::Test {
 protected:
  RegionBisect() : context_({"cpu", 2}) {}

  /// Of a graph without fusion, so that launches are its nodes.
  RegionBisectReport bisect(const std::string& text, std::size_t fault, int repeat = 1, const std::string& select = "",
                            bool ends = false) {
    SessionOptions options;
    options.maximum.set(Symbol("T"), 32);
    options.fusion.mode = FusionMode::none;
    options.fusion.super_kernel.select = select;
    Session session(parse_graph(text), context_, load_by_name, options);
    OwnedTensor x(DType::f32, {5, 64});
    fill_by_name("x", x.view);
    session.bind("x", x.view);
    const auto run = [&] { session.run(); };
    run();
    const TensorView y = session.output("y");
    const std::vector<float> before(y.as<float>(), y.as<float>() + y.elements());
    const RegionBisectReport report =
        bisect_region(session.executable(), {[] {}, run}, {.repeat = repeat, .ends = ends, .fault = fault});
    run();
    EXPECT_EQ(std::vector<float>(y.as<float>(), y.as<float>() + y.elements()), before) << "selections end with it";
    return report;
  }

  Context context_;
};

TEST_F(RegionBisect, FindsNothingWhereAllIsRight) {
  const RegionBisectReport report = bisect(two_regions, LaunchSelection::all, 3);
  EXPECT_FALSE(report.fault);
  EXPECT_EQ(report.regions, 2u);
  EXPECT_EQ(report.launches, 6u);
  EXPECT_EQ(report.runs, 6u * (1 + 3));
}

TEST_F(RegionBisect, FindsTheLaunchThatComesTooEarly) {
  for (const std::size_t early : {1, 2, 5, 6}) {
    const RegionBisectReport report = bisect(two_regions, early);
    ASSERT_TRUE(report.fault) << early;
    EXPECT_EQ(report.fault->launch, early);
    EXPECT_EQ(report.fault->super_kernel, early < 3 ? "one" : "other");
    EXPECT_EQ(report.fault->scope, (std::vector<std::string>{"a", "b", "c", "between", "e", "f", "h"})[early]);
    EXPECT_EQ(report.fault->elements, 5u * 64);
    EXPECT_EQ(report.fault->differing, 5u * 64);
    EXPECT_NE(report.fault->found, report.fault->expected);
  }
}

TEST_F(RegionBisect, LooksAtEndsOfRegionsAlone) {
  const RegionBisectReport right = bisect(two_regions, LaunchSelection::all, 3, "", true);
  EXPECT_FALSE(right.fault);
  EXPECT_EQ(right.runs, 2u * (1 + 3));
  const RegionBisectReport wrong = bisect(two_regions, 1, 1, "", true);
  ASSERT_TRUE(wrong.fault);
  EXPECT_EQ(wrong.fault->launch, 2u) << "the last of the first region";
}

TEST_F(RegionBisect, NeedsARegion) {
  EXPECT_EQ(error_text([&] { bisect(two_regions, LaunchSelection::all, 1, "none"); }),
            "bisect-region: expected a run with a region of a super-kernel, found none");
}

}  // namespace
}  // namespace cermet

// Regions of super-kernels: which launches become one, and every reason why one cannot.
#include "runtime/super_kernel/super_region.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

constexpr SuperLimits gpu{.calls = false, .links = true, .shared_bytes = 1000, .blocks = 8, .most_items = 100};

Launch program(std::uint32_t items = 4) {
  Launch launch;
  launch.kind = Launch::Kind::program;
  launch.items = items;
  return launch;
}

/// Steps of one launch each, marked as the letters say: a, b: super-kernels; -: none. A capital cannot join.
struct Marked {
  Plan plan;
  std::vector<SuperStep> steps;
  std::vector<std::string> scopes;
  std::vector<SuperKernel> super_kernels{{"first", ""}, {"second", ""}};

  explicit Marked(std::string_view letters) {
    for (const char letter : letters) {
      plan.begin_step(steps.size());
      Launch launch = program();
      const bool joins = letter != 'A' && letter != 'B';
      if (!joins) launch.shape.cluster = 2;
      plan.add_program(launch, {});
      scopes.push_back(fmt::format("layers.{}", steps.size()));
      steps.push_back({letter == 'a' || letter == 'A'   ? 0
                       : letter == 'b' || letter == 'B' ? 1
                                                        : Node::unmarked,
                       false});
    }
  }
  SuperFormation formation() const { return form_regions(plan, steps, super_kernels, gpu); }
  /// "first 0-2 second 3"
  std::string text() const {
    std::string text;
    for (const SuperRegion& region : formation().regions)
      text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", region.name, region.first_step, region.last_step);
    return text;
  }
};

TEST(SuperRegions, AreFormedByOrder) {
  EXPECT_EQ(Marked("aaa").text(), "first 0-2");
  EXPECT_EQ(Marked("-aab-").text(), "first 1-2, second 3-3");
  EXPECT_EQ(Marked("aa-aa").text(), "first 0-1, first 3-4")
      << "a node outside ends a region, and the next begins behind it";
  EXPECT_EQ(Marked("aaAaa").text(), "first 0-1, first 3-4") << "so does one that cannot join";
  EXPECT_EQ(Marked("abab").text(), "first 0-0, second 1-1, first 2-2, second 3-3");
  EXPECT_EQ(Marked("A").text(), "");
  EXPECT_EQ(Marked("").text(), "");
}

TEST(SuperRegions, ALaunchOfManyIsInTheRegionOfItsStep) {
  Marked marked("");
  marked.steps = {{0, false}, {0, false}};
  for (const std::size_t step : {0, 0, 0, 1}) {
    marked.plan.begin_step(step);
    marked.plan.add_program(program(), {});
  }
  const SuperFormation formation = marked.formation();
  ASSERT_EQ(formation.regions.size(), 1u);
  EXPECT_EQ(formation.regions[0].end_launch, 4u);
  EXPECT_EQ(formation.regions[0].last_step, 1u);
}

TEST(SuperRegions, BreaksAreReportedAsTheOptionsSay) {
  Marked marked("aAaB");
  EXPECT_EQ(error_text([&] {
              report_breaks(marked.formation(), marked.super_kernels,
                            [&](std::size_t step) -> std::string_view { return marked.scopes[step]; });
            }),
            "no error")
      << "a warning";
  marked.super_kernels[0].options = "strict-scope-check=abort";
  EXPECT_EQ(error_text([&] {
              report_breaks(marked.formation(), marked.super_kernels,
                            [&](std::size_t step) -> std::string_view { return marked.scopes[step]; });
            }),
            "super-kernel 'first': expected launches that can all join, found 1 that cannot:\n  layers.1 (launch 1): "
            "clusters: thread blocks that form clusters, "
            "which a launch has of one size only (clusters of 2); choose a configuration without clusters: `cermet "
            "explain op` lists them");
  marked.super_kernels[0].options = "";
  marked.super_kernels[1].options = "strict-scope-check=abort";
  EXPECT_NE(error_text([&] {
              report_breaks(marked.formation(), marked.super_kernels,
                            [&](std::size_t step) -> std::string_view { return marked.scopes[step]; });
            }).find("super-kernel 'second'"),
            std::string::npos);
}

/// The reason, or "joins".
std::string info_text(const std::optional<SuperBreak>& apart) {
  return apart ? std::string(info_of(apart->reason).id) + (apart->found.empty() ? "" : ": " + apart->found) : "joins";
}
std::string reason_of(const Launch& launch, bool is_outside = false, const SuperLimits& limits = gpu) {
  return info_text(why_apart(launch, {0, is_outside}, limits));
}

Launch of_kind(Launch::Kind kind) {
  Launch launch = program();
  launch.kind = kind;
  return launch;
}

TEST(SuperReasons, EachIsReached) {
  Launch clusters = program(), shared = program();
  clusters.shape.cluster = 4;
  shared.shape.shared_bytes = 1001;
  const std::vector<std::string> found{
      reason_of(of_kind(Launch::Kind::product)),
      reason_of(of_kind(Launch::Kind::function)),
      reason_of(of_kind(Launch::Kind::call)),
      reason_of(of_kind(Launch::Kind::fill)),
      reason_of(clusters),
      reason_of(shared),
      reason_of(program(101)),
      info_text(why_apart(program(), {0, false, {"streams on its own"}}, gpu)),
      reason_of(program(), false, {.calls = false, .links = false}),
      info_text(why_apart(clusters, {.loss = 12e-6}, gpu)),
  };
  EXPECT_EQ(found,
            (std::vector<std::string>{
                "vendor-product", "outside-code", "host-work", "fill", "clusters: clusters of 4",
                "shared-memory: 1001 bytes, at most 1000", "many-items: 101, at most 100", "form: streams on its own",
                "architecture",
                "loss: 12 us a run by forecast, so that kernels were chosen that are faster alone: clusters of 4"}));
  std::set<std::string> ids;
  for (const std::string& text : found) ids.insert(text.substr(0, text.find(':')));
  for (const SuperReasonInfo& info : super_reasons()) {
    EXPECT_FALSE(info.sentence.empty() || info.advice.empty()) << info.id;
    EXPECT_TRUE(ids.contains(std::string(info.id))) << info.id;
  }
}

TEST(SuperReasons, TheCpuTakesCallsOfItsOwnKernels) {
  EXPECT_EQ(reason_of(program()), "joins");
  EXPECT_EQ(reason_of(of_kind(Launch::Kind::call), false, {.calls = true}), "joins");
  EXPECT_EQ(reason_of(of_kind(Launch::Kind::call), true, {.calls = true}), "outside-code");
}

TEST(SuperRegions, AreAsWideAsTheDeviceAndTheOption) {
  const auto blocks = [](const std::string& options) {
    Marked marked("a");
    marked.super_kernels[0].options = options;
    return marked.formation().regions.at(0).blocks;
  };
  EXPECT_EQ(blocks(""), 8u);
  EXPECT_EQ(blocks("width=6"), 6u);
  EXPECT_EQ(blocks("width=99"), 8u);
}

}  // namespace
}  // namespace cermet

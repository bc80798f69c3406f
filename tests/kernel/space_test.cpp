// Spaces of configurations: what they enumerate, how they are sampled, and what they say of configurations outside.
#include "kernel/space.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace cermet {
namespace {

/// 2 * 5 * 4 combinations, of which the constraint leaves some; "raster" is left out where it is 4.
ConfigSpace tile_stage_space() {
  ConfigSpace space;
  space.add(ConfigField::set("tile", {128, 64}))
      .add(ConfigField::range("stages", 2, 6))
      .add(ConfigField::powers("raster", 1, 8).with_usual(4));
  return space.constrain("tile * stages is at most 400",
                         [](const Config& c) { return c.at("tile") * c.at("stages") <= 400; });
}

TEST(ConfigSpace, EnumeratesWhatTheConstraintsLeave) {
  const ConfigSpace space = tile_stage_space();
  EXPECT_EQ(space.combinations(), 2 * 5 * 4);
  std::vector<std::string> expected;
  for (const int tile : {64, 128})
    for (int stages = 2; stages <= 6; ++stages)
      for (const int raster : {1, 2, 4, 8})
        if (tile * stages <= 400)
          expected.push_back(
              fmt::format("tile={} stages={}{}", tile, stages, raster == 4 ? "" : fmt::format(" raster={}", raster)));
  std::vector<std::string> found;
  for (const Config& point : space.points()) {
    found.push_back(point.to_string());
    EXPECT_TRUE(space.contains(point));
    EXPECT_EQ(space.canonical(space.complete(point)), point);
    EXPECT_EQ(space.complete(point).fields().size(), 3u);
  }
  EXPECT_EQ(found, expected);
}

TEST(ConfigSpace, SaysWhyAConfigurationIsOutside) {
  const ConfigSpace space = tile_stage_space();
  const auto fault = [&](const char* text) { return space.fault_of(parse_config(text)).value_or(""); };
  EXPECT_EQ(fault("default"), "");
  EXPECT_EQ(fault("tile=64 stages=6"), "");
  EXPECT_EQ(fault("tile=96 stages=2"), "tile: expected one of 64, 128, found 96");
  EXPECT_EQ(fault("tile=64 stages=7"), "stages: expected 2 to 6, found 7");
  EXPECT_EQ(fault("tile=64 stages=2 raster=3"), "raster: expected powers of two from 1 to 8, found 3");
  EXPECT_EQ(fault("tile=64"), "stages: expected 2 to 6, found nothing");
  EXPECT_EQ(fault("tile=64 stages=2 depth=1"), "expected a field of tile, stages, raster, found depth");
  EXPECT_EQ(fault("tile=128 stages=4"), "expected that tile * stages is at most 400, found tile=128 stages=4");
  EXPECT_EQ(fault("tile=64 stages=2 raster=4"), "expected tile=64 stages=2, found tile=64 stages=2 raster=4")
      << "one form for each configuration";
  EXPECT_EQ(ConfigSpace().fault_of(parse_config("tile=64")),
            "expected default, because it runs in one way here, found tile=64");
}

TEST(ConfigSpace, AFieldThatIsAlwaysUsualIsTheKernelsOwnChoice) {
  ConfigSpace space;
  space.add(ConfigField::powers("threads", 1, 3).with_usual(3));
  std::vector<std::string> found;
  for (const Config& point : space.points()) found.push_back(point.to_string());
  EXPECT_EQ(found, (std::vector<std::string>{"threads=1", "threads=2", "default"}));
  EXPECT_EQ(space.fields()[0].text, "one of 1, 2, 3");
  EXPECT_EQ(ConfigField::range("k", 2, 8, 3).text, "2 to 8 in steps of 3");
  EXPECT_EQ(ConfigField::range("k", 2, 8, 3).values, (std::vector<std::int64_t>{2, 5, 8}));
  EXPECT_EQ(ConfigField::fixed("k", 7).text, "7");
  EXPECT_TRUE(ConfigField::range("k", 2, 1).values.empty());
}

TEST(ConfigSpace, AListHoldsItsConfigurationsAndNoOthers) {
  const ConfigSpace space = ConfigSpace::listing({{}, {{"tile", 64}, {"splits", 1}}, {{"tile", 128}, {"splits", 0}}});
  EXPECT_EQ(space.points().size(), 2u);
  EXPECT_TRUE(space.contains({}));
  EXPECT_TRUE(space.contains({{"tile", 64}, {"splits", 1}}));
  EXPECT_EQ(space.fault_of({{"tile", 64}, {"splits", 0}}), "expected another combination than tile=64 splits=0");
  EXPECT_EQ(space.fault_of({{"tile", 32}}), "tile: expected one of 64, 128, found 32");
}

TEST(ConfigSpace, NothingIsLeftOfConstraintsThatNeverHold) {
  ConfigSpace space = tile_stage_space();
  space.constrain("never", [](const Config&) { return false; });
  std::mt19937_64 random(1);
  EXPECT_TRUE(space.points().empty());
  EXPECT_FALSE(space.sample(random).has_value());
  EXPECT_FALSE(ConfigSpace().sample(random).has_value());
}

/// The chi-square statistic of draws that should be even; its mean is the degrees of freedom, its deviation the root of
/// twice that.
double chi_square_of(const std::map<std::string, int>& counts, std::size_t points, int draws) {
  const double expected = static_cast<double>(draws) / static_cast<double>(points);
  double sum = expected * static_cast<double>(points - counts.size());
  for (const auto& [name, count] : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

void expect_even_draws(const ConfigSpace& space, int draws) {
  std::mt19937_64 random(20260301);
  std::map<std::string, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[space.sample(random)->to_string()];
  const std::size_t points = space.points().size();
  const double freedom = static_cast<double>(points - 1);
  const double statistic = chi_square_of(counts, points, draws);
  EXPECT_LT(statistic, freedom + 4 * std::sqrt(2 * freedom)) << points << " points";
  EXPECT_GT(statistic, freedom - 4 * std::sqrt(2 * freedom)) << "too even to be random";
}

TEST(ConfigSpace, EveryPointIsDrawnAsOften) {
  expect_even_draws(tile_stage_space(), 20000);
  // Rare points, which rejection alone seldom finds: 3 of 3,600 combinations.
  ConfigSpace rare;
  rare.add(ConfigField::range("a", 1, 60)).add(ConfigField::range("b", 1, 60));
  rare.constrain("a + b is below 4", [](const Config& c) { return c.at("a") + c.at("b") < 4; });
  EXPECT_EQ(rare.points().size(), 3u);
  expect_even_draws(rare, 300);
  expect_even_draws(ConfigSpace::listing({{{"tile", 1}}, {{"tile", 2}}, {{"tile", 3}}}), 9000);
}

}  // namespace
}  // namespace cermet

// Configurations as text, and kernels as values with state.
#include "kernel/config.hpp"

#include <gtest/gtest.h>

#include "kernel/kernel.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

TEST(Config, TextAndFieldsAreTheSame) {
  const Config config{{"tile_m", 128}, {"tile_n", 256}, {"stages", 4}};
  EXPECT_EQ(config.to_string(), "tile_m=128 tile_n=256 stages=4");
  EXPECT_EQ(parse_config("  tile_m=128 tile_n=256  stages=4 "), config);
  EXPECT_EQ(config.at("tile_n"), 256);
  EXPECT_EQ(config.find("tile_k"), std::nullopt);
  EXPECT_EQ(Config().to_string(), "default");
  EXPECT_EQ(parse_config("default"), Config());
  EXPECT_NE(parse_config("stages=4"), config);
  EXPECT_EQ(parse_config("shift=-3").at("shift"), -3);
}

TEST(Config, MistakesAreQuoted) {
  const auto error = [](const char* text) { return error_text([&] { parse_config(text); }); };
  EXPECT_EQ(error("tile_m"), R"(configuration: expected words like tile_m=128, found "tile_m")");
  EXPECT_EQ(error("tile_m="), R"(configuration: expected words like tile_m=128, found "tile_m=")");
  EXPECT_EQ(error("tile_m=1x"), R"(configuration: expected words like tile_m=128, found "tile_m=1x")");
  EXPECT_EQ(error("Tile=1"), R"(configuration: expected words like tile_m=128, found "Tile=1")");
  EXPECT_EQ(error("a=1 a=2"), R"(configuration: expected a once, found it again in "a=1 a=2")");
  EXPECT_EQ(error(""), R"(configuration: expected words like tile_m=128, or default, found "")");
  EXPECT_EQ(error("a=99999999999999999999"),
            R"(configuration: expected words like tile_m=128, found "a=99999999999999999999")");
}

/// A kernel that is made at run time captures what it needs, and each part takes what it asks for.
TEST(Kernel, IsAValueThatMayCarryState) {
  const auto made = [](std::int64_t base) {
    return Kernel{
        .name = fmt::format("generated.{}", base),
        .op = OpKind::silu,
        .summary = "",
        .declines = [base](const Problem& p) -> Decline {
          return p.size(0, 0) > base ? Decline("too long") : std::nullopt;
        },
        .bind = [](const Region&) -> Launcher { return [](const LaunchArgs&) {}; },
        .workspace = [base](const Problem& p, const Config& config,
                            int threads) { return base * p.size(0, 0) * config.find("copies").value_or(1) * threads; },
        .configs =
            [](const Problem&) {
              return std::vector<Config>{{}, {{"copies", 2}}};
            },
        .cost = [base](
                    const Region&,
                    const DeviceLimits& limits) { return static_cast<double>(base) / limits.read_bytes_per_second; }};
  };
  const Kernel small = made(4), large = made(1000);
  const Problem problem = make_problem(definition(OpKind::silu), {TensorType{DType::f32, {8}}}, {});
  EXPECT_EQ(small.declines(problem), "too long");
  EXPECT_EQ(large.declines(problem), std::nullopt);
  EXPECT_EQ(large.workspace(problem, 3), 24000);
  EXPECT_EQ(large.workspace(problem, large.configs(problem)[1], 3), 48000);
  DeviceLimits limits;
  limits.read_bytes_per_second = 500;
  EXPECT_EQ(large.cost(problem, limits), 2);
  EXPECT_TRUE(large.bind(problem));
  EXPECT_FALSE(large.programs) << "a kernel of the CPU";
}

}  // namespace
}  // namespace cermet

// Models of costs that are held to measured choices: regions from their stored text, factors of kernels, and the file
// that keeps them.
#include "select/tune/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "device/device.hpp"
#include "op/schema/operator.hpp"
#include "select/cost_factors.hpp"
#include "select/select.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

Problem product_on(const Target* target, Dim m, std::int64_t n, std::int64_t k) {
  Problem problem =
      make_problem(definition(OpKind::linear), {TensorType{DType::bf16, {m, k}}, TensorType{DType::bf16, {n, k}}}, {});
  problem.constant_inputs = 2;
  problem.target = target;
  return problem;
}

TEST(CostFit, ReadsRegionsFromTheirStoredText) {
  const auto device = make_null_device(90);
  Problem symbolic = product_on(device->target(), Dim(Symbol("T")), 4096, 2048);
  symbolic.maximum.set(Symbol("T"), 300);
  for (const Problem& problem : {product_on(device->target(), 16, 4096, 2048), symbolic}) {
    const std::string text = tuning_text(problem);
    const Region region = region_of_tuning_text(text, device->target());
    EXPECT_EQ(tuning_text(region), text);
    EXPECT_TRUE(region.is_constant(1));
    EXPECT_FALSE(region.is_constant(0));
    EXPECT_EQ(region.target(), device->target());
  }
  EXPECT_EQ(region_of_tuning_text(tuning_text(symbolic), nullptr).maximum()[Symbol("s0")], 512)
      << "the end of its bucket";
  const std::string several =
      "{n0 = rms_norm($0: f32[1, 4096], $1: f32[4096]); n1 = linear(strict n0, $2: bf16[6144, 4096])} anchor n1 -> n1; "
      "constant $1; constant $2";
  const Region region = region_of_tuning_text(several, nullptr);
  EXPECT_EQ(region.nodes.size(), 2u);
  EXPECT_TRUE(region.is_constant(1) && region.is_constant(2) && !region.is_constant(0));
  EXPECT_NE(error_text([] {
              region_of_tuning_text("silu(f32[8]); constant $4", nullptr);
            }).find("expected at most 1 operands, found constant $4"),
            std::string::npos);
  EXPECT_NE(error_text([] { region_of_tuning_text("silu(f32[8]); constant $x", nullptr); }).find("expected a number"),
            std::string::npos);
}

/// An entry whose winner and rivals took `factor` times what models say.
TuningEntry entry_for(const Problem& problem, double factor) {
  const Kernel& kernel = *choose_by_name(problem, "gemm.linear.hopper", "").kernel;
  const DeviceLimits limits = limits_of(problem.target);
  TuningEntry entry;
  entry.key = {tuning_text(problem), "device", "versions"};
  entry.kernel = kernel.name;
  entry.config = "default";
  entry.seconds = factor * kernel.cost(problem, {}, limits);
  for (const char* config : {"tile_m=128 tile_n=128 stages=4", "tile_m=64 tile_n=128 stages=4"})
    entry.rivals.push_back({kernel.name, config, factor * kernel.cost(problem, parse_config(config), limits), 0});
  entry.rivals.push_back({"gemm.linear.gone", "default", 1, 0});
  return entry;
}

TEST(CostFit, FindsTheFactorOfAKernel) {
  const auto device = make_null_device(90);
  const auto problem = [&](std::int64_t m, std::int64_t n) { return product_on(device->target(), m, n, 4096); };
  std::vector<TuningEntry> entries{entry_for(problem(64, 4096), 1.4), entry_for(problem(512, 4096), 1.5),
                                   entry_for(problem(2048, 4096), 1.5), entry_for(problem(512, 6144), 1.6)};
  entries.push_back(entries.front());
  entries.back().key.region = "no region";
  const std::vector<CostFit> fits = fit_costs(entries, device->target());
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_EQ(fits[0].kernel, "gemm.linear.hopper");
  EXPECT_EQ(fits[0].measured, 12u);
  EXPECT_EQ(fits[0].regions, 4u);
  EXPECT_NEAR(fits[0].factor, 1.5, 1e-9);
  EXPECT_NEAR(fits[0].error_before, (std::log(1.4) + 2 * std::log(1.5) + std::log(1.6)) / 4, 1e-9);
  EXPECT_LT(fits[0].error_after, std::log(1.6 / 1.5) + 1e-9);
  EXPECT_LT(fits[0].error_held_out, std::log(1.6 / 1.4) + 1e-9);
  EXPECT_TRUE(fit_costs(std::span(entries).first(2), device->target()).empty()) << "two regions say too little";
}

TEST(CostFactors, AreKeptBesideTheMeasuredChoices) {
  EXPECT_EQ(CostFactors::file_of("", "/cache").string(), "/cache/tuning/costs-1.json");
  EXPECT_EQ(CostFactors::file_of("", "").string(), "");
  EXPECT_EQ(CostFactors::file_of("off", "/cache").string(), "");
  EXPECT_EQ(CostFactors::file_of("shared.json", "/cache").string(), "");
  EXPECT_EQ(CostFactors::file_of("/x/choices.db", "/cache").string(), "/x/choices.db.costs.json");
  const test::ScratchFolder folder;
  CostFactors factors;
  factors.set("a GPU", {{"gemm.linear.hopper", 1.25}});
  factors.set("another", {{"gemv.linear", 0.5}});
  factors.write(folder / "costs.json");
  CostFactors read = CostFactors::read(folder / "costs.json");
  EXPECT_EQ(read.of("a GPU", "gemm.linear.hopper"), 1.25);
  EXPECT_EQ(read.of("a GPU", "gemv.linear"), 1);
  EXPECT_EQ(read.of("another", "gemv.linear"), 0.5);
  EXPECT_EQ(read.of("a third", "gemv.linear"), 1);
  read.set("a GPU", {});
  EXPECT_EQ(read.of("a GPU", "gemm.linear.hopper"), 1);
  EXPECT_FALSE(read.empty());
}

TEST(CostFactors, DamagedOnesArePassedOver) {
  const test::ScratchFolder folder;
  for (const char* text : {"", "{", "[]", "{\"cermet_costs\": 2, \"devices\": {}}",
                           "{\"cermet_costs\": 1, \"devices\": {\"a\": {\"k\": 1e9}}}",
                           "{\"cermet_costs\": 1, \"devices\": {\"a\": {\"k\": \"1\"}}}", "{\"cermet_costs\": 1}"})
    EXPECT_TRUE(CostFactors::read(folder.file("costs.json", text)).empty()) << text;
  EXPECT_TRUE(CostFactors::read(folder / "none.json").empty());
  EXPECT_NE(error_text([&] { CostFactors().write(folder.file("file", "") / "costs.json"); }).find("file"),
            std::string::npos);
}

}  // namespace
}  // namespace cermet

// Measured choices against models: what is taken, what is ignored and why.
#include <gtest/gtest.h>

#include <chrono>

#include "device/device.hpp"
#include "io/posix_file.hpp"
#include "kernel/forced.hpp"
#include "select/choice_reason.hpp"
#include "select/measured_choice.hpp"
#include "select/select.hpp"
#include "select/tuning_text.hpp"
#include "tests/model/scratch.hpp"
#include "tests/select/tuning_entries.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

using test::entry_for;
using test::linear_region;
using test::ScratchFolder;

struct TunedSelection : testing::Test {
  ScratchFolder scratch;
  std::unique_ptr<Device> device = make_null_device(90);
  Region region = linear_region("T", 512, device->target());
  Tuning tuning = Tuning::open("", scratch.path(), nullptr);
  Choice untuned = select_kernel(region, {.tuned = false});

  Selection explain(const Region& r, int threads = 4) {
    return explain_selection(r, {.threads = threads, .tuning = &tuning});
  }
  /// A kernel that takes the region and is not chosen for it.
  static const Candidate& other_than(const Selection& selection) {
    for (const Candidate& candidate : selection.candidates)
      if (!candidate.decline && candidate.kernel != selection.choice.kernel) return candidate;
    throw std::runtime_error("expected another kernel");
  }
};

TEST_F(TunedSelection, TakesWhatWasMeasured) {
  const Candidate other = other_than(explain(region));
  const std::string config = other.configs.back().config.to_string();
  tuning.database().put(entry_for(region, other.kernel->name, config));
  const Selection selection = explain(region);
  EXPECT_EQ(selection.choice.kernel, other.kernel);
  EXPECT_EQ(selection.choice.config.to_string(), config);
  ASSERT_TRUE(selection.tuned.has_value());
  EXPECT_FALSE(selection.tuned->shipped);
  EXPECT_TRUE(selection.ignored.empty());
  EXPECT_EQ(measured_time(selection, other.kernel->name, config)->seconds, 12e-6);
  EXPECT_EQ(explain_selection(region, {.tuned = false}).choice, untuned) << "which can be switched off";
  EXPECT_EQ(explain(linear_region("T", 513, device->target())).tuned, std::nullopt) << "another bucket";
  EXPECT_TRUE(explain(linear_region("rows", 300, device->target())).tuned.has_value())
      << "the same bucket, another name";
  EXPECT_FALSE(explain(linear_region("512", 0, device->target())).tuned.has_value()) << "a static size";
}

/// An entry has the times of a comparison in turn, its rivals those that they took alone.
TEST_F(TunedSelection, SaysWhatARivalWasBesideIt) {
  const Candidate other = other_than(explain(region));
  TuningEntry entry = entry_for(region, other.kernel->name, "default");
  entry.rivals = {{"gemm.linear.general", "default", 2 * entry.seconds, 0}};
  tuning.database().put(entry);
  EXPECT_NE(choice_reason(explain(region), region).find(", 2.00 times as fast as gemm.linear.general, default"),
            std::string::npos);
  entry.rivals[0].seconds = 0.9 * entry.seconds;
  tuning.database().put(entry);
  EXPECT_NE(choice_reason(explain(region), region).find("; gemm.linear.general, default was not faster beyond noise"),
            std::string::npos);
}

TEST_F(TunedSelection, TakesAnyPointOfAKernelsSpace) {
  const Candidate* hopper = nullptr;
  const Selection models = explain(region);
  for (const Candidate& candidate : models.candidates)
    if (candidate.kernel->name == "gemm.linear.hopper") hopper = &candidate;
  ASSERT_NE(hopper, nullptr);
  const std::vector<Config> points = space_of(*hopper->kernel, region).points();
  const auto listed = [&](const Config& config) {
    return std::ranges::find(hopper->configs, config, &ConfigCost::config) != hopper->configs.end();
  };
  const auto unlisted = std::ranges::find_if_not(points, listed);
  ASSERT_NE(unlisted, points.end()) << "its space has more than it proposes";
  tuning.database().put(entry_for(region, hopper->kernel->name, unlisted->to_string()));
  EXPECT_EQ(explain(region).choice, Choice(*hopper->kernel, *unlisted));
}

TEST_F(TunedSelection, IgnoresWhatDoesNotFitAndSaysWhy) {
  const auto reason = [&](const std::string& kernel, const std::string& config) {
    tuning.database().put(entry_for(region, kernel, config));
    const Selection selection = explain(region);
    EXPECT_EQ(selection.choice, untuned);
    EXPECT_FALSE(selection.tuned.has_value());
    return selection.ignored.size() == 1 ? selection.ignored[0].reason : "no reason";
  };
  EXPECT_EQ(reason("gemm.linear.forgotten", "default"),
            "expected a kernel of this operator, found \"gemm.linear.forgotten\"");
  EXPECT_EQ(reason("gemv.norm_linear", "default").find("gemv.norm_linear declines: "), 0u);
  EXPECT_EQ(reason("gemm.linear.hopper", "tile_m=63 tile_n=32 stages=4")
                .find("gemm.linear.hopper has no configuration tile_m=63 tile_n=32 stages=4 here: "),
            0u);
  EXPECT_EQ(reason("gemm.linear.hopper", "teapots=1").find("gemm.linear.hopper has no configuration teapots=1 here: "),
            0u);
}

TEST_F(TunedSelection, ForcedConfigurationsComeFirst) {
  const Candidate other = other_than(explain(region));
  tuning.database().put(entry_for(region, other.kernel->name, "default"));
  force_configs(ForcedConfigs(fmt::format("{}: default", untuned.kernel->name), "a test"));
  const Selection selection = explain(region);
  force_configs({});
  EXPECT_EQ(selection.choice.kernel, untuned.kernel);
  EXPECT_FALSE(selection.tuned.has_value());
}

TEST_F(TunedSelection, TheUsersOwnEntriesComeBeforeShippedOnes) {
  const Candidate other = other_than(explain(region));
  TuningTable shipped;
  TuningEntry entry = entry_for(region, other.kernel->name, "default");
  entry.key.versions = shipped_versions();
  shipped.put(entry);
  tuning = Tuning::open("", scratch.path(), &shipped);
  Selection selection = explain(region);
  ASSERT_TRUE(selection.tuned.has_value());
  EXPECT_TRUE(selection.tuned->shipped) << "for any driver and compiler";
  EXPECT_EQ(selection.choice.kernel, other.kernel);
  tuning.database().put(entry_for(region, untuned.kernel->name, untuned.config.to_string()));
  selection = explain(region);
  EXPECT_FALSE(selection.tuned->shipped);
  EXPECT_EQ(selection.choice, untuned);
  tuning.database().put(entry_for(region, "gemm.linear.forgotten", "default"));
  selection = explain(region);
  EXPECT_TRUE(selection.tuned->shipped) << "where the own entry is ignored";
  EXPECT_EQ(selection.ignored.size(), 1u);
}

TEST_F(TunedSelection, OnTheCpuThreadsAreTold) {
  const Region here = linear_region("T", 32, nullptr, "f32");
  const Choice choice = select_kernel(here, {.tuned = false});
  tuning.database().put(entry_for(here, choice.kernel->name, "default", 4));
  EXPECT_TRUE(explain(here, 4).tuned.has_value());
  EXPECT_FALSE(explain(here, 5).tuned.has_value());
  EXPECT_FALSE(explain(here, 0).tuned.has_value()) << "not known";
}

TEST_F(TunedSelection, IsTheSameEveryTime) {
  for (int most = 1; most <= 4096; most *= 2) {
    const Region sized = linear_region("T", most, device->target());
    const Selection selection = explain(sized);
    for (const Candidate& candidate : selection.candidates)
      if (!candidate.decline)
        tuning.database().put(entry_for(sized, candidate.kernel->name, candidate.configs.back().config.to_string()));
  }
  const Tuning again = Tuning::open("", scratch.path(), nullptr);
  for (int most = 1; most <= 4096; most = most * 3 / 2 + 1) {
    const Region sized = linear_region("T", most, device->target());
    const Choice first = explain(sized).choice;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(explain(sized).choice, first) << most;
    EXPECT_EQ(explain_selection(sized, {.tuning = &again}).choice, first) << most;
  }
}

TEST_F(TunedSelection, ATextTableIsReadAndNeverWritten) {
  const Candidate other = other_than(explain(region));
  const std::vector<TuningEntry> entries{entry_for(region, other.kernel->name, "default")};
  const auto file = scratch.file("table.json", tuning_table_text(entries));
  const std::string before = test::content_of(file);
  tuning = Tuning::open(file.string(), scratch.path(), nullptr);
  EXPECT_EQ(explain(region).choice.kernel, other.kernel);
  EXPECT_EQ(error_text([&] { tuning.database(); }),
            fmt::format(
                "tuning database: expected a file that can be written, found the text table {}, which is never written",
                file.string()));
  EXPECT_EQ(test::content_of(file), before);
  EXPECT_EQ(tuning.all(), entries);
}

TEST_F(TunedSelection, SwitchedOffOrMisnamed) {
  const Tuning off = Tuning::open("off", scratch.path(), nullptr);
  EXPECT_TRUE(off.is_off());
  EXPECT_TRUE(off.find(region, 4).empty());
  Tuning none = Tuning::open("", {}, nullptr);
  EXPECT_EQ(error_text([&] { none.database(); }),
            "tuning database: expected a file that can be written, found no cache folder: neither CERMET_CACHE_DIR nor "
            "HOME is set");
  scratch.file("notes.txt", "notes, not a database, of more than a few words, and of more than one line\n");
  EXPECT_EQ(error_text([&] {
              Tuning::open((scratch / "notes.txt").string(), {}, nullptr);
            }).find("environment variable CERMET_TUNING: "),
            0u);
  EXPECT_NE(error_text([&] { Tuning::open((scratch / "missing.json").string(), {}, nullptr); }).find("missing.json: "),
            std::string::npos);
  EXPECT_TRUE(Tuning::open((scratch / "missing.db").string(), {}, nullptr).find(region, 4).empty())
      << "a database without entries";
}

TEST_F(TunedSelection, ALookUpTakesMicroseconds) {
  for (int n = 1; n <= 500; ++n)
    tuning.database().put(
        entry_for(linear_region("T", 512, device->target(), "bf16", 8 * n), "gemm.linear.hopper", "default"));
  tuning = Tuning::open("", scratch.path(), nullptr);
  double best = 1;
  for (int n = 1; n <= 500; n += 20) {  // each for the first time
    const Region sized = linear_region("T", 512, device->target(), "bf16", 8 * n);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<FoundTuning> found = tuning.find(sized, 4);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_EQ(found.size(), 1u);
  }
  RecordProperty("microseconds", std::to_string(best * 1e6));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr double longest = 1e-3;
#else
  constexpr double longest = 50e-6;
#endif
  EXPECT_LT(best, longest);
}

}  // namespace
}  // namespace cermet

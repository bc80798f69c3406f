#include "select/tuning_text.hpp"

#include <gtest/gtest.h>

#include "kernel/forced.hpp"
#include "select/select.hpp"
#include "select/shipped_tables.hpp"
#include "select/tuning_import.hpp"
#include "tests/model/scratch.hpp"
#include "tests/select/tuning_entries.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

using test::made_entry;
using test::ScratchFolder;

TEST(TuningText, IsReadAsItWasWritten) {
  std::vector<TuningEntry> entries;
  for (int i = 0; i < 20; ++i) entries.push_back(made_entry(fmt::format("region \"{}\"\n", 19 - i), i));
  const std::string text = tuning_table_text(entries);
  std::vector<TuningEntry> read = parse_tuning_table(text, "table.json");
  EXPECT_EQ(tuning_table_text(read), text) << "the same entries in any order give the same bytes";
  std::ranges::reverse(read);
  EXPECT_EQ(tuning_table_text(read), text);
  ASSERT_EQ(read.size(), entries.size());
  for (const TuningEntry& entry : entries) EXPECT_NE(std::ranges::find(read, entry), read.end());
}

TEST(TuningText, RefusesWithFieldExpectedAndFound) {
  const std::string text = tuning_table_text(std::vector{made_entry("a", 1), made_entry("b", 2)});
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return error_text([&] { parse_tuning_table(changed, "table.json"); });
  };
  EXPECT_EQ(refusal("\"cermet_tuning\": 1", "\"cermet_tuning\": 2"),
            "table.json: cermet_tuning: expected an integer from 1 to 1, found 2");
  EXPECT_EQ(refusal("\"region\": \"b\"", "\"region\": \"a\""),
            "table.json: entries[1]: expected each region of a device once, found it again");
  EXPECT_EQ(refusal("\"region\": \"b\"", "\"region\": \"\""),
            "table.json: entries[1]: region: expected a text, found none");
  EXPECT_EQ(refusal("\"seconds\": 2e-06", "\"seconds\": -2e-06"),
            "table.json: entries[0]: seconds: expected a positive number, found -2e-06");
  EXPECT_EQ(refusal("\"kernel\": \"family.k1\"", "\"kernel\": 1"),
            "table.json: entries[0].kernel: expected a string, found 1");
  EXPECT_EQ(refusal("\"date\"", "\"day\"").find("table.json: entries[0]"), 0u);
  EXPECT_NE(refusal("}", "").find("table.json"), std::string::npos);
}

TEST(TuningImport, TakesThisMachinesDevicesAndVersionsAlone) {
  const ScratchFolder scratch;
  TuningDatabase database = TuningDatabase::open(scratch / "tuning.db");
  const DeviceIdentity here{"Some CPU, avx2, 8 threads", "cermet 0.1.0, GNU 12.2.0"},
      gpu{"Some GPU, 10 SMs, sm_90a", "cermet 0.1.0, driver 13.0, NVRTC 13.0"};
  const auto entry = [](const std::string& device, const std::string& versions) {
    TuningEntry made = made_entry("region", 1, device);
    made.key.versions = versions;
    return made;
  };
  const std::vector<TuningEntry> entries{
      entry(here.device, here.versions), entry("Some CPU, avx2, 1 thread", here.versions),
      entry("Some CPU, avx512, 8 threads", here.versions), entry(gpu.device, "cermet 0.1.0, driver 12.9, NVRTC 13.0"),
      entry(gpu.device, gpu.versions)};
  const TuningImport report = import_tuning(database, entries, std::vector{here, gpu});
  EXPECT_EQ(report.stored, 3);
  EXPECT_EQ(report.refused, 2);
  ASSERT_EQ(report.reasons.size(), 2u);
  EXPECT_EQ(report.reasons[0],
            "device: expected \"Some CPU, avx2, 8 threads\" or \"Some GPU, 10 SMs, sm_90a\", found \"Some CPU, avx512, "
            "8 threads\"");
  EXPECT_EQ(
      report.reasons[1],
      "versions: expected \"cermet 0.1.0, driver 13.0, NVRTC 13.0\", found \"cermet 0.1.0, driver 12.9, NVRTC 13.0\"");
  EXPECT_EQ(TuningDatabase::open(scratch / "tuning.db").all().size(), 3u);
}

TEST(ShippedTables, AreOfThisRelease) {
  ASSERT_FALSE(shipped_tables().empty());
  std::size_t entries = 0;
  for (const ShippedTable& table : shipped_tables())
    for (const TuningEntry& entry : parse_tuning_table(table.text, table.name)) {
      EXPECT_EQ(entry.key.versions, shipped_versions())
          << table.name << ": measure again for this release, or leave it out: " << entry.key.region;
      EXPECT_NO_THROW(require_known_kernels(ForcedConfigs(entry.kernel + ": default", table.name))) << entry.key.region;
      ++entries;
    }
  EXPECT_EQ(shipped_tuning().size(), entries);
}

}  // namespace
}  // namespace cermet

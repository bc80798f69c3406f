#include "select/tuning_table.hpp"

#include <gtest/gtest.h>

#include "tests/select/tuning_entries.hpp"

namespace cermet {
namespace {

using test::made_entry;

/// Every key has it, so that only the comparison tells them apart.
std::size_t one_hash(const TuningKey&) { return 7; }

TEST(TuningTable, ComparesWholeKeysWhereHashesCollide) {
  TuningTable table(one_hash);
  for (int i = 0; i < 100; ++i) table.put(made_entry(fmt::format("region {}", i), i));
  TuningEntry elsewhere = made_entry("region 3", 1000, "another device"), later = made_entry("region 3", 1001);
  later.key.versions = "cermet 0.2.0";
  table.put(elsewhere);
  table.put(later);
  ASSERT_EQ(table.size(), 102u);
  for (int i = 0; i < 100; ++i) {
    const TuningEntry* const found = table.find(made_entry(fmt::format("region {}", i), 0).key);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, made_entry(fmt::format("region {}", i), i));
  }
  EXPECT_EQ(*table.find(elsewhere.key), elsewhere);
  EXPECT_EQ(*table.find(later.key), later);
  EXPECT_EQ(table.find(made_entry("region 100", 0).key), nullptr);
}

TEST(TuningTable, AnEntryReplacesThatOfItsKey) {
  TuningTable table(one_hash);
  table.put(made_entry("a", 1));
  table.put(made_entry("b", 2));
  table.put(made_entry("a", 3));
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find(made_entry("a", 0).key)->seconds, made_entry("a", 3).seconds);
}

TEST(TuningTable, ListsAndClearsByDevice) {
  TuningTable table;
  table.put(made_entry("b", 1, "y"));
  table.put(made_entry("a", 2, "y"));
  table.put(made_entry("c", 3, "x"));
  const std::vector<TuningEntry> all = table.all();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].key.region + all[1].key.region + all[2].key.region, "cab");
  EXPECT_EQ(table.all("y").size(), 2u);
  EXPECT_TRUE(table.has_device("y"));
  EXPECT_EQ(table.clear("y"), 2u);
  EXPECT_FALSE(table.has_device("y"));
  EXPECT_TRUE(table.has_device("x"));
  EXPECT_EQ(table.clear(""), 1u);
  EXPECT_TRUE(table.empty());
}

TEST(TuningEntry, FaultsNameTheField) {
  const TuningEntry good = made_entry("region", 5);
  EXPECT_EQ(fault_of(good), "");
  const auto fault = [&](auto change) {
    TuningEntry entry = good;
    change(entry);
    return fault_of(entry);
  };
  EXPECT_EQ(fault([](TuningEntry& e) { e.key.region = ""; }), "region: expected a text, found none");
  EXPECT_EQ(fault([](TuningEntry& e) { e.kernel = std::string("a\0b", 3); }),
            "kernel: expected a text without a zero byte, found one");
  EXPECT_EQ(fault([](TuningEntry& e) { e.config = "tile"; }),
            "configuration: expected words like tile_m=128, found \"tile\"");
  EXPECT_EQ(fault([](TuningEntry& e) { e.config = "a=1,b=2"; }), "config: expected \"a=1 b=2\", found \"a=1,b=2\"");
  EXPECT_EQ(fault([](TuningEntry& e) { e.seconds = 0; }), "seconds: expected a positive number, found 0");
  EXPECT_EQ(fault([](TuningEntry& e) { e.spread = -1; }), "spread: expected a number of at least 0, found -1");
  EXPECT_EQ(fault([](TuningEntry& e) { e.rivals[0].seconds = -1; }),
            "rivals[0].seconds: expected a positive number, found -1");
  EXPECT_EQ(fault([](TuningEntry& e) { e.date = std::string(70000, 'x'); }),
            "date: expected at most 65536 characters, found 70000");
}

}  // namespace
}  // namespace cermet

#include "select/tuning_key.hpp"

#include <gtest/gtest.h>

#include "device/device.hpp"
#include "op/schema/region_text.hpp"
#include "select/tuned_sizes.hpp"
#include "tests/select/tuning_entries.hpp"

namespace cermet {
namespace {

using test::linear_region;

TEST(TuningKey, SaysAllThatAChoiceIsFor) {
  EXPECT_EQ(tuning_text(linear_region("T", 32, nullptr)),
            R"(linear(bf16[s0, 2048], bf16[4096, 2048], -) {out_dtype = ""}; constant $1; s0 <= 32)");
  EXPECT_EQ(tuning_text(linear_region("32", 0, nullptr)),
            R"(linear(bf16[32, 2048], bf16[4096, 2048], -) {out_dtype = ""}; constant $1)");
}

TEST(TuningKey, DiffersWithEverythingThatItNames) {
  const Region region = linear_region("T", 32, nullptr);
  const std::string text = tuning_text(region);
  EXPECT_NE(text, tuning_text(linear_region("T", 32, nullptr, "f32"))) << "element type";
  EXPECT_NE(text, tuning_text(linear_region("T", 32, nullptr, "bf16", 4097))) << "static dimension";
  EXPECT_NE(text, tuning_text(linear_region("32", 0, nullptr))) << "whether a dimension is static";
  EXPECT_NE(text, tuning_text(linear_region("2*T", 32, nullptr))) << "how a dimension depends on a symbol";
  EXPECT_NE(text, tuning_text(linear_region("T", 33, nullptr))) << "bucket";
  Region variable = region;
  variable.nodes[0].problem.constant_inputs = 0;
  EXPECT_NE(text, tuning_text(variable)) << "constants";
  Problem other = region.problem();
  other.attributes.set("out_dtype", std::string("f32"));
  EXPECT_NE(text, tuning_text(other)) << "attributes";
  const DeviceIdentity four = device_identity(nullptr, 4), five = device_identity(nullptr, 5);
  EXPECT_NE(tuning_key(region, four), tuning_key(region, five)) << "threads";
  EXPECT_NE(tuning_key(region, four), tuning_key(region, {four.device, shipped_versions()})) << "versions";
}

TEST(TuningKey, DoesNotDependOnNamesOfSymbols) {
  EXPECT_EQ(tuning_text(linear_region("T", 32, nullptr)), tuning_text(linear_region("batch_size", 32, nullptr)));
  EXPECT_EQ(tuning_text(linear_region("2*T+1", 32, nullptr)), tuning_text(linear_region("2*rows+1", 32, nullptr)));
  EXPECT_EQ(tuning_text(linear_region("ceil(T/2)", 32, nullptr)), tuning_text(linear_region("ceil(H/2)", 32, nullptr)));
  EXPECT_EQ(tuning_text(linear_region("s1", 32, nullptr)), tuning_text(linear_region("s0", 32, nullptr)));
}

TEST(TuningKey, SizesAreFoundInTexts) {
  const SizedTexts texts(linear_region("T", 32, nullptr));
  const auto size = [&](const Region& region) {
    const auto found = texts.sizes_in(tuning_text(region));
    return found ? (*found)[Symbol("T")] : -1;
  };
  EXPECT_EQ(size(linear_region("17", 0, nullptr)), 17);
  EXPECT_EQ(size(linear_region("2048", 0, nullptr)), 2048) << "as long as it is wide";
  EXPECT_EQ(size(linear_region("T", 32, nullptr)), -1) << "a range";
  EXPECT_EQ(size(linear_region("17", 0, nullptr, "f32")), -1);
  EXPECT_EQ(size(linear_region("17", 0, nullptr, "bf16", 4097)), -1);
  Region variable = linear_region("17", 0, nullptr);
  variable.nodes[0].problem.constant_inputs = 0;
  EXPECT_EQ(size(variable), -1) << "constants";
  const SizedTexts twice(parse_region("add(f32[T, 64], f32[T, 64])"));
  EXPECT_TRUE(twice.sizes_in(tuning_text(parse_region("add(f32[5, 64], f32[5, 64])"))).has_value());
  EXPECT_FALSE(twice.sizes_in(tuning_text(parse_region("add(f32[5, 64], f32[1, 64])"))).has_value());
  EXPECT_FALSE(twice.sizes_in("").has_value());
}

TEST(TuningKey, OfSeveralNodesHasWiringAndRounding) {
  const auto text = [](const char* rounding, const char* wiring) {
    return tuning_text(parse_region(fmt::format(
        "{{n0 = add($0: f32[T, 64], $1: f32[64]); n1 = mul({} n0, {})}} anchor n1 -> n1", rounding, wiring)));
  };
  EXPECT_EQ(text("strict", "$2: f32[T, 64]")
                .find("{n0 = add($0: f32[s0, 64], $1: f32[64]); n1 = mul(strict n0, $2: f32[s0, 64])} anchor n1 -> n1"),
            0u)
      << text("strict", "$2: f32[T, 64]");
  EXPECT_NE(text("strict", "$1: f32[64]"), text("fast", "$1: f32[64]"));
  EXPECT_NE(text("strict", "$1: f32[64]"), text("strict", "$2: f32[64]"));
}

TEST(TuningKey, BucketsArePowersOfTwo) {
  const std::pair<std::int64_t, std::int64_t> cases[] = {{0, 1},   {1, 1},   {2, 2},     {3, 4},     {31, 32},
                                                         {32, 32}, {33, 64}, {512, 512}, {513, 1024}};
  for (const auto& [maximum, bucket] : cases) EXPECT_EQ(size_bucket(maximum), bucket) << maximum;
  EXPECT_EQ(size_bucket((std::int64_t{1} << 62) + 1), std::int64_t{1} << 62);
}

TEST(DeviceIdentity, OfAGpuHasSizeAndVersions) {
  const std::unique_ptr<Device> device = make_null_device(90);
  const DeviceIdentity identity = device_identity(device->target(), 4);
  EXPECT_EQ(identity.device, "null:sm_90, 132 SMs, sm_90a");
  EXPECT_EQ(identity.versions.find(shipped_versions() + ", "), 0u) << identity.versions;
  EXPECT_NE(identity.versions.find("driver"), std::string::npos) << identity.versions;
  EXPECT_NE(identity.versions.find("NVRTC"), std::string::npos) << identity.versions;
  EXPECT_EQ(identity, device_identity(device->target(), 9)) << "the host's threads compute nothing there";
}

TEST(DeviceIdentity, OfACpuHasInstructionsCachesAndThreads) {
  const std::string text = device_text(nullptr, 3);
  for (const char* part : {"L1 ", "L2 ", "L3 ", " KiB", ", 3 threads"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_TRUE(is_same_device(text, device_text(nullptr, 1))) << "but for its threads";
  EXPECT_FALSE(is_same_device(text, "null:sm_90, 132 SMs, sm_90a"));
}

}  // namespace
}  // namespace cermet

// Measured limits on disk: what is written is read back, and a file that is broken or another device's is refused.
#include "runtime/limits_store.hpp"

#include <gtest/gtest.h>

#include "base/target.hpp"
#include "runtime/limits.hpp"
#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::expect_error;

DeviceLimits some_limits() {
  return {.source = "measured",
          .read_bytes_per_second = 4.5e12,
          .launch_seconds = 6e-7,
          .f32_operations_per_second = 6.5e13,
          .f16_operations_per_second = 8.5e14,
          .bf16_operations_per_second = 8.6e14,
          .f8_operations_per_second = 0,
          .i8_operations_per_second = 1.8e15};
}

std::string with(std::string text, std::string_view old, std::string_view replacement) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), replacement);
}

TEST(LimitsStore, KeepsEveryFigure) {
  const test::ScratchFolder folder;
  const auto device = make_null_device(90);
  const auto file = folder / "limits" / "device.json";
  EXPECT_EQ(read_limits(*device, file), nullptr) << "nothing was stored";
  store_limits(*device, file, some_limits());
  store_limits(*device, file, some_limits());  // in place of the first
  const auto read = read_limits(*device, file);
  ASSERT_NE(read, nullptr);
  const DeviceLimits wanted = some_limits();
  EXPECT_EQ(read->source, "measured");
  EXPECT_EQ(read->read_bytes_per_second, wanted.read_bytes_per_second);
  EXPECT_EQ(read->launch_seconds, wanted.launch_seconds);
  EXPECT_EQ(read->f32_operations_per_second, wanted.f32_operations_per_second);
  EXPECT_EQ(read->bf16_operations_per_second, wanted.bf16_operations_per_second);
  EXPECT_EQ(read->f8_operations_per_second, 0);
  EXPECT_EQ(read->i8_operations_per_second, wanted.i8_operations_per_second);
  device->set_measured(read);
  const DeviceLimits used = limits_of(device->target());
  EXPECT_EQ(used.source, "measured; the rest from the data sheet of H200");
  EXPECT_EQ(used.read_bytes_per_second, wanted.read_bytes_per_second);
  EXPECT_EQ(used.clock_hz, 1.755e9) << "which is not measured";
}

TEST(LimitsStore, RefusesWhatIsBrokenOrForeign) {
  const test::ScratchFolder folder;
  const auto device = make_null_device(90), other = make_null_device(80);
  const auto good = folder / "good.json";
  store_limits(*device, good, some_limits());
  const std::string text = content_of(good);
  const auto refused = [&](std::string_view old, std::string_view replacement,
                           std::initializer_list<std::string_view> fragments) {
    const auto file = folder.file("bad.json", with(text, old, replacement));
    expect_error(Status::invalid_file, fragments, [&] { read_limits(*device, file); });
  };
  refused("{", "", {"bad.json"});
  refused("\"cermet_limits\": 1", "\"cermet_limits\": 2", {"bad.json", "cermet_limits", "found 2"});
  refused("null:sm_90", "NVIDIA H100", {"bad.json", "device", "\"null:sm_90\"", "NVIDIA H100"});
  refused("132", "114", {"bad.json", "multiprocessors", "114"});
  refused("\"driver\": \"\"", "\"driver\": \"12.8\"", {"bad.json", "driver", "12.8"});
  refused("4500000000000.0", "-1",
          {"bad.json", "read_bytes_per_second", "expected a number from 1e+09 to 1e+15", "-1"});
  refused("4500000000000.0", "1e300", {"bad.json", "read_bytes_per_second"});
  refused("4500000000000.0", "\"fast\"", {"bad.json", "read_bytes_per_second", "fast"});
  refused("\"launch_seconds\"", "\"launch\"", {"bad.json", "launch_seconds"});
  refused("\"device\"", "\"note\": \"mine\", \"device\"", {"bad.json", "expected 11 fields, found 12"});
  expect_error(Status::invalid_file, {"good.json", "device", "null:sm_80"}, [&] { read_limits(*other, good); });
  const auto large = folder.file("large.json", std::string(1 << 17, ' ') + text);
  expect_error(Status::invalid_file, {"large.json"}, [&] { read_limits(*device, large); });
}

TEST(LimitsStore, WritesOnlyWhatADeviceCanHave) {
  const test::ScratchFolder folder;
  const auto device = make_null_device(90);
  DeviceLimits limits = some_limits();
  limits.read_bytes_per_second = 0;
  expect_error(Status::invalid_argument, {"null:sm_90", "read_bytes_per_second", "found 0"},
               [&] { store_limits(*device, folder / "a.json", limits); });
  EXPECT_EQ(folder.entries(), 0);
  expect_error(Status::unsupported, {"expected a GPU"}, [&] { limits_file(*make_cpu_device()); });
  EXPECT_EQ(stored_limits(*device), nullptr) << "a device that computes nothing is chosen for by the data sheet";
}

TEST(PeakRates, AreThoseOfACpuOrAGpu) {
  cuda::Limits gpu;
  gpu.load_bytes_per_second = 2, gpu.bulk_load_bytes_per_second = 3;
  gpu.f32_operations_per_second = 5, gpu.bf16_operations_per_second = 7;
  const PeakRates found = peak_rates(MeasuredLimits(gpu));
  EXPECT_EQ(found.read_bytes_per_second, 3);
  EXPECT_EQ(found.bf16_products(), 7);
  EXPECT_EQ(found.int8_products(), 0) << "no unit";
  PeakRates best =
      peak_rates(MeasuredLimits(cpu::Limits{.read_bytes_per_second = 4, .f32_flops = 6, .amx_int8_ops = 9}));
  EXPECT_EQ(best.bf16_products(), 6) << "widened";
  best.keep_best(found);
  EXPECT_EQ(best.read_bytes_per_second, 4);
  EXPECT_EQ(best.f32, 6);
  EXPECT_EQ(best.bf16, 7);
  EXPECT_EQ(best.int8_products(), 9);
}

}  // namespace
}  // namespace cermet

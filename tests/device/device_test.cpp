#include "device/device.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

bool aligned(const DeviceBuffer& buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0; }

TEST(Device, CpuMemoryIsAlignedAndShared) {
  const auto device = make_device("cpu");
  EXPECT_EQ(device->kind(), DeviceKind::cpu);
  EXPECT_TRUE(device->computes());
  EXPECT_EQ(device->name().substr(0, 5), "cpu (");
  DeviceBuffer copy;
  {
    const DeviceBuffer buffer = device->allocate(1000);
    EXPECT_TRUE(aligned(buffer));
    std::memset(buffer.data(), 7, 1000);
    copy = buffer;
  }
  EXPECT_EQ(copy.size(), 1000);
  EXPECT_EQ(static_cast<int>(copy.data()[999]), 7) << "memory lives as long as its last owner";
  EXPECT_EQ(device->allocate(0).size(), 0);
  EXPECT_EQ(error_text([&] { device->allocate(std::int64_t{1} << 60); }),
            "memory: expected room for 1152921504606846976 bytes, found none");
}

TEST(Device, NullMemoryHasAddressesOnly) {
  const auto device = make_device("null");
  EXPECT_EQ(device->kind(), DeviceKind::null);
  EXPECT_FALSE(device->computes());
  EXPECT_EQ(device->name(), "null");
  const DeviceBuffer a = device->allocate(std::int64_t{1} << 40), b = device->allocate(100), c = device->allocate(0),
                     d = device->allocate(1);
  for (const DeviceBuffer* buffer : {&a, &b, &c, &d}) {
    EXPECT_TRUE(aligned(*buffer));
    EXPECT_NE(buffer->data(), nullptr);
  }
  EXPECT_EQ(a.size(), std::int64_t{1} << 40) << "more than any machine has";
  EXPECT_GE(reinterpret_cast<std::uintptr_t>(b.data()),
            reinterpret_cast<std::uintptr_t>(a.data()) + (std::uintptr_t{1} << 40));
  EXPECT_NE(c.data(), d.data());
}

TEST(Device, HoldsWhatItsBuffersHave) {
  auto device = make_device("null");
  DeviceBuffer kept = device->allocate(100);
  {
    const DeviceBuffer b = device->allocate(28), same = b;
    EXPECT_EQ(device->held_bytes(), 128);
  }
  EXPECT_EQ(device->held_bytes(), 100);
  const DeviceBuffer pinned = device->allocate_host(64);
  EXPECT_EQ(device->held_bytes(), 100) << "the host's memory is not the device's";
  device.reset();
  kept = {};  // may outlive its device
}

TEST(Device, UnknownNamesAreRefused) {
  const std::string expected = "expected cpu, cuda, cuda:INDEX, null or null:sm_CC";
  for (const char* name :
       {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "null:sm_", "null:sm_70", "null:sm_99999999999"})
    EXPECT_EQ(error_text([&] { make_device(name); }), fmt::format("device '{}': {}", name, expected));
}

}  // namespace
}  // namespace cermet

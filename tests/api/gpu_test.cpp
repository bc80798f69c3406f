// Operators on tensors in a GPU's memory through the C ABI. Skipped, with the reason, where there is no GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cermet/cermet.h"

namespace {

/// The few driver functions that a caller without Cermet's sources would use.
struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  template <class F>
  F find(const char* name) const {
    return reinterpret_cast<F>(dlsym(library, name));
  }
  int retain(void** context) const { return find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(context, 0); }
  int push(void* context) const { return find<int (*)(void*)>("cuCtxPushCurrent_v2")(context); }
  int allocate(std::uint64_t* pointer, std::size_t bytes) const { return find<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(pointer, bytes); }
  int release(std::uint64_t pointer) const { return find<int (*)(std::uint64_t)>("cuMemFree_v2")(pointer); }
  int upload(std::uint64_t to, const void* from, std::size_t bytes) const {
    return find<int (*)(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2")(to, from, bytes);
  }
  int download(void* to, std::uint64_t from, std::size_t bytes) const {
    return find<int (*)(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2")(to, from, bytes);
  }
  int make_stream(void** stream) const { return find<int (*)(void**, unsigned)>("cuStreamCreate")(stream, 1); }
  int finish(void* stream) const { return find<int (*)(void*)>("cuStreamSynchronize")(stream); }
};

class GpuAbi : public testing::Test {
 protected:
  void SetUp() override {
    if (cermet_create("cuda", 1, &handle) != CERMET_OK) GTEST_SKIP() << cermet_last_error_message();
    void* context = nullptr;
    ASSERT_EQ(driver.retain(&context), 0);
    ASSERT_EQ(driver.push(context), 0);
  }
  void TearDown() override { cermet_destroy(handle); }

  cermet_handle* handle = nullptr;
  Driver driver;
};

TEST_F(GpuAbi, RunsOnTheHandlesStreamAndOnTheCallers) {
  constexpr std::int64_t n = 1000;
  const std::int64_t shape[] = {n};
  const cermet_descriptor operand{"f32", 1, shape, nullptr, 0};
  const cermet_descriptor inputs[] = {operand, operand};
  cermet_op* op = nullptr;
  ASSERT_EQ(cermet_op_create(handle, "add", inputs, 2, nullptr, 0, &op), CERMET_OK) << cermet_last_error_message();
  std::uint64_t memory[3];
  DLTensor tensors[3];
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(driver.allocate(&memory[i], n * sizeof(float)), 0);
    tensors[i] = {reinterpret_cast<void*>(memory[i]), {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, const_cast<std::int64_t*>(shape), nullptr, 0};
  }
  const DLTensor* in[] = {&tensors[0], &tensors[1]};
  DLTensor* out[] = {&tensors[2]};
  void* stream = nullptr;
  ASSERT_EQ(driver.make_stream(&stream), 0);
  for (void* on : {static_cast<void*>(nullptr), stream}) {
    std::vector<float> a(n, on ? 3.0f : 1.0f), b(n, 0.5f), y(n);
    ASSERT_EQ(driver.upload(memory[0], a.data(), n * sizeof(float)), 0);
    ASSERT_EQ(driver.upload(memory[1], b.data(), n * sizeof(float)), 0);
    ASSERT_EQ(cermet_op_run(op, in, 2, out, 1, nullptr, 0, on), CERMET_OK) << cermet_last_error_message();
    ASSERT_TRUE(!on || driver.finish(on) == 0);
    ASSERT_EQ(driver.download(y.data(), memory[2], n * sizeof(float)), 0);
    EXPECT_EQ(y, std::vector<float>(n, on ? 3.5f : 1.5f));
  }
  tensors[0].device.device_type = kDLCPU;
  EXPECT_EQ(cermet_op_run(op, in, 2, out, 1, nullptr, 0, nullptr), CERMET_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(cermet_last_error_message()), "add: input 0 (a): expected a tensor in memory of a CUDA device (kDLCUDA), found device type 1");
  for (const std::uint64_t m : memory) driver.release(m);
  cermet_op_destroy(op);
}

}  // namespace

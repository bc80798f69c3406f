// Operators on tensors in a GPU's memory, and models, through the C and C++ interfaces. Skipped, with the reason, where
// there is no GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cermet/cermet.hpp"

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
  int allocate(std::uint64_t* pointer, std::size_t bytes) const {
    return find<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(pointer, bytes);
  }
  int release(std::uint64_t pointer) const { return find<int (*)(std::uint64_t)>("cuMemFree_v2")(pointer); }
  /// Done when it returns: streams that do not wait for the default one may read it.
  int upload(std::uint64_t to, const void* from, std::size_t bytes) const {
    const int code = find<int (*)(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2")(to, from, bytes);
    return code != 0 ? code : finish(nullptr);
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
  void TearDown() override {
    for (const std::uint64_t m : owned) driver.release(m);
    cermet_destroy(handle);
  }
  /// A tensor in the GPU's memory that holds these elements.
  template <class T>
  cermet::tensor on_gpu(const std::vector<T>& elements, std::vector<std::int64_t> shape, cermet::dtype type) {
    std::uint64_t memory = 0;
    const std::size_t bytes = elements.size() * sizeof(T);
    EXPECT_EQ(driver.allocate(&memory, bytes), 0);
    owned.push_back(memory);
    EXPECT_EQ(driver.upload(memory, elements.data(), bytes), 0);
    return cermet::tensor::view(reinterpret_cast<void*>(memory), std::move(shape), type, {}, {kDLCUDA, 0});
  }
  template <class T>
  std::vector<T> elements_of(const cermet::tensor& t) {
    std::vector<T> elements(static_cast<std::size_t>(t.size()));
    EXPECT_EQ(driver.download(elements.data(), reinterpret_cast<std::uint64_t>(t.data()), elements.size() * sizeof(T)),
              0);
    return elements;
  }

  cermet_handle* handle = nullptr;
  Driver driver;
  std::vector<std::uint64_t> owned;
};

/// bf16 bits of the small integers (i * step + i / 7) % 5 - 2: their products are exact in every order of summation.
std::vector<std::uint16_t> small_integers(std::int64_t count, std::int64_t step) {
  constexpr std::uint16_t bits[] = {0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000};  // -2 to 2
  std::vector<std::uint16_t> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(bits[(i * step + i / 7) % 5]);
  return list;
}

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
    tensors[i] = {reinterpret_cast<void*>(memory[i]), {kDLCUDA, 0}, 1, {kDLFloat, 32, 1},
                  const_cast<std::int64_t*>(shape),   nullptr,      0};
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
  EXPECT_EQ(std::string(cermet_last_error_message()),
            "add: input 0 (a): expected memory of cuda:0 (kDLCUDA), found memory of the host (kDLCPU)");
  for (const std::uint64_t m : memory) driver.release(m);
  cermet_op_destroy(op);
}

TEST_F(GpuAbi, CallsByNameOnTheCallersStreamAsTheCpuDoes) {
  constexpr std::int64_t n = 64, k = 256;
  const cermet::handle gpu("cuda", 1), cpu("cpu", 2);
  const std::vector<std::uint16_t> w = small_integers(n * k, 2);
  const auto host = [](const std::vector<std::uint16_t>& memory, std::int64_t rows, std::int64_t columns) {
    return cermet::tensor::view(const_cast<std::uint16_t*>(memory.data()), {rows, columns}, cermet::dtype::bf16);
  };
  const cermet::tensor device_w = on_gpu(w, {n, k}, cermet::dtype::bf16);
  const cermet::descriptor sample(cermet::dtype::bf16, {1, k});
  auto expected = cpu.get_op("linear", sample, cermet::weight(host(w, n, k)));
  auto constant = gpu.get_op("linear", sample, cermet::weight(device_w)),
       given = gpu.get_op("linear", sample, device_w);
  void* native = nullptr;
  ASSERT_EQ(driver.make_stream(&native), 0);
  for (const std::int64_t m : {1, 2, 7, 8, 33, 200, 7, 1}) {
    const std::vector<std::uint16_t> x = small_integers(m * k, 3);
    const cermet::tensor rows = on_gpu(x, {m, k}, cermet::dtype::bf16),
                         first = on_gpu(std::vector<std::uint16_t>(m * n), {m, n}, cermet::dtype::bf16),
                         second = on_gpu(std::vector<std::uint16_t>(m * n), {m, n}, cermet::dtype::bf16);
    const cermet::tensor on_cpu = expected(host(x, m, k));
    constant(rows, cermet::out(first), cermet::stream(native));
    given(rows, device_w, cermet::out(second));
    ASSERT_EQ(driver.finish(native), 0);
    const std::vector<std::uint16_t> found(on_cpu.data<std::uint16_t>(), on_cpu.data<std::uint16_t>() + m * n);
    EXPECT_EQ(elements_of<std::uint16_t>(first), found) << m << " rows by " << constant.kernel();
    EXPECT_EQ(elements_of<std::uint16_t>(second), found) << m << " rows by " << given.kernel();
  }
  EXPECT_LE(cermet_callable_bound_count(given.get()), 6u) << "nothing is bound for rows that came before";
}

TEST_F(GpuAbi, OneOperatorTakesEveryRowCountAsTheCpuDoes) {
  constexpr std::int64_t n = 256, k = 512, most = 600;
  const cermet::handle gpu("cuda", 1), cpu("cpu", 2);
  const std::vector<std::uint16_t> x = small_integers(most * k, 3), w = small_integers(n * k, 2);
  const auto host = [](const std::vector<std::uint16_t>& memory, std::int64_t rows, std::int64_t columns) {
    return cermet::tensor::view(const_cast<std::uint16_t*>(memory.data()), {rows, columns}, cermet::dtype::bf16);
  };
  const cermet::descriptor rows(cermet::dtype::bf16, {cermet::up_to('M', most), k});
  const cermet::shared_weight on_cpu(host(w, n, k), cpu);
  const cermet::tensor device_w = on_gpu(w, {n, k}, cermet::dtype::bf16);
  const cermet::shared_weight from_gpu(device_w, gpu), from_host(host(w, n, k), gpu);
  cermet::operation expected(cpu, "linear", {rows, weight(on_cpu)});
  cermet::operation first(gpu, "linear", {rows, weight(from_gpu)}), second(gpu, "linear", {rows, weight(from_host)});
  cermet::operation fixed(gpu, "linear", {{cermet::dtype::bf16, {8, k}}, weight(from_gpu)});
  EXPECT_EQ(from_gpu.bytes(), static_cast<std::size_t>(n * k * 2)) << "one copy for two operators and every row count";
  void* native = nullptr;
  ASSERT_EQ(driver.make_stream(&native), 0);
  for (const std::int64_t m : {1, 2, 8, 32, 33, 100, 129, 600, 1}) {
    const std::vector<std::uint16_t> part(x.begin(), x.begin() + m * k);
    const cermet::tensor device_x = on_gpu(part, {m, k}, cermet::dtype::bf16);
    const cermet::tensor y = expected({host(part, m, k)});
    const std::vector<std::uint16_t> bits(y.data<std::uint16_t>(), y.data<std::uint16_t>() + y.size());
    for (cermet::operation* op : {&first, &second, &fixed}) {
      if (op == &fixed && m != 8) continue;
      const cermet::tensor result =
          on_gpu(std::vector<std::uint16_t>(bits.size(), 0x7fc0), {m, n}, cermet::dtype::bf16);
      op->run({device_x}, {result}, cermet::stream(native));
      ASSERT_EQ(driver.finish(native), 0);
      EXPECT_EQ(elements_of<std::uint16_t>(result), bits) << m << " rows by " << op->kernel();
      op->run({device_x}, {result});
      EXPECT_EQ(elements_of<std::uint16_t>(result), bits) << m << " rows on the handle's stream";
    }
  }
  EXPECT_THROW(first({on_gpu(small_integers(k, 1), {1, k}, cermet::dtype::bf16)}), cermet::error)
      << "results have no memory";
  EXPECT_THROW(first.run({host(x, 1, k)}, {on_gpu(small_integers(n, 1), {1, n}, cermet::dtype::bf16)}), cermet::error);
}

TEST_F(GpuAbi, StridedWeightsAreTakenFromTheGpu) {
  const cermet::tensor wide = on_gpu(std::vector<float>{1, 0, 9, 0, 1, 9, 1, 1, 9}, {3, 3}, cermet::dtype::f32);
  const cermet::tensor w = cermet::tensor::view(wide.data(), {3, 2}, cermet::dtype::f32, {3, 1}, {kDLCUDA, 0});
  const cermet::tensor x = on_gpu(std::vector<float>{1, 10}, {1, 2}, cermet::dtype::f32),
                       y = on_gpu(std::vector<float>(3, -1), {1, 3}, cermet::dtype::f32);
  const cermet::handle gpu("cuda", 1);
  cermet::operation linear(gpu, "linear", {x, cermet::weight(w)});
  linear.run({x}, {y});
  EXPECT_EQ(elements_of<float>(y), (std::vector<float>{1, 10, 11}));
}

TEST_F(GpuAbi, ModelsRunOnTheGpuAndAgreeWithTheCpu) {
  const cermet::handle gpu("cuda", 1), cpu("cpu", 2);
  for (const std::string folder : {"/models/demo", "/tests/model/data/reference/llama-gqa-f32"}) {
    SCOPED_TRACE(folder);
    cermet_model_options options = cermet_model_defaults();
    options.dtype = "f32";
    options.max_context = 512;
    cermet::model there(CERMET_SOURCE_DIR + folder, options, gpu), here(CERMET_SOURCE_DIR + folder, options, cpu);
    const auto info = nlohmann::json::parse(there.info());
    EXPECT_EQ(info["device"], gpu.device());
    EXPECT_EQ(info["computes"], true);
    const std::vector<std::int32_t> prompt{5, 17, 200, 31, 8};
    const std::vector<float> logits = there.logits(prompt), expected = here.logits(prompt);
    const std::size_t vocab = there.vocab_size();
    ASSERT_EQ(logits.size(), expected.size());
    for (std::size_t row = 0; row < prompt.size(); ++row) {
      float largest = 0;
      for (std::size_t i = 0; i < vocab; ++i) largest = std::max(largest, std::abs(expected[row * vocab + i]));
      ASSERT_GT(largest, 0);
      for (std::size_t i = 0; i < vocab; ++i)
        ASSERT_NEAR(logits[row * vocab + i], expected[row * vocab + i], 2e-4f * largest) << row << ", " << i;
    }
    cermet_generate_options generate = cermet_generate_defaults();
    generate.max_new_tokens = 32;
    generate.ignore_eos = 1;
    const std::vector<std::int32_t> tokens = there.generate(prompt, generate);
    EXPECT_EQ(tokens.size(), 32u);
    EXPECT_EQ(tokens, here.generate(prompt, generate));
  }
}

TEST_F(GpuAbi, ModelsTakeCodesForWeightsAndCache) {
  const cermet::handle gpu("cuda", 1), cpu("cpu", 2);
  cermet_model_options options = cermet_model_defaults();
  options.dtype = "f32";
  options.weights = "i8";
  options.kv_cache = "i8";
  options.max_context = 512;
  const std::string folder = CERMET_SOURCE_DIR
      "/tests/model/data/reference/llama-gqa-f32";  // dense: no router's choice depends on a quantized value
  cermet::model there(folder, options, gpu), here(folder, options, cpu);
  const std::vector<std::int32_t> prompt{5, 17, 200, 31, 8};
  const std::vector<float> logits = there.logits(prompt), expected = here.logits(prompt);
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  // A quantized value that differs by one step moves a logit; both have the same scales.
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 0.05f * largest) << i;
}

}  // namespace

// The C++ interface. It includes internal headers too: both share one namespace and must compile in one file.
#include <gtest/gtest.h>

#include "cermet/cermet.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"

namespace {

using cermet::tensor;

TEST(Face, ShortFormRuns) {
  const tensor x({2, 4}, {1, 1, 1, 1, 2, 2, 2, 2}), w({4}, {1, 2, 3, 4});
  auto f = cermet::get_op("rms_norm", {x, w}, {{"eps", 0.0}});
  EXPECT_EQ(f({x, w}).values(), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(f.kernel(), "rowwise.rms_norm");
}

TEST(Face, OptionalOperandsMayBeLeftOut) {
  const tensor x({1, 4}, {2, 2, 2, 2});
  EXPECT_EQ(cermet::get_op("rms_norm", {x, tensor()}, {{"eps", 0}})({x, tensor()}).values(), std::vector<float>(4, 1));
  EXPECT_EQ(cermet::get_op("rms_norm", {x})({x}).values().size(), 4u);
}

TEST(Face, WeightsAreGivenOnce) {
  const tensor x({1, 2}, {1, 10}), w({3, 2}, {1, 0, 0, 1, 1, 1}), other({3, 2}, {2, 0, 0, 2, 2, 2});
  auto f = cermet::get_op("linear", {x, cermet::weight(w)});
  EXPECT_EQ(f({x}).values(), (std::vector<float>{1, 10, 11}));
  f.set_weight(1, other);
  EXPECT_EQ(f({x}).values(), (std::vector<float>{2, 20, 22}));
}

TEST(Face, EveryKindOfAttributeTravels) {
  const tensor x({2, 6}, std::vector<float>(12, 1));
  EXPECT_EQ(cermet::get_op("reshape", {x}, {{"shape", {3, 4}}})({x}).shape(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(cermet::get_op("rms_norm", {x}, {{"eps", 1e-5}, {"out_dtype", "bf16"}})({x}).type(), cermet::dtype::bf16);
  EXPECT_EQ(cermet::get_op("add_rms_norm", {x, x}, {{"round_sum", true}}).all({x, x}).size(), 2u);
  const std::vector<std::int64_t> shape{12};
  EXPECT_EQ(cermet::get_op("reshape", {x}, {{"shape", shape}})({x}).shape(), shape);
}

TEST(Face, MistakesAreExceptions) {
  const tensor x({2, 4}), w({5});
  try {
    cermet::get_op("rms_norm", {x, w});
    FAIL() << "expected an exception";
  } catch (const cermet::error& error) {
    EXPECT_EQ(error.status(), CERMET_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("operand 1 (weight)"), std::string::npos) << error.what();
  }
  EXPECT_THROW(cermet::get_op("rms_norm", {x})({x, x}), cermet::error);
  EXPECT_THROW(cermet::get_op("rms_norm", {x})({w}), cermet::error);
  EXPECT_THROW(tensor({2, 2}, {1, 2, 3}), cermet::error);
  EXPECT_THROW(tensor({-1}), cermet::error);
  EXPECT_THROW(tensor({INT64_MAX, 8}), cermet::error);
  EXPECT_THROW(x.data<double>(), cermet::error);
  EXPECT_THROW(cermet::handle("abacus"), cermet::error);
}

TEST(Face, CopiesShareMemory) {
  tensor a({2}, {1, 2});
  const tensor b = a;
  a.data<float>()[0] = 7;
  EXPECT_EQ(b.values(), (std::vector<float>{7, 2}));
}

TEST(Face, ViewsSeeMemoryOfTheCaller) {
  std::vector<float> memory{1, 2, 9, 3, 4, 9};
  const tensor view = tensor::view(memory.data(), {2, 2}, cermet::dtype::f32, {3, 1});
  EXPECT_EQ(view.values(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_THROW(tensor::view(memory.data(), {2, 2}, cermet::dtype::f32, {3}), cermet::error);
}

TEST(Face, TensorsTravelAsDlpack) {
  int deleted = 0;
  std::vector<std::int64_t> shape{3};
  std::vector<float> memory{1, 2, 3};
  DLManagedTensor managed{{memory.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape.data(), nullptr, 0},
                          &deleted,
                          [](DLManagedTensor* m) { ++*static_cast<int*>(m->manager_ctx); }};
  DLManagedTensor* handed = nullptr;
  {
    const tensor taken = tensor::from_dlpack(&managed);
    EXPECT_EQ(taken.values(), memory);
    handed = taken.to_dlpack();
  }
  EXPECT_EQ(deleted, 0) << "the receiver still holds the memory";
  EXPECT_EQ(handed->dl_tensor.data, memory.data());
  handed->deleter(handed);
  EXPECT_EQ(deleted, 1);
  DLTensor odd = managed.dl_tensor;
  odd.dtype = {kDLComplex, 64, 1};
  EXPECT_THROW(tensor::view(odd), cermet::error);
}

TEST(Face, TensorsKeepTheirDevice) {
  std::vector<std::int64_t> shape{2, 3}, strides{8, 1};
  DLTensor source{
      reinterpret_cast<void*>(0x1000), {kDLCUDA, 1}, 2, {kDLFloat, 16, 1}, shape.data(), strides.data(), 64};
  const tensor view = tensor::view(source);
  EXPECT_EQ(view.device().device_type, kDLCUDA);
  EXPECT_EQ(view.device().device_id, 1);
  EXPECT_FALSE(view.on_host());
  EXPECT_EQ(view.data(), reinterpret_cast<void*>(0x1040));
  EXPECT_EQ(view.strides(), strides);
  EXPECT_EQ(view.type(), cermet::dtype::f16);
  EXPECT_THROW(view.values(), cermet::error);
  EXPECT_THROW(view.to(cermet::dtype::f32), cermet::error);
  DLManagedTensor* handed = view.to_dlpack();
  EXPECT_EQ(handed->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(handed->dl_tensor.device.device_id, 1);
  EXPECT_EQ(handed->dl_tensor.strides[0], 8);
  const tensor back = tensor::from_dlpack(handed);
  EXPECT_EQ(back.device().device_id, 1);
  source.dtype = {kDLUInt, 8, 1};
  EXPECT_EQ(tensor::view(source, cermet::dtype::f8_e4m3).type(), cermet::dtype::f8_e4m3);
  const tensor mine = tensor::view(source.data, shape, cermet::dtype::f32, strides, {kDLCUDA, 0});
  EXPECT_EQ(mine.dl().device.device_type, kDLCUDA);
  EXPECT_TRUE(tensor({2}).on_host());
}

/// The message of the cermet::error that a call throws.
template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const cermet::error& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Face, OperandsOfAnotherDeviceAreNamed) {
  const tensor x({2, 4}),
      far = tensor::view(reinterpret_cast<void*>(0x1000), {2, 4}, cermet::dtype::f32, {}, {kDLCUDA, 0});
  auto f = cermet::get_op("add", {x, x});
  EXPECT_EQ(message_of([&] {
              f.run({x, far}, {x});
            }),
            "add: input 1 (b): expected memory of the host (kDLCPU), found memory of cuda:0 (kDLCUDA)");
  EXPECT_EQ(message_of([&] {
              f({x, far});
            }),
            "results: expected memory of the caller, given to run(), for operands on cuda:0, found a call that makes "
            "its own");
  EXPECT_EQ(message_of([&] {
              f.run({x, x}, {tensor({2, 4})}, cermet::stream(&f));
            }),
            "add: stream: expected none on cpu, found one");
}

#ifdef CERMET_HAS_CUDA_PLUGIN
TEST(Face, AGpuTakesItsTensorsAndAStream) {
  const cermet::handle gpu("null:sm_90", 1);
  EXPECT_FALSE(gpu.computes());
  const auto device_tensor = [](std::uintptr_t address) {
    return tensor::view(reinterpret_cast<void*>(address), {2, 4}, cermet::dtype::f32, {8, 1}, {kDLCUDA, 0});
  };
  const tensor a = device_tensor(0x10000), b = device_tensor(0x20000), y = device_tensor(0x30000), host({2, 4});
  cermet::operation add(gpu, "add", {a, b});
  add.run({a, b}, {y});
  add.run({a, b}, {y}, cermet::stream(&add));
  EXPECT_EQ(message_of([&] {
              add.run({a, host}, {y});
            }),
            "add: input 1 (b): expected memory of cuda:0 (kDLCUDA), found memory of the host (kDLCPU)");
  EXPECT_EQ(message_of([&] {
              add.run({a, b}, {host});
            }),
            "add: output 0 (y): expected memory of cuda:0 (kDLCUDA), found memory of the host (kDLCPU)");
}
#endif

TEST(Face, OneOperationTakesEveryRowCount) {
  const tensor w({2, 2}, {1, 2, 3, 4});
  const cermet::dim rows = cermet::up_to('M', 8);
  const std::vector<std::int64_t> axes{0};
  auto f = cermet::get_op("linear", {{cermet::dtype::f32, {rows, 2}}, cermet::weight(w)});
  EXPECT_EQ(f({tensor({1, 2}, {1, 0})}).values(), (std::vector<float>{1, 3}));
  const tensor y = f({tensor({3, 2}, {1, 0, 0, 1, 1, 1})});
  EXPECT_EQ(y.shape(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(y.values(), (std::vector<float>{1, 3, 2, 4, 3, 7}));
  EXPECT_EQ(f({tensor({0, 2})}).shape(), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(f.output_shape(0, {tensor({5, 2})}), (std::vector<std::int64_t>{5, 2}));
  EXPECT_EQ(message_of([&] {
              f({tensor({9, 2})});
            }),
            "linear: input 0 (x): expected M of f32[M, 2] from 0 to 8, found 9");
  EXPECT_EQ(message_of([&] {
              cermet::get_op("add", {{cermet::dtype::f32, {rows}}, {cermet::dtype::f32, {cermet::up_to('M', 9)}}});
            }),
            "range M: expected one maximum, found 8 and 9");
  EXPECT_EQ(
      cermet::get_op("reduce_sum", {{cermet::dtype::f32, {rows}}}, {{"axes", axes}})({tensor({3}, {1, 2, 3})}).values(),
      std::vector<float>{6});
}

TEST(Face, OperationsShareAWeight) {
  cermet::shared_weight w(tensor({3, 2}, {1, 0, 0, 1, 1, 1}));
  const tensor one({1, 2}, {1, 10}), two({2, 2}, {1, 10, 2, 20});
  auto f = cermet::get_op("linear", {one, cermet::weight(w)});
  const std::size_t bytes = w.bytes();
  EXPECT_GT(bytes, 0u);
  w.detach();
  auto g = cermet::get_op("linear", {two, cermet::weight(w)});
  EXPECT_EQ(w.bytes(), bytes);
  EXPECT_EQ(f({one}).values(), (std::vector<float>{1, 10, 11}));
  EXPECT_EQ(g({two}).values(), (std::vector<float>{1, 10, 11, 2, 20, 22}));
  auto late = cermet::get_op("linear", {one, cermet::weight(tensor({3, 2}, {2, 0, 0, 2, 2, 2}))});
  late.set_weight(1, w);
  EXPECT_EQ(late({one}).values(), (std::vector<float>{1, 10, 11}));
}

TEST(Face, EmptyTensorsAreLegal) {
  const tensor x({0, 4});
  EXPECT_TRUE(static_cast<bool>(x));
  EXPECT_TRUE(cermet::get_op("rms_norm", {x})({x}).values().empty());
}

TEST(Face, ModelsGenerate) {
  cermet::model model(CERMET_SOURCE_DIR "/models/demo");
  cermet_generate_options options = cermet_generate_defaults();
  options.max_new_tokens = 4;
  EXPECT_EQ(model.complete("The PostgreSQL server", options), " is a server with");
  model.reset();
  const std::vector<std::int32_t> prompt = model.tokenize("The PostgreSQL server");
  EXPECT_EQ(prompt, (std::vector<std::int32_t>{497, 2314, 1581}));
  EXPECT_EQ(model.detokenize(prompt), "The PostgreSQL server");
  cermet_generation result{};
  EXPECT_EQ(model.generate(
                prompt, options, [](std::int32_t id, std::string_view) { return id != 262; }, &result),
            (std::vector<std::int32_t>{302, 262}));
  EXPECT_EQ(result.end, CERMET_END_CANCELLED);
  EXPECT_EQ(model.logits(prompt).size(), 3 * model.vocab_size());
  EXPECT_THROW(
      model.generate(prompt, options, [](std::int32_t, std::string_view) -> bool { throw std::runtime_error("mine"); }),
      std::runtime_error);
  EXPECT_THROW(model.generate({-1}, options), cermet::error);
  EXPECT_THROW(cermet::model("/no/such/model"), cermet::error);
}

}  // namespace

// The C++ interface. It includes headers of the library's inside too: both live in one namespace and must get along in one file.
#include <gtest/gtest.h>

#include <memory>

#include "cermet/cermet.hpp"
#include "op/operator.hpp"
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
  DLManagedTensor managed{
      {memory.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape.data(), nullptr, 0}, &deleted, [](DLManagedTensor* m) { ++*static_cast<int*>(m->manager_ctx); }};
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
  EXPECT_THROW(model.generate(prompt, options, [](std::int32_t, std::string_view) -> bool { throw std::runtime_error("mine"); }), std::runtime_error);
  EXPECT_THROW(model.generate({-1}, options), cermet::error);
  EXPECT_THROW(cermet::model("/no/such/model"), cermet::error);
}

}  // namespace

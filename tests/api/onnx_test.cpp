// ONNX models through the C and the C++ interface.
#include "cermet/onnx.h"

#include <gtest/gtest.h>

#include "cermet/onnx.hpp"
#include "tests/api/refusal.hpp"

namespace cermet::test {
namespace {

const std::string file = CERMET_SOURCE_DIR "/models/demo_onnx/classifier.onnx";

tensor ones(std::int64_t batch) { return {{batch, 4}, std::vector<float>(static_cast<std::size_t>(batch) * 4, 1.0f)}; }

void expect_probabilities(const tensor& y, std::int64_t batch) {
  EXPECT_EQ(y.shape(), (std::vector<std::int64_t>{batch, 3}));
  const std::vector<float> values = y.values();
  const float expected[]{0.4658f, 0.1714f, 0.3628f};
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i % 3], 1e-4);
}

TEST(Onnx, SaysWhatItTakesAndGives) {
  const onnx_model model(file);
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].type, dtype::f32);
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<std::int64_t>{-1, 4}));
  EXPECT_EQ(model.inputs()[0].dim_names, (std::vector<std::string>{"batch", ""}));
  ASSERT_EQ(model.outputs().size(), 1u);
  EXPECT_EQ(model.outputs()[0].name, "probabilities");
}

TEST(Onnx, CompilesOnceForARange) {
  onnx_model ranged = compile(file, {{"batch", 1, 8}}), open = compile(file);
  for (const std::int64_t batch : {2, 1, 8}) {
    expect_probabilities(ranged.run({{"x", ones(batch)}}).at("probabilities"), batch);
    expect_probabilities(open.run({{"x", ones(batch)}}).at("probabilities"), batch);
  }
  EXPECT_EQ(ranged.compiled(), 1);
  EXPECT_EQ(open.compiled(), 3);
  expect_probabilities(ranged.run_on_device({{"x", ones(3)}}).at("probabilities"), 3);
}

TEST(Onnx, ResultsOutliveTheModelAndItsHandle) {
  tensor y;
  {
    std::unique_ptr<onnx_model> model;
    {
      const handle cpu("cpu", 1);
      model = std::make_unique<onnx_model>(file, std::vector<range>{{"batch", 2}}, cpu);
    }
    y = model->run({{"x", ones(2)}}).at("probabilities");
  }
  expect_probabilities(y, 2);
}

template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Onnx, NamesWhatDoesNotFit) {
  onnx_model model(file, {{"batch", 1, 4}});
  EXPECT_EQ(message_of([&] { model.run({}); }), "input 'x': expected a tensor, found none");
  EXPECT_EQ(message_of([&] {
              model.run({{"x", ones(1)}, {"z", ones(1)}});
            }),
            "input 'z': expected an input of the model, found none of this name");
  EXPECT_EQ(message_of([&] { model.run({{"x", ones(5)}}); }), "input 'x': expected batch from 1 to 4, found 5");
  EXPECT_EQ(message_of([&] {
              model.run({{"x", tensor({1, 4}, dtype::i64)}});
            }),
            "input 'x': expected elements of type f32, found i64");
  EXPECT_EQ(message_of([&] {
              model.run({{"x", tensor({1, 5})}});
            }),
            "input 'x': expected dimensions [batch, 4], found [1, 5]");
  tensor wide({2, 8});
  EXPECT_NE(message_of([&] {
              model.run({{"x", tensor::view(wide.data(), {2, 4}, dtype::f32, {8, 1})}});
            }).find("contiguous"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              model.run({{"x", tensor::view(wide.data(), {2, 4}, dtype::f32, {}, {kDLCUDA, 0})}});
            }).find("the host (kDLCPU)"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              compile(file, {{"bach", 1, 2}});
            }).find("bach: expected a dimension that an input of"),
            std::string::npos);
  EXPECT_EQ(message_of([&] {
              compile(file, {{"batch", 1, 2}, {"batch", 2, 3}});
            }),
            "range batch: expected one range, found two");
  EXPECT_NE(message_of([&] { compile("missing.onnx"); }).find("missing.onnx"), std::string::npos);
}

TEST(Onnx, RefusesNullPointersAndResultsThatAreNotThere) {
  cermet_handle* handle = nullptr;
  ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK);
  cermet_onnx* model = nullptr;
  expect_refused(cermet_onnx_open(nullptr, file.c_str(), nullptr, 0, &model), {"handle", "NULL"});
  expect_refused(cermet_onnx_open(handle, nullptr, nullptr, 0, &model), {"path", "NULL"});
  expect_refused(cermet_onnx_open(handle, file.c_str(), nullptr, 1, &model), {"ranges", "NULL"});
  ASSERT_EQ(cermet_onnx_open(handle, file.c_str(), nullptr, 0, &model), CERMET_OK);
  cermet_destroy(handle);
  cermet_onnx_value value{};
  expect_refused(cermet_onnx_input(model, 1, &value), {"input", "below 1", "found 1"});
  expect_refused(cermet_onnx_output(model, 0, nullptr), {"value", "NULL"});
  DLTensor result{};
  expect_refused(cermet_onnx_result(model, 0, 1, &result), {"result 0", "a run that succeeded"});
  const DLTensor* none = nullptr;
  expect_refused(cermet_onnx_run(model, &none, 1), {"input 'x'", "none"});
  expect_refused(cermet_onnx_run(model, nullptr, 0), {"inputs", "expected 1", "found 0"});
  const tensor x = ones(1);
  const DLTensor given = x.dl();
  const DLTensor* const inputs[]{&given};
  ASSERT_EQ(cermet_onnx_run(model, inputs, 1), CERMET_OK);
  EXPECT_EQ(cermet_onnx_compiled_count(model), 1);
  expect_refused(cermet_onnx_result(model, 1, 1, &result), {"result", "below 1", "found 1"});
  EXPECT_EQ(cermet_onnx_result(model, 0, 1, &result), CERMET_OK);
  EXPECT_EQ(result.ndim, 2);
  EXPECT_EQ(result.shape[1], 3);
  cermet_onnx_destroy(model);
  cermet_onnx_destroy(nullptr);
}

void expect_no_results(const char* device) {
  const handle on(device, 1);
  onnx_model model(file, {}, on);
  EXPECT_NE(message_of([&] {
              model.run({{"x", ones(1)}});
            }).find("expected a device that computes"),
            std::string::npos);
}

TEST(Onnx, RunsButGivesNothingOnTheNullDevice) { expect_no_results("null"); }

#ifdef CERMET_HAS_CUDA_PLUGIN
TEST(Onnx, RunsButGivesNothingOnANullGpu) { expect_no_results("null:sm_90"); }
#endif

}  // namespace
}  // namespace cermet::test

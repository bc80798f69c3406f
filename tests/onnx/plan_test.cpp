// Plans: a model that starts without its file, and folders that were changed.
#include "onnx/plan.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

/// y = x w + 1, the input itself, a constant, and a constant that is computed.
::onnx::GraphProto graph_of_plan() {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {"batch", 2});
  *graph.add_initializer() = tensor<float>("w", {2, 2}, {1, 2, 3, 4});
  *graph.add_initializer() = tensor<float>("one", {1}, {1});
  node(graph, "MatMul", {"x", "w"}, {"h"});
  node(graph, "Add", {"h", "one"}, {"y"});
  node(graph, "Neg", {"w"}, {"n"});
  for (const char* name : {"y", "x", "w", "n"}) output(graph, name);
  return graph;
}

class PlanFolder : public ::testing::Test {
 protected:
  std::filesystem::path write(const ::onnx::GraphProto& graph, const std::map<std::string, DimRange>& dims,
                              const std::string& name = "plan") {
    const auto model = std::make_shared<const Model>(read_model(folder_.write(model_of(graph))));
    write_plan(model, dims, context_, folder_.path() / name);
    std::filesystem::remove(folder_.path() / "model.onnx");  // it stands alone
    return folder_.path() / name;
  }
  std::string text(const std::filesystem::path& plan) {
    std::string message = error_text([&] { read_plan(plan, context_); });
    for (std::size_t at = 0; (at = message.find(plan.string())) != std::string::npos;)
      message.replace(at, plan.string().size(), "PLAN");
    return message;
  }
  void change(const std::filesystem::path& file, const std::string& from, const std::string& to) {
    std::ifstream in(file, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(in), {}};
    const std::size_t at = content.find(from);
    ASSERT_NE(at, std::string::npos);
    content.replace(at, from.size(), to);
    std::ofstream(file, std::ios::binary) << content;
  }
  Folder folder_;
  Context context_{ContextOptions{.device = "cpu", .threads = 1}};
};

void expect_run(CompiledModel& compiled, std::int64_t batch) {
  std::vector<float> x(static_cast<std::size_t>(2 * batch), 1);
  const OwnedTensor operand = floats({batch, 2}, x);
  compiled.run(std::vector<TensorView>{operand.view});
  const std::vector<float> y = elements<float>(compiled.host_output(0));
  ASSERT_EQ(y.size(), x.size());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i % 2 ? 7 : 5);
  EXPECT_EQ(elements<float>(compiled.host_output(1)), x);
  EXPECT_EQ(elements<float>(compiled.host_output(2)), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(elements<float>(compiled.host_output(3)), (std::vector<float>{-1, -2, -3, -4}));
}

TEST_F(PlanFolder, RunsWithoutTheModelsFile) {
  const std::filesystem::path plan = write(graph_of_plan(), {{"batch", {1, 4}}});
  EXPECT_TRUE(is_plan(plan));
  CompiledModel compiled(read_plan(plan, context_), context_);
  EXPECT_EQ(compiled.output_names(), (Names{"y", "x", "w", "n"}));
  expect_run(compiled, 3);
  expect_run(compiled, 1);
  EXPECT_EQ(compiled.compiled_parts(), 1);
  EXPECT_EQ(compiled.parts().at(0).import_seconds, 0);
  const OwnedTensor large = floats({5, 2}, std::vector<float>(10));
  EXPECT_EQ(error_text([&] { compiled.run(std::vector<TensorView>{large.view}); }),
            "input 'x': expected batch from 1 to 4, found 5");
}

TEST_F(PlanFolder, ComputesWhatFollowsFromSizes) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {"n"});
  *graph.add_initializer() = tensor<std::int64_t>("zero", {}, {0});
  *graph.add_initializer() = tensor<std::int64_t>("one", {}, {1});
  node(graph, "Size", {"x"}, {"count"});
  node(graph, "Range", {"zero", "count", "one"}, {"positions"});
  node(graph, "Cast", {"positions"}, {"places"}, {attribute("to", std::int64_t{P::FLOAT})});
  node(graph, "Cast", {"count"}, {"all"}, {attribute("to", std::int64_t{P::INT32})});
  node(graph, "Add", {"x", "places"}, {"y"});
  for (const char* name : {"y", "positions", "all"}) output(graph, name);
  CompiledModel compiled(read_plan(write(graph, {{"n", {1, 9}}}), context_), context_);
  for (const std::int64_t n : {4, 1, 9}) {
    const OwnedTensor x = floats({n}, std::vector<float>(static_cast<std::size_t>(n), 10));
    compiled.run(std::vector<TensorView>{x.view});
    EXPECT_EQ(elements<float>(compiled.host_output(0)).back(), static_cast<float>(10 + n - 1));
    EXPECT_EQ(elements<std::int64_t>(compiled.host_output(1)).size(), static_cast<std::size_t>(n));
    EXPECT_EQ(elements<std::int64_t>(compiled.host_output(1)).back(), n - 1);
    EXPECT_EQ(elements<std::int32_t>(compiled.host_output(2)),
              (std::vector<std::int32_t>{static_cast<std::int32_t>(n)}));
  }
  EXPECT_EQ(compiled.compiled_parts(), 1);
}

TEST_F(PlanFolder, KeepsFixedSizes) {
  CompiledModel compiled(read_plan(write(graph_of_plan(), {{"batch", {2, 2}}}), context_), context_);
  expect_run(compiled, 2);
  const OwnedTensor other = floats({1, 2}, {1, 2});
  EXPECT_EQ(error_text([&] { compiled.run(std::vector<TensorView>{other.view}); }),
            "input 'x': expected batch from 2 to 2, found 1");
}

TEST_F(PlanFolder, RefusesWhatHasNoPlan) {
  EXPECT_EQ(error_text([&] { write(graph_of_plan(), {}); }),
            "input 'x': expected --dim batch=SIZE or =LEAST..MOST, found none");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "plan")) << "nothing is left of a plan that failed";
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {4});
  node(graph, "NonZero", {"x"}, {"y"});
  output(graph, "y");
  EXPECT_NE(error_text([&] {
              write(graph, {});
            }).find("must be read before the rest of the model is known, and a plan has one part"),
            std::string::npos);
  ::onnx::GraphProto ranged;
  input(ranged, "x", P::FLOAT, {"n"});
  node(ranged, "NonZero", {"x"}, {"y"});
  output(ranged, "y");
  EXPECT_NE(error_text([&] {
              write(ranged, {{"n", {1, 4}}});
            }).find("expected a model that ranges of sizes suit, found one where"),
            std::string::npos);
}

TEST_F(PlanFolder, RefusesFoldersThatWereChanged) {
  const std::filesystem::path plan = write(graph_of_plan(), {{"batch", {1, 4}}});
  EXPECT_EQ(text(plan), "no error");
  change(plan / "graph.txt", "add", "sub");
  EXPECT_EQ(text(plan), "PLAN/graph.txt: expected what the digest is of, found a file that was changed");
  change(plan / "graph.txt", "sub", "add");
  change(plan / "plan.json", "\"batch\"", "\"bench\"");
  EXPECT_EQ(text(plan), "PLAN/plan.json: expected what the digest is of, found a file that was changed");
  change(plan / "plan.json", "\"bench\"", "\"batch\"");
  EXPECT_EQ(text(plan), "no error");
  const auto size = std::filesystem::file_size(plan / "weights.bin");
  std::filesystem::resize_file(plan / "weights.bin", size + 1);
  EXPECT_EQ(text(plan), fmt::format("PLAN/weights.bin: expected {} bytes, found {}", size, size + 1));
  std::filesystem::resize_file(plan / "weights.bin", size - 1);
  EXPECT_NE(text(plan).find("expected bytes inside PLAN/weights.bin"), std::string::npos);
  std::filesystem::resize_file(plan / "weights.bin", size);
  EXPECT_NE(text(plan).find("expected what the digest is of"), std::string::npos) << "its last byte is another now";
  std::filesystem::remove(plan / "weights.bin");
  EXPECT_NE(text(plan).find("weights.bin"), std::string::npos);
  std::filesystem::resize_file(plan / "plan.json", std::filesystem::file_size(plan / "plan.json") / 2);
  EXPECT_EQ(text(plan), "PLAN/plan.json: expected a whole plan, found other text");
}

TEST_F(PlanFolder, RefusesOtherDevices) {
  const std::filesystem::path plan = write(graph_of_plan(), {{"batch", {1, 4}}});
  const Context gpu(ContextOptions{.device = "null:sm_90", .threads = 1});
  EXPECT_NE(error_text([&] { read_plan(plan, gpu); }).find("device: expected a plan for sm_90"), std::string::npos);
}

}  // namespace
}  // namespace cermet::onnx::test

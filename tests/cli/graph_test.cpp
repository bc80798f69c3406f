// Files of graphs: run, bench model, explain.
#include "io/npy.hpp"
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

constexpr const char* graph_text = R"(graph scores {
  symbol T : 1..16
  input %x : f32[T, 3]
  constant %w : f32[2, 3]
  constant %two : f32[1] = tensor f32[1] 0x00000040
  %product = linear(%x, %w) : f32[T, 2]
  %doubled = mul(%product, %two) : f32[T, 2]
  output y = %doubled
}
)";

class GraphFileVerbs : public testing::Test {
 protected:
  GraphFileVerbs() { std::ofstream(path) << graph_text; }
  std::string file(const char* name, const Shape& shape, const std::vector<float>& elements) {
    OwnedTensor tensor(DType::f32, shape);
    std::memcpy(tensor.view.data, elements.data(), elements.size() * sizeof(float));
    write_npy(folder / name, tensor.view);
    return (folder / name).string();
  }

  ScratchFolder folder;
  const std::string path = (folder / "scores.graph").string();
};

TEST_F(GraphFileVerbs, RunWritesResultsOfTheSizesOfItsInputs) {
  const std::string x = file("x.npy", {2, 3}, {1, 2, 3, 4, 5, 6}), w = file("w.npy", {2, 3}, {1, 0, 0, 0, 1, 1}),
                    out = (folder / "out").string();
  const CommandResult result =
      run_cermet("run " + path + " --input x=" + x + " --input w=" + w + " --output " + out + " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["outputs"][0]["type"], "f32[2, 2]");
  const OwnedTensor y = read_npy(out + "/y.npy");
  EXPECT_EQ(std::vector<float>(y.view.as<float>(), y.view.as<float>() + 4), (std::vector<float>{2, 10, 8, 22}));
  const std::string text = run_cermet("run " + path + " --dim T=5").out;
  EXPECT_EQ(text.rfind("random inputs: x, w (--seed 0); --input NAME=FILE.npy reads a file\n  y  f32[5, 2]  ", 0), 0u)
      << text;
  EXPECT_NE(run_cermet("run " + path).out.find("\n  y  f32[16, 2]  "), std::string::npos);
}

TEST_F(GraphFileVerbs, BenchAndExplainTakeIt) {
  const CommandResult bench = run_cermet("bench model " + path + " --repeat 3 --json");
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_GT(bench.json()["seconds"], 0);
  const CommandResult explained = run_cermet("explain " + path + " --text --mode full");
  ASSERT_EQ(explained.code, 0) << explained.err;
  EXPECT_NE(explained.out.find("linear + mul"), std::string::npos) << explained.out;
}

TEST_F(GraphFileVerbs, MistakesAreNamed) {
  const std::string x = file("x.npy", {2, 3}, std::vector<float>(6)),
                    wide = file("wide.npy", {2, 4}, std::vector<float>(8));
  expect_mistake("run " + path + " --input z=" + x, {"--input z", "(x, w)", "none of this name"});
  expect_mistake("run " + path + " --input x=" + wide, {"input 'x'", "f32[T, 3]", "[2, 4]"});
  expect_mistake("run " + path + " --input w=" + wide, {"--input w", "[2, 3]", "[2, 4]"});
  expect_mistake("run " + path + " --dim S=3", {"--dim S", "none of this name"});
  expect_mistake("run " + path + " --mode most", {"--mode", "most"});
  std::ofstream(path) << "graph broken {\n  input %x : f32[3]\n  output y = %z\n}\n";
  expect_mistake("run " + path, {"line 3", "%z"});
  expect_mistake("run " + (folder / "none.graph").string(), {"none.graph"});
}

}  // namespace
}  // namespace cermet::test

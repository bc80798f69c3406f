// ONNX files on the command line, and plans made of them.
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

const std::string model = "models/demo_onnx/classifier.onnx";

/// Libraries of a GPU's compiler that a command opened, of what the loader says with LD_DEBUG=files.
std::size_t compilers_opened(const CommandResult& command) {
  std::size_t count = 0;
  for (const std::string_view name : {"libnvrtc.so", "libnvJitLink.so"})
    for (std::size_t at = command.err.find("calling init: "); at != std::string::npos;
         at = command.err.find("calling init: ", at + 1))
      count += command.err.substr(at, command.err.find('\n', at) - at).find(name) != std::string::npos;
  return count;
}

struct OnnxVerbs : testing::Test {
  ScratchFolder scratch;
  std::string plan = (scratch / "plan").string();
};

TEST_F(OnnxVerbs, APlanGivesTheSameResults) {
  const CommandResult compiled = run_cermet("compile " + model + " -o " + plan + " --dim batch=1..8 --json");
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_GT(compiled.json()["bytes"], 60);
  const std::string from_file = (scratch / "a").string(), from_plan = (scratch / "b").string();
  const CommandResult file = run_cermet("run " + model + " --dim batch=1..8 --output " + from_file + " --json");
  const CommandResult run = run_cermet("run " + plan + " --output " + from_plan + " --json");
  ASSERT_EQ(file.code, 0) << file.err;
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["import_seconds"], 0);
  ASSERT_EQ(run.json()["outputs"].size(), 1u);
  for (const char* key : {"name", "type"}) EXPECT_EQ(run.json()["outputs"][0][key], file.json()["outputs"][0][key]);
  EXPECT_EQ(content_of(scratch / "a" / "probabilities.npy"), content_of(scratch / "b" / "probabilities.npy"));
}

TEST_F(OnnxVerbs, TakesARounding) {
  for (const std::string rounding : {"strict", "fast"}) {
    const CommandResult run = run_cermet("run " + model + " --dim batch=2 --rounding " + rounding + " --output " +
                                         (scratch / rounding).string());
    ASSERT_EQ(run.code, 0) << run.err;
  }
  EXPECT_EQ(content_of(scratch / "strict" / "probabilities.npy"),
            content_of(scratch / "fast" / "probabilities.npy"));  // all is float32
  expect_mistake("run " + model + " --rounding exact",
                 {"--rounding", "strict or fast", "expected strict or fast, found \"exact\""});
}

TEST_F(OnnxVerbs, RefusesWhatAPlanCannotBe) {
  expect_mistake("compile " + model + " -o " + plan, {"input 'x'", "--dim batch=SIZE", "found none"});
  expect_mistake("compile " + model + " -o " + plan + " --dim bach=2", {"--dim bach", "expected a dimension"});
  expect_mistake("compile README.md -o " + plan, {"README.md", "ONNX model"});
  ASSERT_EQ(run_cermet("compile " + model + " -o " + plan + " --dim batch=2").code, 0);
  expect_mistake("compile " + model + " -o " + plan + " --dim batch=2", {plan});
  expect_mistake("run " + plan + " --dim batch=2", {"--dim batch=2", "expected none for a plan"});
  expect_mistake("run " + plan + " --device null:sm_90", {"device", "expected a plan for sm_90"});
}

TEST_F(OnnxVerbs, APlanForAGpuBringsItsKernelsAsACacheDoes) {
  if (run_cermet("env --json").json()["gpu_compiler"]["version"].is_null())
    GTEST_SKIP() << "no compiler for GPUs in this build";
  const std::string first = "CERMET_CACHE_DIR=" + (scratch / "first").string(),
                    second = "CERMET_CACHE_DIR=" + (scratch / "second").string();
  const CommandResult compiled =
      run_cermet("compile " + model + " -o " + plan + " --dim batch=1..8 --device null:sm_90", "", first);
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  const std::string third = "CERMET_CACHE_DIR=" + (scratch / "third").string(), debug = " LD_DEBUG=files";
  const CommandResult file =
      run_cermet("bench model " + model + " --dim batch=1..8 --device null:sm_90 --json", "", second + debug);
  const CommandResult again =
      run_cermet("bench model " + model + " --dim batch=1..8 --device null:sm_90 --json", "", second + debug);
  const CommandResult run = run_cermet("bench model " + plan + " --device null:sm_90 --json", "", third + debug);
  for (const CommandResult* command : {&file, &again, &run}) ASSERT_EQ(command->code, 0) << command->err;
  EXPECT_GT(file.json()["compiled_programs"], 0);
  EXPECT_EQ(compilers_opened(file), 1);
  // Where no kernel is compiled, no compiler is opened: that alone takes as long as choosing all kernels of a small
  // model.
  for (const CommandResult* command : {&again, &run}) {
    EXPECT_EQ(command->json()["compiled_programs"], 0);
    EXPECT_EQ(compilers_opened(*command), 0);
  }
}

TEST_F(OnnxVerbs, ComparesASpeedWithLimits) {
  const CommandResult run = run_cermet("bench model " + model + " --dim batch=2 --limits --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  EXPECT_GT(json["operations"], 0);
  EXPECT_GT(json["bytes"], 0);
  EXPECT_GT(json["limits"]["read_bytes_per_second"], 0);
  EXPECT_LT(json["operations"].get<double>() / json["seconds"].get<double>(),
            2 * json["limits"]["f32_operations_per_second"].get<double>());
  const CommandResult text = run_cermet("bench model " + model + " --dim batch=2 --limits");
  EXPECT_NE(text.out.find("limits"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("where the machine reaches f32"), std::string::npos) << text.out;
}

TEST_F(OnnxVerbs, RunPrintsValuesAndSaysWhenInputsAreRandom) {
  const std::string npy = (scratch / "lr=0.1.npy").string(), out = (scratch / "out").string();
  ASSERT_EQ(run_cermet("run " + model + " -o " + out).code, 0);
  const std::string random = run_cermet("run " + model).out;
  EXPECT_EQ(
      random.rfind("random input: x (--seed 0); --input NAME=FILE.npy reads a file\n  probabilities  f32[1, 3]  0.", 0),
      0u)
      << random;
  EXPECT_EQ(run_cermet("run " + model + " --json").json()["random_inputs"], nlohmann::json::array({"x"}));
  EXPECT_NE(run_cermet("run " + model + " --seed 2").out, random);
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }" + std::string(58, ' ') + "\n";
  scratch.file("lr=0.1.npy", std::string("\x93NUMPY\x01\x00", 8) +
                                 std::string({static_cast<char>(header.size()), '\0'}) + header +
                                 std::string(16, '\0'));
  const CommandResult given = run_cermet("run " + model + " --input x=" + npy);
  EXPECT_EQ(given.code, 0) << given.err;
  EXPECT_EQ(given.out.find("random"), std::string::npos) << given.out;
  EXPECT_EQ(run_cermet("run " + model + " --input x=" + npy + " --json").json()["random_inputs"],
            nlohmann::json::array());
}

TEST_F(OnnxVerbs, RefusesWhatOnlyCheckpointsHave) {
  expect_mistake("bench model " + model + " --trace t.json",
                 {"--trace: expected a checkpoint's folder with it", model});
  expect_mistake("bench model " + model + " --batch 2", {"--batch: expected a checkpoint's folder with it", model});
}

}  // namespace
}  // namespace cermet::test

#include "op/operator.hpp"
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

TEST(BenchOp, MeasuresTheExampleOfEveryOperator) {
  for (const OpDefinition& op : all_operators()) {
    const std::string name(op.name), example = run_cermet("ops " + name + " --json").json()["example"].get<std::string>();
    const CommandResult result = run_cermet("bench op " + name + " --seconds 0 --json --shape '" + example + "'");
    ASSERT_EQ(result.code, 0) << name << " " << example << "\n" << result.err;
    EXPECT_GE(result.json()["runs"], 5) << name;
    EXPECT_GT(result.json()["median_seconds"], 0) << name;
  }
}

TEST(BenchOp, ReportsRatesOfTheMedian) {
  const auto json = run_cermet("bench op rms_norm --shape 'bf16[64,256] bf16[256]' --seconds 0.01 --json --threads 1").json();
  EXPECT_EQ(json["kernel"], "rowwise.rms_norm");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["bytes"], 64 * 256 * 2 * 2 + 256 * 2);
  EXPECT_NEAR(json["bytes_per_second"].get<double>() * json["median_seconds"].get<double>(), json["bytes"].get<double>(), 1);
  EXPECT_LE(json["min_seconds"], json["median_seconds"]);
  EXPECT_EQ(json["copies"], 1);
}

TEST(BenchOp, ColdRunsRotateCopiesAndTextNamesTheKernel) {
  EXPECT_GT(run_cermet("bench op rms_norm --shape 'f32[512,2048]' --seconds 0 --cold --json").json()["copies"], 1);
  const CommandResult text = run_cermet("bench op rms_norm --shape 'bf16[T,64]' --tokens 7 --seconds 0 --kernel rowwise.rms_norm");
  EXPECT_NE(text.out.find("rms_norm(bf16[7, 64]"), std::string::npos) << text.out << text.err;
  EXPECT_NE(text.out.find("rowwise.rms_norm"), std::string::npos);
}

TEST(BenchOp, MistakesAreNamed) {
  expect_mistake("bench", {"verb", "op", "nothing"});
  expect_mistake("bench kernel", {"verb", "op", "\"kernel\""});
  expect_mistake("bench op rms_norm", {"--shape"});
  expect_mistake("bench op rmsnorm --shape 'f32[2,8]'", {"\"rmsnorm\"", "rms_norm"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8] f32[9]'", {"operand 1 (weight)"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --kernel fast", {"--kernel", "rowwise.rms_norm", "\"fast\""});
  expect_mistake("bench op rms_norm --shape 'f32[1000000,10000000]'", {"memory", "TiB"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --seconds -1", {"--seconds"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --threads 100000", {"--threads"});
}

TEST(Limits, AreMeasured) {
  const auto json = run_cermet("limits --seconds 0.01 --threads 1 --json").json();
  EXPECT_EQ(json["threads"], 1);
  EXPECT_GT(json["read_bytes_per_second"], 1e8);
  EXPECT_GT(json["f32_operations_per_second"], 1e8);
  expect_mistake("limits --seconds 0", {"--seconds"});
  expect_mistake("limits --threads many", {"--threads", "many"});
}

}  // namespace
}  // namespace cermet::test

#include <sstream>

#include "op/schema/operator.hpp"
#include "tests/cli/command.hpp"
#include "tests/model/plugin.hpp"

namespace cermet::test {
namespace {

TEST(BenchOp, MeasuresTheExampleOfEveryOperator) {
  for (const OpDefinition& op : all_operators()) {
    const std::string name(op.name),
        example = run_cermet("ops " + name + " --json").json()["example"].get<std::string>();
    const CommandResult result = run_cermet("bench op " + name + " --seconds 0 --json --shape '" + example + "'");
    ASSERT_EQ(result.code, 0) << name << " " << example << "\n" << result.err;
    EXPECT_GE(result.json()["runs"], 5) << name;
    EXPECT_GT(result.json()["median_seconds"], 0) << name;
  }
}

TEST(BenchOp, ReportsRatesOfTheMedian) {
  const auto json =
      run_cermet("bench op rms_norm --shape 'bf16[64,256] bf16[256]' --seconds 0.01 --json --threads 1").json();
  EXPECT_EQ(json["kernel"], "rowwise.rms_norm");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["bytes"], 64 * 256 * 2 * 2 + 256 * 2);
  EXPECT_NEAR(json["bytes_per_second"].get<double>() * json["median_seconds"].get<double>(),
              json["bytes"].get<double>(), 1);
  EXPECT_LE(json["min_seconds"], json["median_seconds"]);
  EXPECT_EQ(json["copies"], 1);
}

TEST(BenchOp, ColdRunsRotateCopiesAndTextNamesTheKernel) {
  EXPECT_GT(run_cermet("bench op rms_norm --shape 'f32[512,2048]' --seconds 0 --cold --json").json()["copies"], 1);
  const CommandResult text =
      run_cermet("bench op rms_norm --shape 'bf16[T,64]' --tokens 7 --seconds 0 --kernel rowwise.rms_norm");
  EXPECT_NE(text.out.find("rms_norm(bf16[7, 64]"), std::string::npos) << text.out << text.err;
  EXPECT_NE(text.out.find("rowwise.rms_norm"), std::string::npos);
}

TEST(BenchOp, MistakesAreNamed) {
  expect_mistake("bench", {"bench: expected a command (op, suite, model, comm, soak), found nothing"});
  expect_mistake("bench kernel", {"no such command: bench kernel; expected op, suite, model, comm, soak"});
  expect_mistake("bench op rms_norm", {"--shape"});
  expect_mistake("bench op 'silu(f32[2])' --shape 'f32[2]'", {"region", "\"f32[2]\""});
  expect_mistake("bench op '{n0 = silu($0: f32[2])} anchor n0'", {"region", "column"});
  expect_mistake("bench op rmsnorm --shape 'f32[2,8]'", {"\"rmsnorm\"", "rms_norm"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8] f32[9]'", {"operand 1 (weight)"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --kernel fast", {"--kernel", "rowwise.rms_norm", "\"fast\""});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --config rows=2",
                 {"--config", "rowwise.rms_norm", "expected default", "\"rows\""});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --config rows", {"configuration", "\"rows\""});
  expect_mistake("bench op rms_norm --shape 'f32[1000000,10000000]'", {"memory", "TiB"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --seconds -1", {"--seconds"});
  expect_mistake("bench op rms_norm --shape 'f32[2,8]' --threads 100000", {"--threads"});
}

TEST(BenchSuite, MeasuresEveryCallAndKeepsErrors) {
  const ScratchFolder folder;
  const auto file =
      folder.file("calls.json", R"json([{"name": "norm", "op": "rms_norm", "shape": "bf16[4,64] bf16[64]"},
    {"name": "none", "op": "rms_norm", "shape": "bf16[4,64] bf16[63]"},
    {"name": "decode", "op": "incre_flash_attention", "paging": "uneven",
     "shape": "q=bf16[4,8,16] k_cache=bf16[64,4,16,16] v_cache=bf16[64,4,16,16] block_tables=i32[4,16] context_lens=i32[4]"},
    {"name": "region", "region": "silu(f32[4, 64])"}])json");
  const CommandResult result = run_cermet("bench suite " + file.string() + " --seconds 0 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(found.size(), 4u) << result.out;
  EXPECT_EQ(found[3]["problem"], "silu(f32[4, 64])");
  EXPECT_EQ(found[0]["name"], "norm");
  EXPECT_GT(found[0]["median_seconds"], 0);
  EXPECT_NE(found[1]["error"].get<std::string>().find("operand 1 (weight)"), std::string::npos);
  const double whole = 4 * 256 * 4 * 32 * 2;  // bytes of all pages
  EXPECT_LT(found[2]["bytes"], whole) << "sequences differ in length";
  EXPECT_GT(found[2]["bytes"], whole / 4);
  EXPECT_NE(run_cermet("bench suite " + file.string() + " --seconds 0").out.find("rowwise.rms_norm"),
            std::string::npos);
}

TEST(BenchSuite, MistakesAreNamed) {
  const ScratchFolder folder;
  expect_mistake("bench suite " + (folder / "none.json").string(), {"none.json"});
  expect_mistake(
      "bench suite " +
          folder.file("both.json", R"json([{"name": "a", "region": "neg(f32[2])", "op": "neg"}])json").string(),
      {"both.json", "op"});
  expect_mistake("bench suite " + folder.file("name.json", R"([{"name": "a", "region": "neg"}])").string(),
                 {"name.json", "region", "op and shape"});
  expect_mistake("bench suite " + folder.file("list.json", "{}").string(), {"list.json", "array"});
  expect_mistake(
      "bench suite " +
          folder.file("key.json", R"([{"name": "a", "op": "neg", "shape": "f32[2]", "shapes": ""}])").string(),
      {"shapes"});
  expect_mistake(
      "bench suite " +
          folder
              .file("twice.json",
                    R"([{"name": "a", "op": "neg", "shape": "f32[2]"}, {"name": "a", "op": "abs", "shape": "f32[2]"}])")
              .string(),
      {"twice"});
  expect_mistake("bench op neg --shape 'f32[2]' --paging odd", {"--paging", "uneven", "\"odd\""});
}

void expect_timeline(const nlohmann::json& trace, bool timed) {
  int passes = 0, launches = 0;
  double end = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["cat"] == "pass") {
      ++passes;
      continue;
    }
    ++launches;
    EXPECT_GE(event["ts"].get<double>(), end - 1) << "launches follow each other";
    end = event["ts"].get<double>() + event["dur"].get<double>();
    EXPECT_EQ(event["dur"].get<double>() > 0, timed);
    const auto& args = event["args"];
    EXPECT_EQ(args["kernel"], event["name"]);
    EXPECT_EQ(args["operator"], event["cat"]);
    EXPECT_FALSE(args["operands"].empty());
    EXPECT_GE(args["bytes"], 0);
    EXPECT_EQ(args.contains("fraction_of_limit"), timed);
  }
  EXPECT_EQ(passes, 1 + 2);
  EXPECT_GT(launches, 3 * 10);
}

TEST(BenchModel, WritesATimeline) {
  const ScratchFolder folder;
  const std::string file = (folder / "trace.json").string();
  for (const std::string device : {"cpu", "null"}) {
    const CommandResult result =
        run_cermet("bench model models/demo --prompt-tokens 40 --new-tokens 2 --repeat 1 --json --device " + device +
                   " --trace " + file);
    ASSERT_EQ(result.code, 0) << result.err;
    const auto trace = nlohmann::json::parse(content_of(file));
    EXPECT_EQ(trace["otherData"]["prompt_tokens"], 40);
    expect_timeline(trace, device == "cpu");
    EXPECT_GT(result.json()["first_token_seconds"], 0);
  }
  expect_mistake("bench model models/demo --trace " + (folder / "no/where.json").string(), {"where.json"});
  expect_mistake("bench model models/demo --trace " + folder.path().string(), {"folder"});
}

TEST(BenchModel, PrintsThePlanOfADecodeStep) {
  const auto host = run_cermet("bench model models/demo --plan --prompt-tokens 20 --limits --json --threads 1").json();
  EXPECT_EQ(host["prompt_tokens"], 20);
  ASSERT_GT(host["launches"].size(), 40u);
  for (const auto& launch : host["launches"]) {
    EXPECT_FALSE(launch["linkable"].get<bool>());
    EXPECT_TRUE(launch["program"].is_null());
    EXPECT_GT(launch["written_bytes"], 0);
    EXPECT_GT(launch["modelled_seconds"], 0);
  }
  EXPECT_FALSE(host["launches"].back()["follows"].empty()) << "logits follow from what was computed";
  expect_mistake("bench model models/demo --plan --steps", {"--plan", "--steps"});
  expect_mistake("bench model models/demo --plan --trace /tmp/x.json", {"--plan", "--trace"});
}

TEST(BenchModel, PrintsThePlanForAGpuThatIsNotThere) {
  if (const std::string reason = no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string call = "bench model models/demo --plan --batch 2 --prompt-tokens 20 --device null:sm_90";
  const auto json = run_cermet(call + " --json").json();
  EXPECT_EQ(json["batch"], 2);
  std::int64_t programs = 0, fetching = 0;
  for (const auto& launch : json["launches"]) {
    ASSERT_EQ(launch["modelled_seconds"].is_null(), launch["bytes"].is_null()) << "by the data sheet";
    EXPECT_TRUE(launch["bytes"].is_null() || launch["modelled_seconds"] > 0);
    fetching += launch["early_bytes"] > 0;
    EXPECT_LE(launch["early_bytes"], launch["read_bytes"]);
    if (!launch["linkable"].get<bool>()) continue;
    ++programs;
    EXPECT_GT(launch["items"], 0);
    EXPECT_GT(launch["blocks"], 0);
    EXPECT_GT(launch["parameter_bytes"], 0);
  }
  EXPECT_GT(programs, 40);
  EXPECT_GT(fetching, 10) << "products of constant weights fetch those early";
  // What a launch computes can be asked about again.
  const auto single = run_cermet("bench model models/demo --plan --prompt-tokens 20 --device null:sm_90 --json").json();
  const auto& launches = single["launches"];
  const auto fused = std::find_if(launches.begin(), launches.end(),
                                  [](const auto& launch) { return launch["kernel"] == "gemv.norm_linear"; });
  ASSERT_NE(fused, launches.end());
  const std::string region = (*fused)["region"];
  EXPECT_EQ(run_cermet("explain op --device null:sm_90 --json --tokens 1 '" + region + "'").json()["kernel"],
            "gemv.norm_linear")
      << region;
  const CommandResult text = run_cermet(call);
  EXPECT_NE(text.out.find("microseconds"), std::string::npos) << text.out << text.err;
  const CommandResult limits = run_cermet(call + " --limits");
  EXPECT_NE(limits.code, 0);
  EXPECT_NE(limits.err.find("device null:sm_90: expected one that computes"), std::string::npos) << limits.err;
}

TEST(Limits, AreMeasured) {
  const auto json = run_cermet("limits --seconds 0.01 --threads 1 --json").json();
  EXPECT_EQ(json["threads"], 1);
  EXPECT_GT(json["read_bytes_per_second"], 1e8);
  EXPECT_GT(json["f32_operations_per_second"], 1e8);
  expect_mistake("limits --seconds 0", {"--seconds"});
  expect_mistake("limits --threads many", {"--threads", "many"});
  expect_mistake("limits --device null:sm_90", {"null:sm_90", "computes"});
  expect_mistake("limits --store", {"--store", "expected a GPU", "cpu"});
  expect_mistake("limits --device null:sm_90 --store", {"null:sm_90", "computes"});
}

}  // namespace
}  // namespace cermet::test

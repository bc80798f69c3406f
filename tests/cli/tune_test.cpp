// `cermet tune` and `cermet explain op --space` as a user runs them, on the CPU.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

const std::string small_product = "linear --shapes 'x=f32[96,64] w=f32[64,64]' --threads 2 --seconds 0.001";

struct TuneFolder {
  ScratchFolder folder;
  /// Without tiles, which are one more candidate where there are any.
  std::string environment() const {
    return "CERMET_AMX_PRODUCTS=off CERMET_TUNING=" + (folder / "choices.db").string();
  }
  CommandResult run(const std::string& arguments) const { return run_cermet(arguments, "", environment()); }
};

TEST(Tune, MeasuresStoresAndIsObeyed) {
  const TuneFolder place;
  const CommandResult result = place.run("tune op " + small_product + " --search exhaustive --budget 30 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = result.json();
  EXPECT_EQ(json["tuned"], 1);
  EXPECT_EQ(json["regions"], 1);
  const auto& tuned = json["results"][0];
  EXPECT_EQ(tuned["tried"].size(), tuned["candidates"]);
  EXPECT_EQ(tuned["ended"], "all measured");
  EXPECT_EQ(tuned["tried"][0]["kernel"], tuned["untuned"]["kernel"]);
  EXPECT_GE(tuned["gain"], 1);
  for (const auto& tried : tuned["tried"])
    EXPECT_TRUE(tried["state"] == "measured" || tried["state"] == "given up") << tried;
  const auto chosen = place.run("explain op linear --shape 'x=f32[96,64] w=f32[64,64]' --threads 2 --json").json();
  EXPECT_EQ(chosen["kernel"], tuned["kernel"]);
  EXPECT_EQ(chosen["config"], tuned["config"]);
  const auto other = place.run("explain op linear --shape 'x=f32[97,64] w=f32[64,64]' --threads 2 --json").json();
  EXPECT_EQ(other["config"], "default") << "another shape is not touched";
}

TEST(Tune, DryStoresNothing) {
  const TuneFolder place;
  const CommandResult result = place.run("tune op " + small_product + " --candidates 3 --dry");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("3 of "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("nothing is stored"), std::string::npos) << result.out;
  EXPECT_FALSE(std::filesystem::exists(place.folder / "choices.db"));
}

TEST(Tune, TakesSeveralShapesOnceEachWithinItsBudget) {
  const TuneFolder place;
  const CommandResult result = place.run(
      "tune op rms_norm --shape 'f32[64,256] f32[256]' 'f32[64,256] f32[256]' 'f32[8,4096] f32[4096]' --budget 2 "
      "--threads 2 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["regions"], 2);
  EXPECT_EQ(result.json()["results"][0]["launches"], 2);
  EXPECT_LT(result.json()["seconds"], 4);
}

/// The model was run with all tuned choices and without; where that was slower, those without are stored.
void expect_whole_model_compared(const nlohmann::json& tuned, const TuneFolder& place) {
  const auto changed = [](const auto& result) {
    return result["kernel"] != result["untuned"]["kernel"] || result["config"] != result["untuned"]["config"];
  };
  if (std::ranges::none_of(tuned["results"], changed)) {
    EXPECT_TRUE(tuned["whole"].is_null()) << tuned["whole"];
    return;
  }
  EXPECT_GT(tuned["whole"]["untuned_step_seconds"], 0);
  EXPECT_GT(tuned["whole"]["tuned_prompt_seconds"], 0);
  const auto stored = place.run("tune list --json").json();
  EXPECT_EQ(stored["count"], tuned["tuned"]);
  for (const auto& entry : stored["entries"])
    for (const auto& result : tuned["results"])
      if (entry["region"] == result["region"]) {
        const auto& kept = tuned["fault"].is_null() ? result : result["untuned"];
        EXPECT_EQ(entry["kernel"], kept["kernel"]) << entry["region"];
        EXPECT_EQ(entry["config"], kept["config"]) << entry["region"];
      }
}

TEST(Tune, TakesModelsAndGraphs) {
  const TuneFolder place;
  const CommandResult model =
      place.run("tune model " + tiny + " --threads 2 --seconds 0.001 --budget 3 --candidates 4 --json");
  ASSERT_EQ(model.code, 0) << model.err;
  EXPECT_GT(model.json()["regions"], 5);
  EXPECT_GT(model.json()["tuned"], 0);
  const nlohmann::json report = model.json();
  for (const auto& result : report["results"])
    for (const auto& tried : result["tried"]) EXPECT_NE(tried["state"], "wrong") << result["region"] << tried;
  expect_whole_model_compared(model.json(), place);
  const auto graph =
      place.folder.file("norm.graph",
                        "graph norm {\n  symbol T : 1..64\n  input %x : f32[T, 64]\n  constant %w : f32[64]\n"
                        "  %y = rms_norm(%x, %w) : f32[T, 64]\n  output y = %y\n}\n");
  const CommandResult text =
      place.run("tune graph " + graph.string() + " --threads 2 --seconds 0.001 --budget 2 --json");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.json()["regions"], 1);
  EXPECT_NE(text.json()["results"][0]["region"].get<std::string>().find("s0 <= 64"), std::string::npos) << text.out;
}

TEST(Tune, FitsModelsToWhatWasMeasured) {
  const TuneFolder place;
  const std::string shapes =
      "'x=f32[96,64] w=f32[64,64]' 'x=f32[64,256] w=f32[128,256]' 'x=f32[512,128] w=f32[96,128]' 'x=f32[80,512] "
      "w=f32[64,512]'";
  ASSERT_EQ(place.run("tune op linear --shapes " + shapes + " --threads 2 --seconds 0.001 --candidates 4").code, 0);
  const auto json = place.run("tune fit --threads 2 --json").json();
  bool found = false;
  for (const auto& fit : json["fits"]) {
    EXPECT_LE(fit["error_after"], fit["error_before"].get<double>() + 1e-9) << fit;
    EXPECT_GE(fit["regions"], 3);
    found = found || fit["kernel"] == "gemm.linear.packed";
  }
  EXPECT_TRUE(found) << json;
  EXPECT_TRUE(std::filesystem::exists(json["file"].get<std::string>()));
  const auto fitted = place.run("explain op linear --shape 'x=f32[100,64] w=f32[64,64]' --threads 2 --json").json();
  const auto plain = run_cermet("explain op linear --shape 'x=f32[100,64] w=f32[64,64]' --threads 2 --json").json();
  const auto seconds_of = [](const nlohmann::json& explained) -> double {
    for (const auto& candidate : explained["candidates"])
      if (candidate["kernel"] == "gemm.linear.packed") return candidate["configs"][0]["modelled_seconds"];
    return 0;
  };
  for (const auto& fit : json["fits"])
    if (fit["kernel"] == "gemm.linear.packed") {
      EXPECT_NEAR(seconds_of(fitted) / seconds_of(plain), fit["factor"].get<double>(),
                  1e-6 * fit["factor"].get<double>());
    }
}

TEST(Tune, KeepsWhatItLearnedAfterCtrlC) {
  const TuneFolder place;
  const ScratchFolder out;
  const pid_t child = fork();
  if (child == 0) {
    const std::string command = "cd " CERMET_SOURCE_DIR "; exec env " + place.environment() +
                                " " CERMET_BINARY_DIR
                                "/bin/cermet tune op linear --shapes 'x=f32[96,64] w=f32[64,64]' 'x=f32[2048,2048] "
                                "w=f32[2048,2048]' --threads 2 --seconds 0.2 "
                                "--budget 600 --json >" +
                                (out / "out").string() + " 2>" + (out / "err").string();
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_NE(content_of(out / "err").find("interrupted: 1 of 2 regions are tuned and stored"), std::string::npos)
      << content_of(out / "err");
  const std::string printed = content_of(out / "out");
  const auto json = nlohmann::json::parse(printed.substr(0, printed.find('\n')));  // the error is a value of its own
  ASSERT_EQ(json["results"].size(), 1u);
  EXPECT_EQ(json["results"][0]["ended"], "interrupted");
  EXPECT_GT(json["results"][0]["tried"].size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(place.folder / "choices.db"));
}

TEST(Tune, MistakesAreNamed) {
  expect_mistake("tune op linear", {"--shape: expected operand types, as in"});
  expect_mistake("tune op linear --shape 'f32[2,3]'", {"linear"});
  expect_mistake("tune op liner --shape 'f32[2,3]'", {"\"liner\"", "linear"});
  expect_mistake("tune op silu --shape 'f32[8]' --search grid",
                 {"--search: expected bayes, random or exhaustive, found \"grid\""});
  expect_mistake("tune op silu --shape 'f32[8]' --budget 0", {"--budget"});
  expect_mistake("tune op silu --shape 'f32[8]' --device null:sm_90",
                 {"--device: expected one that computes, found null:sm_90"});
  expect_mistake("tune op silu --shape 'f32[8]' --paging odd",
                 {"--paging: expected contiguous, scattered or uneven, found \"odd\""});
  expect_mistake("tune model " + tiny + " --device null", {"--device: expected one that computes, found null"});
  expect_mistake("tune graph nothing.graph", {"nothing.graph"});
}

TEST(OpsSpace, PrintsFieldsConstraintsAndPoints) {
  const CommandResult text =
      run_cermet("explain op linear --space --shape 'x=bf16[512,4096] w=bf16[6144,4096]' --device null:sm_90");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part :
       {"gemm.linear.hopper: ", "tile_m", "one of 32, 64, 96, 112, 128, 192, 224, 256", "2 to 16",
        "16 where it is not named", "where stages * (1 * tile_m", "cublaslt.linear: runs in one way"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  const auto json = run_cermet("explain op linear --space --shape 'x=f32[512,256] w=f32[256,256]' --threads 4 --json",
                               "", "CERMET_AMX_PRODUCTS=off")
                        .json();
  const auto& space = json["spaces"][0];
  EXPECT_EQ(space["kernel"], "gemm.linear.packed");
  EXPECT_EQ(space["points"].size(), 7u * 2 * 3);
  const CommandResult alone = run_cermet("explain op linear --space --device null:sm_90");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.out.find("gemv.linear: "), std::string::npos) << alone.out;
  expect_mistake("explain op linear --space --shape 'x=f32[2,3]'", {"linear"});
  expect_mistake("explain op linear --space -o x.svg", {"--output: expected no --space with it, found both"});
}

}  // namespace
}  // namespace cermet::test

// cermet bench soak: what it counts, and that it finds a kernel that goes wrong, grows or hangs after many calls.
#include "tests/cli/command.hpp"
#include "tests/comm/background.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

TEST(SoakVerb, CountsStepsAndMemoryOfEnginesAtTheSameTime) {
  const CommandResult result =
      run_cermet("bench soak " + tiny + " -n 300 --tokens 8 --engines 3 --threads 2 --super-kernel decode --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = result.json();
  EXPECT_EQ(json["engines"], 3);
  EXPECT_EQ(json["samples"].size(), 10u);
  EXPECT_GE(json["steps"], 300);
  EXPECT_EQ(json["steps"].get<int>(), 8 * json["rounds"].get<int>());
  EXPECT_GT(json["samples"][0]["resident_bytes"], 1 << 20);
  EXPECT_EQ(json["samples"][0]["device_held_bytes"], 0);
  EXPECT_LT(json["samples"][0]["steps"], json["samples"][9]["steps"]);
  const CommandResult text = run_cermet("bench soak " + tiny + " -n 20 --tokens 2 --engines 1");
  EXPECT_NE(text.out.find("10 rounds, each with the tokens and the last logits of the first ones"), std::string::npos)
      << text.out << text.err;
}

/// A worn kernel in a model, which takes it because it must.
CommandResult soak_with(const std::string& entry, const std::string& options) {
  const ScratchFolder folder;
  fs::copy_file(CERMET_WORN_KERNELS, folder / "worn.so");
  std::string manifest = content_of(CERMET_SOURCE_DIR "/examples/kernels/cpu/rms_norm.json");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"mine.rms_norm", "test.worn"}, {"rms_norm.so", "worn.so"}})
    manifest.replace(manifest.find(from), from.size(), to);
  const std::string named = "\"entry\": \"rms_norm\"";
  manifest.replace(manifest.find(named), named.size(), "\"entry\": \"" + entry + "\"");
  const std::string cache = "CERMET_CACHE_DIR=" + (folder / "cache").string() + " ";
  const CommandResult added = run_cermet("kernel add " + folder.file("worn.json", manifest).string(), "", cache);
  EXPECT_EQ(added.code, 0) << added.err;
  return run_cermet("bench soak " + tiny + " --mode none --tokens 8 -n 800 " + options, "",
                    cache + "CERMET_CONFIG='test.worn: default' ");
}

TEST(SoakVerb, FindsWhatChangesGrowsAndHangs) {
  const CommandResult drifts = soak_with("drifts", "--engines 1");
  EXPECT_EQ(drifts.code, 1) << drifts.out;
  EXPECT_NE(drifts.err.find("soak: engine 0, round "), std::string::npos) << drifts.err;
  EXPECT_NE(drifts.err.find(" as at first, found "), std::string::npos) << drifts.err;
  const CommandResult leaks = soak_with("leaks", "--engines 2");
  EXPECT_EQ(leaks.code, 1) << leaks.out;
  EXPECT_NE(leaks.err.find("soak: memory of the process: expected at most 1024 KiB more"), std::string::npos)
      << leaks.err;
  const CommandResult hangs = soak_with("hangs", "--engines 2 --patience 1 --json");
  EXPECT_EQ(hangs.code, 1) << hangs.out;
  EXPECT_NE(hangs.json()["error"].get<std::string>().find("expected a step within 1 s, found none after step "),
            std::string::npos)
      << hangs.out;
}

TEST(SoakVerb, Mistakes) {
  expect_mistake("bench soak " + tiny + " --context 32",
                 {"--tokens and the longest prompt: expected at most 32 tokens", "found 102"});
  expect_mistake("bench soak " + tiny + " --tokens 1", {"--tokens"});
  expect_mistake("bench soak " + tiny + " --engines 0", {"--engines"});
  expect_mistake("bench soak nowhere", {"nowhere"});
}

const std::string script = "env CERMET_BUILD=" CERMET_BINARY_DIR " " CERMET_SOURCE_DIR "/script/soak cpu ";

TEST(SoakScript, AnotherProcessDecodesMeanwhile) {
  Background run(script + "200");
  ASSERT_EQ(run.wait(std::chrono::minutes(1)), 0) << run.out() << run.err();
  EXPECT_NE(run.out().find("each with the tokens"), std::string::npos) << run.out();
}

TEST(LongSoak, AMillionStepsBesideAnotherProcess) {
  Background run(script + "1000000");
  ASSERT_EQ(run.wait(std::chrono::minutes(29)), 0) << run.out() << run.err();
}

}  // namespace
}  // namespace cermet::test

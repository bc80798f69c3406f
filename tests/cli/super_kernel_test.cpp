// --super-kernel on the command line: what it computes, prints and refuses.
#include "tests/cli/command.hpp"
#include "tests/support/golden.hpp"

namespace cermet::test {
namespace {

const std::string demo = CERMET_SOURCE_DIR "/models/demo";

TEST(SuperKernelVerbs, LogitsKeepTheirBits) {
  const std::string command = "logits " + demo + " --ids 497,2314,1581 --json";
  const CommandResult plain = run_cermet(command);
  ASSERT_EQ(plain.code, 0) << plain.err;
  for (const std::string options :
       {"--super-kernel decode", "--super-kernel layer",
        "--super-kernel 'mlp:*.experts' --super-kernel-options width=2",
        "--super-kernel decode --super-kernel-options debug-sync-all=1", "--super-kernel none"}) {
    const CommandResult marked = run_cermet(command + " " + options);
    EXPECT_EQ(marked.code, 0) << marked.err;
    EXPECT_EQ(marked.out, plain.out) << options;
  }
}

TEST(SuperKernelVerbs, RunGeneratesTheSameText) {
  const std::string command = "run " + demo + " --ids 497,2314 -n 6 --json";
  const auto plain = run_cermet(command).json(), marked = run_cermet(command + " --super-kernel decode").json();
  EXPECT_EQ(marked["ids"], plain["ids"]);
}

TEST(SuperKernelVerbs, ThePlanShowsRegionsAndWhoWaits) {
  const CommandResult text = run_cermet(
      "bench model " + demo + " --plan --prompt-tokens 4 --super-kernel decode --super-kernel-options profile=1");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("super-kernel decode (profile=1): launches 0 to 63"), std::string::npos)
      << text.out.substr(text.out.size() > 4000 ? text.out.size() - 4000 : 0);
  const auto json = run_cermet("bench model " + demo + " --plan --prompt-tokens 4 --super-kernel layer --json").json();
  EXPECT_EQ(json["super_kernels"]["regions"].size(), 6u);
  EXPECT_EQ(json["super_kernels"]["regions"][0]["name"], "layers.0");
  EXPECT_EQ(json["super_kernels"]["breaks"].size(), 0u);
  ASSERT_TRUE(json["super_kernels"]["regions"][0].contains("predicted_loss_seconds"));
  EXPECT_TRUE(json["super_kernels"]["regions"][0]["predicted_loss_seconds"].is_null()) << "the CPU predicts nothing";
}

TEST(SuperKernelVerbs, ExplainShowsTheirBlocks) {
  const CommandResult text = run_cermet("explain " + demo + " --text --super-kernel layer");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("super-kernels\n  layers.0  blocks"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("collectives"), std::string::npos);
  EXPECT_NE(text.out.find("blocks of super-kernels that wait for others"), std::string::npos);
  const auto graphs =
      run_cermet("explain " + demo + " --super-kernel layer --tensor-parallel 2 --json").json()["graphs"];
  ASSERT_EQ(graphs.size(), 3u) << "passes of one rank";
  const auto& shared = graphs[0]["after"];
  for (const auto& block : shared["super_kernels"][0]["collectives"])
    EXPECT_EQ(shared["blocks"][block.get<std::size_t>()]["kernel"], "ranks.all_reduce");
  EXPECT_EQ(shared["super_kernels"][0]["collectives"].size(), 2u) << "behind attention and behind the experts";
}

TEST(SuperKernelVerbs, ExplainSaysWhoWaitsForWhom) {
  const ScratchFolder folder;
  const std::string file = (folder / "branches.graph").string();
  std::ofstream(file)
      << "graph branches {\n  super_kernel sp1 \"\"\n  input %x : f32[4, 64]\n  input %cache : f32[4, 64]\n  constant "
         "%w : f32[64, 64]\n"
         "  %a = linear(%x, %w) : f32[4, 64] in sp1\n  %b = softmax(%x) : f32[4, 64] in sp1\n  %v = reshape(%a) {shape "
         "= [2, 128]} : f32[2, 128] in sp1\n"
         "  %c = softmax(%v) : f32[2, 128] in sp1\n  %f = reshape(%c) {shape = [4, 64]} : f32[4, 64] in sp1\n"
         "  %d = linear(%f, %w) : f32[4, 64] in sp1\n  %e = matmul(%d, %b) {transpose_b = true} : f32[4, 4] in sp1\n  "
         "output y = %e\n}\n";
  const CommandResult text = run_cermet("explain " + file + " --text --mode none --compare none");
  ASSERT_EQ(text.code, 0) << text.err;
  const std::size_t from = text.out.find("blocks of super-kernels that wait"), end = text.out.find("\n\n", from);
  ASSERT_NE(from, std::string::npos) << text.out;
  expect_golden("cli/golden/super_kernel_waits.txt", text.out.substr(from, end - from) + "\n");
}

TEST(SuperKernelVerbs, ATimelineHasATaskForEveryLaunchAndThread) {
  const ScratchFolder folder;
  const std::string file = (folder / "trace.json").string();
  const CommandResult result = run_cermet(
      "bench model " + demo + " --prompt-tokens 4 -n 2 --repeat 1 --threads 2 --json --super-kernel decode " +
      "--super-kernel-options profile=1 --trace " + file);
  ASSERT_EQ(result.code, 0) << result.err;
  const auto trace = nlohmann::json::parse(content_of(file));
  std::map<double, double> launches;  // of decode passes: ends by starts
  std::map<int, int> tasks;           // by thread
  std::map<int, double> ends;
  std::set<std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M") names.insert(event["args"]["name"]);
    if (event["ph"] == "X" && event["pid"] == 1 && event["tid"] == 2)
      launches[event["ts"].get<double>()] = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["ph"] != "X" || event["pid"] == 1) continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    EXPECT_GE(begin, ends[event["tid"]] - 1e-3) << "tasks of a thread follow each other";
    ends[event["tid"]] = end;
    ++tasks[event["tid"]];
    // A busy machine may hold a thread up between two looks at the clock.
    EXPECT_TRUE(std::ranges::any_of(launches, [&](const auto& launch) {
      return launch.first <= end + 1 && begin <= launch.second + 1;
    })) << "of a launch";
    EXPECT_FALSE(event["args"]["operator"].get<std::string>().empty());
  }
  EXPECT_EQ(tasks[0], 64 + 2 * 62) << "thread 0 has a task for each launch of the prompt and both steps";
  EXPECT_EQ(names.count("super-kernel decode"), 1u);
  EXPECT_EQ(names.count("thread 0"), 1u);
  EXPECT_LE(tasks.size(), 2u);
}

TEST(SuperKernelVerbs, HelpListsEveryOption) {
  const CommandResult help = run_cermet("bench model --help-all");
  for (const char* key : {"stream-fusion(0or1,default1)", "strict-scope-check(bypassorabort,defaultbypass)",
                          "prefetch(", "early-start(", "width(0to1048576,default0)", "debug-sync-all(", "profile("}) {
    std::string flat;  // lines are wrapped
    for (const char c : help.out)
      if (c != '\n' && c != ' ') flat += c;
    EXPECT_NE(flat.find(key), std::string::npos) << key;
  }
}

TEST(SuperKernelVerbs, BisectRegionLooksAtEveryLaunch) {
  const auto json = run_cermet("bisect-region " + demo + " --ids 497,2314,1581 --json").json();
  EXPECT_EQ(json["regions"], 1);
  EXPECT_EQ(json["launches"], 62);
  EXPECT_EQ(json["runs"], 124);
  EXPECT_TRUE(json["culprit"].is_null());
  const CommandResult text = run_cermet(
      "bisect-region " + demo + " --ids 497,2314 --super-kernel 'mlp:*.experts' --super-kernel-options width=2");
  EXPECT_NE(text.out.find("none: every launch leaves the bits"), std::string::npos) << text.out << text.err;
  expect_mistake("bisect-region " + demo, {"--ids"});
  expect_mistake("bisect-region " + demo + " --ids 1 --super-kernel none", {"expected a run with a region", "none"});
  expect_mistake("bisect-region " + demo + " --ids 1 --device null", {"--device", "null"});
  expect_mistake("bisect-region " + demo + " --ids 1 --repeat 0", {"--repeat"});
}

TEST(SuperKernelVerbs, BisectRegionDumpsWhatItCompares) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("cermet.bisect.{}", ::getpid());
  const std::string command =
      "bisect-region " + demo + " --ids 497 --super-kernel 'mlp:*.experts' --dump " + folder.string();
  const auto json = run_cermet(command + " --json").json();
  const auto launches = nlohmann::json::parse(read_text(folder / "launches.json"));
  EXPECT_EQ(json["runs"], 2 * launches.size());
  std::size_t files = 1;
  for (std::size_t l = 0; l < launches.size(); ++l) {
    EXPECT_EQ(launches[l]["same"], true);
    for (std::size_t r = 0; r < launches[l]["results"]; ++r, files += 2) {
      const std::string start = fmt::format("{:04}.{}.", l, r);
      EXPECT_EQ(read_text(folder / (start + "found.npy")), read_text(folder / (start + "expected.npy")));
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {})), files);
  EXPECT_GT(files, 2u);
  expect_mistake(command, {folder.string()});  // it is not empty
  std::filesystem::remove_all(folder);
  expect_mistake("bisect-region " + demo + " --ids 497 --super-kernel none --dump " + folder.string(),
                 {"expected a run with a region"});
  EXPECT_FALSE(std::filesystem::exists(folder)) << "all or nothing";
}

TEST(SuperKernelVerbs, MistakesAreNamed) {
  expect_mistake("run " + demo + " --ids 1 -n 1 --super-kernel all", {"decode, layer, none or NAME:PATTERN", "'all'"});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel-options width=2", {"super-kernel", "'width=2'"});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel decode --super-kernel-options breadth=2",
                 {"width", "\"breadth\""});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel decode --super-kernel-options width=2:width=2",
                 {"width", "once", "twice"});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel 'x:nothing*'", {"'x:nothing*'", "none"});
}

}  // namespace
}  // namespace cermet::test

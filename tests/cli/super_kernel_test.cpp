// --super-kernel on the command line: what it computes, prints and refuses.
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

const std::string demo = CERMET_SOURCE_DIR "/models/demo";

TEST(SuperKernelVerbs, LogitsKeepTheirBits) {
  const std::string command = "logits " + demo + " --ids 497,2314,1581 --json";
  const CommandResult plain = run_cermet(command);
  ASSERT_EQ(plain.code, 0) << plain.err;
  for (const std::string options : {"--super-kernel decode", "--super-kernel layer", "--super-kernel 'mlp:*.experts' --super-kernel-options width=2",
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
  const CommandResult text = run_cermet("bench model " + demo + " --plan --prompt-tokens 4 --super-kernel decode --super-kernel-options profile=1");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("super-kernel decode (profile=1): launches 0 to 63"), std::string::npos)
      << text.out.substr(text.out.size() > 4000 ? text.out.size() - 4000 : 0);
  const auto json = run_cermet("bench model " + demo + " --plan --prompt-tokens 4 --super-kernel layer --json").json();
  EXPECT_EQ(json["super_kernels"]["regions"].size(), 6u);
  EXPECT_EQ(json["super_kernels"]["regions"][0]["name"], "layers.0");
  EXPECT_EQ(json["super_kernels"]["breaks"].size(), 0u);
}

TEST(SuperKernelVerbs, ExplainShowsTheirBlocks) {
  const CommandResult text = run_cermet("explain " + demo + " --text --super-kernel layer");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("super-kernels\nlayers.0"), std::string::npos) << text.out;
}

TEST(SuperKernelVerbs, HelpListsEveryOption) {
  const CommandResult help = run_cermet("bench model --help");
  for (const char* key : {"feed-sync-all=0|1", "stream-fusion=0|1", "strict-scope-check=bypass|abort", "prefetch=0|1", "early-start=0|1",
                          "width=", "debug-sync-all=0|1", "profile=0|1"}) {
    std::string flat;  // lines are wrapped
    for (const char c : help.out)
      if (c != '\n' && c != ' ') flat += c;
    EXPECT_NE(flat.find(key), std::string::npos) << key;
  }
}

TEST(SuperKernelVerbs, MistakesAreNamed) {
  expect_mistake("run " + demo + " --ids 1 -n 1 --super-kernel all", {"decode, layer, none or NAME:PATTERN", "'all'"});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel-options width=2", {"super-kernel", "'width=2'"});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel decode --super-kernel-options breadth=2", {"width", "\"breadth\""});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel decode --super-kernel-options width=2:width=2", {"width", "once", "twice"});
  expect_mistake("logits " + demo + " --ids 1 --super-kernel 'x:nothing*'", {"'x:nothing*'", "none"});
}

}  // namespace
}  // namespace cermet::test

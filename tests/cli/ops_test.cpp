#include "op/operator.hpp"
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

TEST(Ops, ListsEveryOperatorUnderACategory) {
  const auto json = run_cermet("ops --json").json();
  ASSERT_EQ(json["operators"].size(), all_operators().size());
  const std::string text = run_cermet("ops").out;
  for (const auto& op : json["operators"]) {
    EXPECT_NE(text.find("\n  " + op["name"].get<std::string>() + " "), std::string::npos) << op;
    EXPECT_NE(text.find(op["category"].get<std::string>() + "\n"), std::string::npos) << op;
  }
}

/// The example that the page of an operator shows must work as it stands, and some kernel must take it.
TEST(Ops, EveryOperatorHasAPageWhoseExampleRuns) {
  for (const OpDefinition& op : all_operators()) {
    const auto page = run_cermet("ops " + std::string(op.name) + " --json").json();
    EXPECT_EQ(page["name"], op.name);
    EXPECT_EQ(page["inputs"].size(), op.inputs.size()) << op.name;
    const std::string example = page["example"].get<std::string>();
    const CommandResult result = run_cermet("explain op " + std::string(op.name) + " --json --shape '" + example + "'");
    ASSERT_EQ(result.code, 0) << op.name << " " << example << "\n" << result.err;
    EXPECT_TRUE(result.json()["kernel"].is_string()) << op.name << "\n" << result.out;
  }
}

TEST(Ops, PageShowsSchemaSemanticsKernelsAndExample) {
  const std::string page = run_cermet("ops rms_norm").out;
  for (const char* part : {"Semantics\n", "Inputs", "Outputs", "Attributes\n", "weight_offset", "Many-to-Many", "rowwise.rms_norm",
                           "Example\n  cermet explain op rms_norm --shape '"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Ops, ExplainSaysWhatExplainOpDoes) {
  const std::string call = "'x=bf16[8,64] w=bf16[64,64]' --device null:sm_90", text = run_cermet("ops linear --explain " + call).out;
  EXPECT_NE(text.find("gemm.linear.hopper"), std::string::npos) << text;
  EXPECT_EQ(text, run_cermet("explain op linear --shape " + call).out);
}

TEST(Ops, MistakesAreNamed) {
  expect_mistake("ops rmsnorm", {"operator", "rms_norm", "\"rmsnorm\""});
  expect_mistake("ops rms_norm silu", {"silu"});
  expect_mistake("ops --space 'f32[2]'", {"--space", "operator's name"});
  expect_mistake("ops --explain 'f32[2]'", {"--explain", "operator's name"});
  expect_mistake("ops silu --explain 'f32[2]' --space 'f32[2]'", {"--explain: expected it or --space, found both"});
}

}  // namespace
}  // namespace cermet::test

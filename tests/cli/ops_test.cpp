#include <regex>

#include "op/schema/operator.hpp"
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
  for (const char* part : {"Semantics\n", "Inputs", "Outputs", "Attributes\n", "weight_offset", "Many-to-Many",
                           "rowwise.rms_norm", "Example\n  cermet explain op rms_norm --shape '"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Ops, ExplainOpTakesTheExampleOfThePage) {
  const std::string page = run_cermet("ops rms_norm").out, begin = "cermet explain op rms_norm --shape '";
  const std::size_t at = page.find(begin) + begin.size();
  const std::string call = page.substr(at, page.find('\'', at) - at);
  // Each process measures the machine anew.
  const auto without_measured = [](const std::string& text) {
    return std::regex_replace(text, std::regex("[0-9.]+ times float32, measured now"), "");
  };
  EXPECT_EQ(without_measured(run_cermet("explain op rms_norm").out),
            without_measured(run_cermet("explain op rms_norm --shape '" + call + "'").out));
}

TEST(Ops, AFamilyOfKernelsStandsForItsBest) {
  EXPECT_NE(run_cermet("ops linear").out.find("  gemm.linear "), std::string::npos);
  const CommandResult result =
      run_cermet("bench op linear --shape 'x=f32[64,64] w=f32[64,64]' --kernel gemm.linear --seconds 0.01 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["kernel"].get<std::string>().rfind("gemm.linear.", 0), 0u) << result.out;
  expect_mistake("bench op linear --shape 'x=f32[64,64] w=f32[64,64]' --kernel gemm.line",
                 {"--kernel: expected one of"});
}

TEST(Ops, MistakesAreNamed) {
  expect_mistake("ops rmsnorm", {"operator", "rms_norm", "\"rmsnorm\""});
  expect_mistake("ops rms_norm silu", {"silu"});
  expect_mistake("ops silu --explain 'f32[2]'", {"unexpected argument '--explain'; did you mean 'cermet explain op'?"});
  expect_mistake("ops silu --space", {"did you mean 'cermet explain op --space'?"});
}

}  // namespace
}  // namespace cermet::test

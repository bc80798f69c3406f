#include "quant/policy.hpp"

#include "io/safetensors.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {
namespace {

std::string scheme(const Policy& policy, std::string_view module) {
  return std::string(name_of(policy.scheme_of(module)));
}

TEST(Pattern, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("a*", "a"));
  EXPECT_TRUE(matches_pattern("*.experts.*", "model.layers.3.mlp.experts.12.up_proj"));
  EXPECT_TRUE(matches_pattern("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(matches_pattern("model.layers.?.*", "model.layers.3.mlp"));
  EXPECT_FALSE(matches_pattern("model.layers.?.*", "model.layers.13.mlp"));
  EXPECT_FALSE(matches_pattern("a*b", "ab."));
  EXPECT_FALSE(matches_pattern("", "a"));
  const std::string hostile(200, 'a');  // exponential for a matcher that tries every star again
  EXPECT_FALSE(matches_pattern("*a*a*a*a*a*a*a*a*a*a*a*a*b", hostile));
}

TEST(Policy, TheFirstRuleThatMatchesDecides) {
  const Policy policy = Policy::parse("# comment\n\n*.0.* = w8a16 # first\r\n*.mlp.* = fp8_dynamic\n", "p");
  EXPECT_EQ(scheme(policy, "model.layers.0.mlp.up_proj"), "w8a16");
  EXPECT_EQ(scheme(policy, "model.layers.1.mlp.up_proj"), "fp8_dynamic");
  EXPECT_EQ(scheme(policy, "model.layers.1.self_attn.q_proj"), "16bit");
  EXPECT_EQ(policy.rules()[1].line, 4);
}

TEST(Policy, Mistakes) {
  const auto parse = [](std::string_view text) { return [text] { Policy::parse(text, "my.policy"); }; };
  expect_error(Status::invalid_file, {"my.policy:2", "PATTERN = SCHEME", "\"model\""}, parse("* = 16bit\nmodel\n"));
  expect_error(Status::invalid_file, {"my.policy:1", "w8a8_static", "\"int4\""}, parse("* = int4"));
  expect_error(Status::invalid_file, {"my.policy:1", "pattern", "letters", "[0-9]"}, parse("layers.[0-9] = 16bit"));
  expect_error(Status::invalid_file, {"my.policy:1", "pattern"}, parse(" = 16bit"));
  expect_error(Status::invalid_file, {"my.policy", "at least one rule"}, parse("# nothing\n"));
}

TEST(Policy, TheDefaultServesEveryArchitecture) {
  const Policy policy = Policy::standard();
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(references)) {
    const ModelConfig config = load_config(entry.path());
    const std::vector<LinearModule> modules = linear_modules(config);
    policy.check(modules);
    ++models;
    for (const LinearModule& module : modules) {
      using Role = LinearModule::Role;
      const bool stays = module.role == Role::router || module.role == Role::head;
      EXPECT_EQ(scheme(policy, module.name), stays                ? "16bit"
                                             : module.expert >= 0 ? "w8a8_dynamic"
                                                                  : "w8a8_static")
          << entry.path() << " " << module.name;
    }
  }
  EXPECT_GE(models, 6u);
}

TEST(Policy, UniformLeavesRoutersAndHead) {
  const Policy policy = Policy::uniform(*scheme_named("w8a16"));
  policy.check(linear_modules(load_config(demo)));
  EXPECT_EQ(scheme(policy, "model.layers.0.mlp.gate"), "16bit");
  EXPECT_EQ(scheme(policy, "model.layers.0.mlp.gate_proj"), "w8a16");
}

TEST(Policy, RefusesWhatCannotRun) {
  const std::vector<LinearModule> modules = linear_modules(load_config(demo));
  const auto check = [&](std::string_view text) {
    return [text, &modules] { Policy::parse(text, "p").check(modules); };
  };
  expect_error(
      Status::invalid_argument,
      {"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj", "share an input", "w8a16", "16bit"},
      check("*.q_proj = w8a16"));
  expect_error(Status::invalid_argument, {"experts.0.gate_proj", "experts.3.up_proj", "one grouped GEMM"},
               check("*.experts.3.up_proj = w8a8_dynamic\n*.experts.* = 16bit"));
  expect_error(Status::invalid_argument, {"for an expert", "w8a8_static"}, check("*.experts.* = w8a8_static"));
  expect_error(Status::invalid_argument, {"model.layers.0.mlp.gate", "router", "w8a16"}, check("*.mlp.gate = w8a16"));
}

TEST(Policy, RulesThatDecideNothingAreNamed) {
  const std::vector<LinearModule> modules = linear_modules(load_config(demo));
  const std::vector<std::string> unused = Policy::parse("* = 16bit\n*.mpl.* = w8a16\n", "p").unused_rules(modules);
  ASSERT_EQ(unused.size(), 1u);
  EXPECT_EQ(unused[0], "p:2: \"*.mpl.*\" matches no module of this model");
}

TEST(LinearModules, AreTheExpectedTensorsOfRankTwo) {
  for (const auto& entry : std::filesystem::directory_iterator(references)) {
    const ModelConfig config = load_config(entry.path());
    std::vector<std::string> expected, found;
    for (const ExpectedTensor& tensor : expected_tensors(config))
      if (tensor.shape.size() == 2 && tensor.name != "model.embed_tokens.weight")
        expected.push_back(tensor.name + shape_to_string(tensor.shape));
    for (const LinearModule& module : linear_modules(config))
      found.push_back(fmt::format("{}.weight[{}, {}]", module.name, module.rows, module.columns));
    EXPECT_EQ(found, expected) << entry.path();
  }
}

}  // namespace
}  // namespace cermet::test

// The operators of every architecture's graph after rewriting, with their types and attributes: what kernels are chosen
// for.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "graph/rewrite/rule.hpp"
#include "graph/verify.hpp"
#include "model/config.hpp"
#include "model/decoder.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// "2 x layers.#.attention: linear(..) {..}", sorted: nodes of all layers, in no order, under no names of values.
std::string operators_of(const Graph& graph) {
  verify(graph);
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes()) {
    const std::string scope = std::regex_replace(node.scope, std::regex("[0-9]+"), "#");
    ++counts[fmt::format("{}: {}", scope, graph.problem_of(node, {}).to_string())];
  }
  std::string text;
  for (const auto& [line, count] : counts) text += fmt::format("  {} x {}\n", count, line);
  return text;
}

struct Variant {
  const char* name;
  DecoderTypes types;
  std::optional<LinearScheme> scheme;
  Quantization::Format format = Quantization::Format::none;
};

std::vector<Variant> variants() {
  using enum DType;
  const LinearScheme int8{LinearScheme::Weight::int8, LinearScheme::Input::dynamic},
      fp8{LinearScheme::Weight::fp8, LinearScheme::Input::dynamic};
  const LinearScheme fixed{LinearScheme::Weight::int8, LinearScheme::Input::fixed};
  return {{"f32", {}, {}},
          {"bf16 operands, cache and queries", {bf16, bf16, bf16, bf16}, {}},
          {"bf16 weights, int8 cache", {bf16, f32, i8, f32}, {}},
          {"int8", {f32, f32, f32, f32}, int8},
          {"fp8, bf16 operands", {bf16, bf16, bf16, bf16}, fp8},
          {"static int8", {bf16, bf16, bf16, bf16}, fixed, Quantization::Format::compressed_tensors},
          {"static int8 with folded scales", {bf16, bf16, bf16, bf16}, fixed, Quantization::Format::modelslim}};
}

/// Lines of a variant.
std::string operators_of(const ModelConfig& config, const Variant& v, ModelShard shard = {}) {
  Quantization quantization = v.scheme ? quantize_projections(config, *v.scheme) : Quantization{};
  quantization.format = v.format;
  try {
    return fmt::format(
        "{}\n{}", v.name,
        operators_of(
            rewrite(build_decoder(config, v.types, quantization, {8, 16, 2, 32}, shard).graph, rewrite_rules()).graph));
  } catch (const Error& error) {
    return fmt::format("{}\n  {}\n", v.name, error.what());
  }
}

ModelConfig config_named(const char* name) {
  return load_config_file(fmt::format("{}/tests/model/data/config_good/{}.json", CERMET_SOURCE_DIR, name));
}

class DecoderGraphs : public testing::TestWithParam<const char*> {};

TEST_P(DecoderGraphs, HaveTheseOperators) {
  const ModelConfig config = config_named(GetParam());
  std::string text;
  for (const Variant& v : variants()) text += operators_of(config, v);
  expect_golden(fmt::format("model/golden/{}.operators", GetParam()), text);
}

/// The mixtures of the last of two ranks that share experts and gather their rows.
TEST(DecoderGraphsOfRanks, ThatGatherRowsHaveTheseMixtures) {
  const ModelConfig config = config_named("mixtral-window-bf16");
  std::string text;
  for (const Variant& v : variants()) {
    std::istringstream lines(operators_of(config, v, ModelShard::with_own_tokens(1, 2, ExpertExchange::gather, false)));
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("  ") || line.find("experts") != std::string::npos ||
          line.find("padding") != std::string::npos)
        text += line + "\n";
  }
  expect_golden("model/golden/gathered-experts.operators", text);
}

INSTANTIATE_TEST_SUITE_P(Architectures, DecoderGraphs,
                         testing::Values("llama-rope-linear2-f32", "llama-bias-mha-f16-oldspelling",
                                         "mistral-window-headdim-f16", "mixtral-window-bf16", "qwen2-tied-bf16",
                                         "qwen3-mixedwindow-f16", "qwen3moe-mixed-f32-oldspelling",
                                         "gemma2-softcap-window-bf16-oldspelling"),
                         [](const auto& test) {
                           std::string name(test.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cermet

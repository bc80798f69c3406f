#include "quant/auto_policy.hpp"

#include <cmath>

#include "quant/report.hpp"
#include "quant/svg_plot.hpp"
#include "quant/target_quality.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {
namespace {

/// Made-up figures: errors grow with the layer, and expert 0 gets every token.
std::vector<LayerResult> figures(const ModelConfig& config) {
  std::vector<LayerResult> layers(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].layer = static_cast<std::int64_t>(i);
    layers[i].output_error = 1e-3 * static_cast<double>(i + 1);
    layers[i].expert_tokens.assign(static_cast<std::size_t>(config.experts), 0);
    layers[i].expert_tokens[0] = 100;
  }
  for (const LinearModule& module : linear_modules(config)) {
    if (module.role == LinearModule::Role::router || module.role == LinearModule::Role::head) continue;
    LayerResult& layer = layers[static_cast<std::size_t>(module.layer)];
    const double base = 1e-4 * static_cast<double>(module.layer + 1);
    layer.modules.push_back({.name = module.name,
                             .scheme = Policy::standard().scheme_of(module.name),
                             .error = 4 * base,
                             .errors = {{"w8a8_static", 4 * base}, {"w8a8_dynamic", 2 * base}, {"w8a16", base}},
                             .anti_outlier = "smooth",
                             .alpha = 0.5,
                             .absmax_before = 40,
                             .absmax_after = 4,
                             .tokens = module.expert > 0 ? 0 : 100,
                             .fallback = module.expert > 0});
    if (module.expert > 0) layer.modules.back().errors.clear();
  }
  return layers;
}

TEST(AutoPolicy, SpendsTimeWhereItLowersErrorMost) {
  const ModelConfig config = load_config(small_mixture);
  std::vector<SchemeGroup> table = sensitivity_table(config, figures(config));
  ASSERT_EQ(table.size(), static_cast<std::size_t>(3 * config.layers));  // qkv, o, experts
  choose_schemes(table, 1e9);
  for (const SchemeGroup& group : table) EXPECT_EQ(group.chosen, 0u);
  const double whole = total_error(table), quickest = total_seconds(table);
  const Policy loose = policy_of(table);
  loose.check(linear_modules(config));
  EXPECT_EQ(name_of(loose.scheme_of("model.layers.0.self_attn.k_proj")), "w8a8_static");
  EXPECT_TRUE(loose.scheme_of("model.layers.0.mlp.experts.3.down_proj").weight == LinearScheme::Weight::int8);
  EXPECT_EQ(name_of(loose.scheme_of("model.layers.0.mlp.gate")), "16bit");

  double seconds = quickest;
  for (const double part : {0.7, 0.4, 0.1}) {
    choose_schemes(table, part * whole);
    EXPECT_LE(total_error(table), part * whole);
    EXPECT_GT(total_seconds(table), seconds);
    seconds = total_seconds(table);
    policy_of(table).check(linear_modules(config));
  }
  choose_schemes(table, 0);
  EXPECT_EQ(total_error(table), 0);
  EXPECT_TRUE(policy_of(table).scheme_of("model.layers.1.self_attn.o_proj") == LinearScheme{});
}

TEST(AutoPolicy, ASingleStepTakesTheGroupThatGainsMost) {
  std::vector<SchemeGroup> table(2);
  const LinearScheme fixed = *scheme_named("w8a8_static"), real;
  table[0] = {"a", {"a"}, {{fixed, 1.0, 1.0}, {real, 0, 2.0}}, 0};
  table[1] = {"b", {"b"}, {{fixed, 0.9, 1.0}, {real, 0, 1.5}}, 0};  // less error, at half the time
  choose_schemes(table, 1.5);
  EXPECT_EQ(table[0].chosen, 0u);
  EXPECT_EQ(table[1].chosen, 1u);
}

TEST(AutoPolicy, FewerBytesAndQuickerProductsCostLess) {
  const LinearModule module{.name = "m", .rows = 4096, .columns = 4096, .group = "m", .input_group = "m"};
  const auto seconds = [&](const char* scheme) { return predicted_seconds(module, *scheme_named(scheme), 1); };
  EXPECT_LT(seconds("w8a8_static"), seconds("w8a8_dynamic"));
  EXPECT_LT(seconds("w8a8_dynamic"), seconds("w8a16"));
  EXPECT_EQ(seconds("w8a16"), seconds("16bit"));  // dequantized while loading
}

TEST(AutoPolicy, WantsFigures) {
  const ModelConfig config = load_config(small_mixture);
  std::vector<LayerResult> layers = figures(config);
  layers[1].modules.front().errors.erase("w8a16");
  expect_error(Status::invalid_argument, {"model.layers.1.self_attn.q_proj", "w8a16"},
               [&] { sensitivity_table(config, layers); });
  layers.pop_back();
  expect_error(Status::invalid_argument, {"model.layers.", "found none"}, [&] { sensitivity_table(config, layers); });
}

TEST(TargetQuality, StepsBackUntilPerplexityFits) {
  const ModelConfig config = load_config(small_mixture);
  const std::vector<LayerResult> layers = figures(config);
  std::vector<SchemeGroup> table = sensitivity_table(config, layers);
  const double worst = [&] {
    choose_schemes(table, 1e9);
    return total_error(table);
  }();
  Policy current = Policy::standard();
  TargetOptions options{.rise = 0.005, .perplexity_before = 10, .quantize = {}, .perplexity = {}};
  options.quantize = [&](const Policy& policy, int) {
    current = policy;
    return layers;
  };
  // A rise that is steeper than the sum of errors says: 2 % at the worst, with the square root of the errors' share.
  options.perplexity = [&](int) {
    double error = 0;
    for (const SchemeGroup& group : table)
      for (const SchemeOption& option : group.options)
        if (option.scheme == current.scheme_of(group.modules.front())) error += option.error;
    return 10 * (1 + 0.02 * std::sqrt(error / worst));
  };
  const TargetResult result = meet_target(config, options);
  EXPECT_GT(result.attempts.size(), 1u);
  EXPECT_LE(result.attempts.back().perplexity, 10 * 1.005);
  for (std::size_t i = 0; i + 1 < result.attempts.size(); ++i) {
    EXPECT_GT(result.attempts[i].perplexity, 10 * 1.005);
    EXPECT_GT(result.attempts[i].error, result.attempts[i + 1].error);
  }
  EXPECT_EQ(result.policy.text(), policy_of(result.table).text());
  result.policy.check(linear_modules(config));

  options.perplexity = [](int) { return 10.01; };  // 0.1 %: the default will do
  EXPECT_EQ(meet_target(config, options).attempts.size(), 1u);
  options.perplexity = [](int) { return 11.0; };
  expect_error(Status::invalid_argument, {"--target-ppl", "0.5 %", "10 %"}, [&] { meet_target(config, options); });
}

TEST(Report, HasFiguresAndPlots) {
  const ModelConfig config = load_config(small_mixture);
  ReportInput input{.model = "a<b",
                    .machine = "machine",
                    .date = "today",
                    .record = {},
                    .before = {},
                    .after = {},
                    .heldout = "text",
                    .target = "+0.5 %",
                    .choices = {},
                    .attempts = {}};
  input.record = {.policy = "* = w8a8_dynamic\n",
                  .anti_outlier = "auto",
                  .clamp_percentile = 99.9,
                  .prompts = 50,
                  .tokens = 6400,
                  .layers = figures(config),
                  .rounded = {}};
  input.before = {.machine = {},
                  .bytes = 2'000'000,
                  .perplexity = Perplexity{10, 0.1, 500, 1},
                  .prefill_tokens_per_second = 100,
                  .decode_tokens_per_second = 10};
  input.after = {.machine = {},
                 .bytes = 1'000'000,
                 .perplexity = Perplexity{10.05, 0.1, 500, 1},
                 .prefill_tokens_per_second = 200,
                 .decode_tokens_per_second = 18};
  input.choices = sensitivity_table(config, input.record.layers);
  const std::string markdown = markdown_report(input), html = html_report(input);
  for (const std::string& text : {markdown, html})
    for (const char* fragment : {"2.00x", "+0.50 %", "1.80x", "layer 0 q, k, v", "experts 1, 2, 3, ",
                                 "model.layers.0.mlp.experts", "* = w8a8_dynamic"})
      EXPECT_NE(text.find(fragment), std::string::npos) << fragment;
  EXPECT_NE(html.find("a&lt;b"), std::string::npos);
  std::size_t plots = 0;
  for (std::size_t at = html.find("<svg"); at != std::string::npos; at = html.find("<svg", at + 1)) ++plots;
  EXPECT_EQ(plots, 3u);
  EXPECT_EQ(html.find("http-equiv"), std::string::npos);
  for (const char* outside : {"<script", "<link", "src="}) EXPECT_EQ(html.find(outside), std::string::npos);
}

TEST(Plot, LogarithmicBarsAreInProportionToExponents) {
  const std::string svg = to_svg(BarPlot{.title = "t",
                                         .unit = "",
                                         .labels = {"a", "b", "c"},
                                         .ticks = {},
                                         .series = {{"s", {1e-4, 1e-2, 0}}},
                                         .logarithmic = true});
  EXPECT_NE(svg.find("a: 0.0001"), std::string::npos);
  EXPECT_NE(svg.find("height=\"0.0\" fill"), std::string::npos);  // nothing to draw for 0
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(to_svg(BarPlot{}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace cermet::test

// What every architecture launches on a GPU like an H200, one token and many: kernels, programs and how launches are
// divided, with no compiler.
#include <filesystem>

#include "fuse/plan.hpp"
#include "fuse/split_gates.hpp"
#include "fuse/split_sums.hpp"
#include "graph/rewrite/rule.hpp"
#include "model/decoder.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

std::string launches_of(const Graph& whole, std::int64_t tokens, const Target* target) {
  SymbolValues maximum;
  for (const char* symbol : {"T", "B", "R"}) maximum.set(Symbol(symbol), tokens);
  const auto takes = [](const Region& region) { return is_taken(region); };
  const Graph graph = split_sums(split_gates(whole, maximum, target, takes).graph, maximum, target, takes).graph;
  const auto groups =
      plan_fusion(graph, maximum, target, {[&](OpKind anchor) { return fuses(anchor, target); }, takes});
  std::string text;
  for (const FusionGroup& group : groups) {
    const auto [kernel, config] = select_kernel(group.region);
    NullLaunches null(group.region, *kernel, config);
    text +=
        fmt::format("  {} {}: {}\n", graph.nodes()[static_cast<std::size_t>(group.anchor())].scope, kernel->name,
                    launches_text(null.launch(null.inputs(), null.outputs()), kernel->programs(group.region, config)));
  }
  return text;
}

TEST(Launches, OfEveryArchitectureAreWhatTheyWere) {
  const auto device = make_null_device(90);
  std::string text;
  std::vector<std::filesystem::path> configs{source / "bench/models/llama-3.2-1b.json"};
  for (const auto& entry : std::filesystem::directory_iterator(source / "tests/model/data/reference"))
    configs.push_back(entry.path() / "config.json");
  std::sort(configs.begin(), configs.end());
  for (const std::filesystem::path& path : configs) {
    ModelConfig config = load_config_file(path);
    config.decoder.layers.resize(std::min<std::size_t>(config.decoder.layers.size(), 2));
    for (const bool quantized : {false, true})
      for (const std::int64_t tokens : {1, 32}) {
        const DType operands = tokens == 1 ? DType::f32 : DType::bf16;
        const Quantization scheme =
            quantized ? quantize_projections(config, {LinearScheme::Weight::int8, LinearScheme::Input::dynamic})
                      : Quantization{};
        const DecoderGraph decoder =
            build_decoder(config, {DType::bf16, operands, DType::bf16, operands}, scheme,
                          {.blocks = 64, .pages_per_sequence = 16, .table_positions = 256, .most_tokens = tokens});
        text +=
            fmt::format("{}{}, {} tokens\n{}", std::filesystem::relative(path, source).string(), quantized ? " i8" : "",
                        tokens, launches_of(rewrite(decoder.graph, rewrite_rules()).graph, tokens, device->target()));
      }
  }
  expect_golden("model/golden/launches.txt", text);
}

}  // namespace
}  // namespace cermet

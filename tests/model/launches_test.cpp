// What every architecture launches on a GPU like an H200, one token and many: kernels, programs and how launches are divided, with no compiler.
#include <filesystem>

#include "fuse/prologue.hpp"
#include "model/decoder.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

const std::filesystem::path source = CERMET_SOURCE_DIR;

std::string launches_of(const Graph& graph, std::int64_t tokens, const Target* target) {
  SymbolValues maximum;
  for (const char* symbol : {"T", "B", "R"}) maximum.set(symbol_id(symbol), tokens);
  const auto problem_of = [&](const Node& node) {
    Problem problem = graph.problem_of(node, maximum);
    problem.target = target;
    return problem;
  };
  const auto chain_of = [&](const Node& first, const Node& product) {
    Problem problem = problem_of(product);
    problem.prologue = std::make_shared<const Problem>(problem_of(first));
    return problem;
  };
  const auto groups = fuse_prologues(graph, plan_fusion(graph),
                                     [&](const Node& first, const Node& product) { return explain_selection(chain_of(first, product)).kernel != nullptr; });
  std::string text;
  for (const FusionGroup& group : groups) {
    const auto node = [&](std::int32_t n) -> const Node& { return graph.nodes()[static_cast<std::size_t>(n)]; };
    const Node& last = node(group.nodes.back());
    const Problem problem = group.nodes.size() == 2 ? chain_of(node(group.nodes.front()), last) : problem_of(last);
    const Kernel& kernel = select_kernel(problem);
    NullLaunches null(problem, kernel);
    std::vector<TensorView> inputs, outputs;
    for (const std::int32_t n : group.nodes)
      for (std::size_t i = 0; i < node(n).inputs.size(); ++i) {
        if (group.nodes.size() == 2 && n == group.nodes.back() && i == 0) continue;
        const ValueId id = node(n).inputs[i];
        inputs.push_back(id ? null.view(graph.type(id)) : TensorView());
      }
    for (const ValueId id : last.outputs) outputs.push_back(null.view(graph.type(id)));
    if (group.nodes.size() == 2)
      for (std::size_t o = 1; o < node(group.nodes.front()).outputs.size(); ++o) outputs.push_back(null.view(graph.type(node(group.nodes.front()).outputs[o])));
    text += fmt::format("  {} {}: {}\n", last.scope, kernel.name, launches_text(null.launch(inputs, outputs), kernel.programs(problem)));
  }
  return text;
}

TEST(Launches, OfEveryArchitectureAreWhatTheyWere) {
  const auto device = make_null_device(90);
  std::string text;
  std::vector<std::filesystem::path> configs{source / "bench/models/llama-3.2-1b.json"};
  for (const auto& entry : std::filesystem::directory_iterator(source / "tests/model/data/reference")) configs.push_back(entry.path() / "config.json");
  std::sort(configs.begin(), configs.end());
  for (const std::filesystem::path& path : configs) {
    ModelConfig config = load_config_file(path);
    config.layers = std::min<std::int64_t>(config.layers, 2);
    for (const bool quantized : {false, true})
      for (const std::int64_t tokens : {1, 32}) {
        const DType operands = tokens == 1 ? DType::f32 : DType::bf16;
        const Quantization scheme = quantized ? quantize_projections(config, {LinearScheme::Weight::int8, LinearScheme::Input::dynamic}) : Quantization{};
        const DecoderGraph decoder = build_decoder(config, {DType::bf16, operands, DType::bf16, operands}, scheme, {64, 16, 16, 256});
        text += fmt::format("{}{}, {} tokens\n{}", std::filesystem::relative(path, source).string(), quantized ? " i8" : "", tokens,
                            launches_of(decoder.graph, tokens, device->target()));
      }
  }
  expect_golden("model/golden/launches.txt", text);
}

}  // namespace
}  // namespace cermet

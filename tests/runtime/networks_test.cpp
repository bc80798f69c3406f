// Into how many blocks whole image networks are fused, and what goes through memory between them.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text.hpp"
#include "kernel/cpu/isa.hpp"
#include "runtime/record.hpp"
#include "runtime/session.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// Inverted bottlenecks as exporters write them, channels in front.
class Network {
 public:
  /// `squeezes`: with squeeze and excitation and SiLU in place of bounds.
  explicit Network(bool squeezes) : squeezes_(squeezes) {
    x_ = graph_.add_input("image", {DType::f32, {1, 3, 224, 224}});
    channels_ = 3;
  }

  void convolve(std::int64_t outputs, std::int64_t taps, std::int64_t stride, std::int64_t group) {
    const std::int64_t pad = taps / 2;
    x_ = graph_.apply(OpKind::conv, {x_, constant({outputs, channels_ / group, taps, taps}), constant({outputs})},
                      {{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}, {"group", group}});
    channels_ = outputs;
  }

  void activate() { x_ = squeezes_ ? silu(x_) : graph_.apply(OpKind::clip, {x_}, {{"low", 0.0}, {"high", 6.0}}); }

  void bottleneck(std::int64_t expansion, std::int64_t taps, std::int64_t stride, std::int64_t outputs) {
    const std::int64_t inputs = channels_, expanded = expansion * inputs;
    const ValueId before = x_;
    if (expansion > 1) convolve(expanded, 1, 1, 1), activate();
    convolve(expanded, taps, stride, expanded);
    activate();
    if (squeezes_) squeeze(inputs / 4);
    convolve(outputs, 1, 1, 1);
    if (stride == 1 && inputs == outputs) x_ = graph_.apply(OpKind::add, {x_, before});
  }

  Graph classify(std::int64_t features) {
    convolve(features, 1, 1, 1);
    activate();
    const ValueId mean = graph_.apply(OpKind::reduce_mean, {x_}, {{"axes", Ints{2, 3}}, {"keepdims", true}});
    const ValueId flat = graph_.apply(OpKind::reshape, {mean}, {{"shape", Ints{1, features}}});
    graph_.add_output("classes", graph_.apply(OpKind::linear, {flat, constant({1000, features}), constant({1000})}));
    return std::move(graph_);
  }

 private:
  ValueId constant(const Dims& dims) {
    return graph_.add_constant(fmt::format("w{}", constants_++), {DType::f32, dims});
  }
  ValueId silu(ValueId x) { return graph_.apply(OpKind::mul, {x, graph_.apply(OpKind::sigmoid, {x})}); }

  void squeeze(std::int64_t few) {
    const ValueId image = x_;
    const std::int64_t channels = channels_;
    x_ = graph_.apply(OpKind::reduce_mean, {image}, {{"axes", Ints{2, 3}}, {"keepdims", true}});
    convolve(few, 1, 1, 1);
    x_ = silu(x_);
    convolve(channels, 1, 1, 1);
    x_ = graph_.apply(OpKind::mul, {graph_.apply(OpKind::sigmoid, {x_}), image});
  }

  Graph graph_;
  bool squeezes_;
  ValueId x_;
  std::int64_t channels_ = 0;
  int constants_ = 0;
};

struct Stage {
  std::int64_t expansion, taps, stride, outputs, times;
};

Graph network_of(bool squeezes, std::initializer_list<Stage> stages, std::int64_t features) {
  Network network(squeezes);
  network.convolve(32, 3, 2, 1);
  network.activate();
  for (const Stage& stage : stages)
    for (std::int64_t i = 0; i < stage.times; ++i)
      network.bottleneck(stage.expansion, stage.taps, i == 0 ? stage.stride : 1, stage.outputs);
  return network.classify(features);
}

Graph efficientnet_b0() {
  return network_of(true,
                    {{1, 3, 1, 16, 1},
                     {6, 3, 2, 24, 2},
                     {6, 5, 2, 40, 2},
                     {6, 3, 2, 80, 3},
                     {6, 5, 1, 112, 3},
                     {6, 5, 2, 192, 4},
                     {6, 3, 1, 320, 1}},
                    1280);
}
Graph mobilenet_v2() {
  return network_of(false,
                    {{1, 3, 1, 16, 1},
                     {6, 3, 2, 24, 2},
                     {6, 3, 2, 32, 3},
                     {6, 3, 2, 64, 4},
                     {6, 3, 1, 96, 3},
                     {6, 3, 2, 160, 3},
                     {6, 3, 1, 320, 1}},
                    1280);
}

/// Blocks of each kind, and bytes of the values between them.
std::string plan_of(const Graph& graph, FusionMode mode) {
  const Context context(ContextOptions{.device = "null", .threads = 2});
  Context own = context.with_own_stream();
  std::vector<CompileRecord> records;
  const Session session(graph, own, [](const std::string&, std::int64_t, const TensorView&) {},
                        {.maximum = {}, .skip = {}, .fusion = {.mode = mode, .records = &records}});
  const CompileRecord& record = records.at(0);
  std::map<std::string, int> kinds;
  for (std::size_t g = 0; g < record.groups.size(); ++g)
    ++kinds[fmt::format("{}: {}", record.blocks[g].choice.kernel->name, record.groups[g].region.operators())];
  std::string text = fmt::format("  {}: {} blocks, {:.2f} MiB between them\n", name_of(mode), record.groups.size(),
                                 static_cast<double>(record.memory.total) / (1 << 20));
  if (mode == FusionMode::full)
    for (const auto& [kind, count] : kinds) text += fmt::format("    {} {}\n", count, kind);
  return text;
}

/// Operators of each block.
std::vector<std::string> blocks_of(const Graph& graph, FusionMode mode, const char* device = "null") {
  const Context context(ContextOptions{.device = device, .threads = 1});
  Context own = context.with_own_stream();
  std::vector<CompileRecord> records;
  const Session session(graph, own, [](const std::string&, std::int64_t, const TensorView&) {},
                        {.maximum = {}, .skip = {}, .fusion = {.mode = mode, .records = &records}});
  std::vector<std::string> blocks;
  for (const FusionGroup& group : records.at(0).groups) blocks.push_back(group.region.operators());
  return blocks;
}

/// A product of single pixels, applied to an image that `reader` reads.
std::vector<std::string> blocks_of_gate(const std::string& reader, FusionMode mode) {
  const Graph graph = parse_graph(R"(graph g {
  input %p : f32[1, 1, 1, 8]
  input %x : f32[1, 7, 7, 32]
  constant %w : f32[32, 8, 1, 1]
  constant %v : f32[16, 32, 1, 1]
  %c = conv(%p, %w) {layout = "nhwc"} : f32[1, 1, 1, 32]
  %s = sigmoid(%c) : f32[1, 1, 1, 32]
  %m = mul(%s, %x) : f32[1, 7, 7, 32]
)" + reader + "\n  output y = %y\n}");
  return blocks_of(graph, mode);
}

/// What a product would make larger waits for the one that reads it, where the mode lets a kernel compute it there.
TEST(Networks, ValuesGrowWhereTheyAreRead) {
  using Blocks = std::vector<std::string>;
  const std::string conv = "  %y = conv(%m, %v) {layout = \"nhwc\"} : f32[1, 7, 7, 16]",
                    pool = "  %y = reduce_max(%m) {axes = [1]} : f32[1, 7, 32]";
  EXPECT_EQ(blocks_of_gate(conv, FusionMode::full), (Blocks{"conv + sigmoid", "mul + conv"}));
  EXPECT_EQ(blocks_of_gate(conv, FusionMode::published), (Blocks{"conv + sigmoid + mul", "conv"}));
  EXPECT_EQ(blocks_of_gate(pool, FusionMode::full), (Blocks{"conv + sigmoid + mul", "reduce_max"}));
}

/// Graphs whose one pass graph/rewrite/derive/ derives, as tests/graph/golden/derive says.
void expect_one_block_each(const char* device) {
  for (const std::string name : {"softmax", "logsumexp", "euclidean_norm", "norm_quant"}) {
    const Graph graph = parse_graph(read_text(CERMET_SOURCE_DIR "/tests/graph/golden/derive/" + name + ".graph"));
    const std::vector<std::string> blocks = blocks_of(graph, FusionMode::full, device);
    EXPECT_EQ(blocks.size(), 1u) << name << ": " << fmt::format("{}", fmt::join(blocks, "; "));
    EXPECT_GT(graph.nodes().size(), 3u) << name;
  }
}
TEST(Networks, DerivedReductionsAreOneBlock) { expect_one_block_each("null"); }
TEST(LongNetworks, DerivedReductionsAreOneBlockOnAGpu) { expect_one_block_each("null:sm_90"); }

TEST(Networks, BlocksAreNotMoreThanTheyWere) {
  cpu::force_isa(std::min(cpu::Isa::avx512_bf16,
                          cpu::supported_isas().back()));  // tiles take some products, on machines that have them
  std::string text;
  for (const auto& [name, graph] :
       {std::pair("EfficientNet-B0", efficientnet_b0()), std::pair("MobileNetV2", mobilenet_v2())}) {
    text += fmt::format("{}\n", name);
    for (const FusionMode mode : {FusionMode::none, FusionMode::published, FusionMode::full})
      text += plan_of(graph, mode);
  }
  cpu::force_isa(cpu::supported_isas().back());
  expect_golden("runtime/golden/networks.txt", text);
}

}  // namespace
}  // namespace cermet

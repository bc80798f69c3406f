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

/// ResNet-50 as frameworks build it: every batch normalization is computed of its four weights.
class Resnet {
 public:
  Graph graph() {
    x_ = graph_.add_input("image", {DType::f32, {1, 3, 224, 224}});
    epsilon_ = graph_.add_constant("epsilon", TensorData::of<float>({DType::f32, {}}, {1e-5f}));
    x_ = relu(normalized(x_, 64, 7, 2));
    const Ints two{2, 2}, one{1, 1, 1, 1};
    x_ = graph_.apply(OpKind::max_pool, {x_}, {{"kernel", Ints{3, 3}}, {"strides", two}, {"pads", one}});
    for (const auto& [width, times, stride] : {std::array{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}})
      for (int i = 0; i < times; ++i) {
        const ValueId before = i == 0 ? normalized(x_, 4 * width, 1, stride) : x_;
        x_ = relu(normalized(relu(normalized(x_, width, 1, 1)), width, 3, i == 0 ? stride : 1));
        x_ = relu(graph_.apply(OpKind::add, {normalized(x_, 4 * width, 1, 1), before}));
      }
    x_ = graph_.apply(OpKind::reduce_mean, {x_}, {{"axes", Ints{2, 3}}});
    graph_.add_output("classes", graph_.apply(OpKind::linear, {x_, weight({1000, 2048}), weight({1000})}));
    return std::move(graph_);
  }

 private:
  ValueId weight(const Dims& dims) { return graph_.add_constant(fmt::format("w{}", weights_++), {DType::f32, dims}); }
  ValueId relu(ValueId x) { return graph_.apply(OpKind::relu, {x}); }
  ValueId normalized(ValueId x, std::int64_t outputs, std::int64_t taps, std::int64_t stride) {
    const std::int64_t pad = taps / 2;
    const Dim inputs = graph_.type(x).dims[1];
    x = graph_.apply(OpKind::conv, {x, weight({outputs, inputs, taps, taps})},
                     {{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}});
    const ValueId mean = weight({outputs}), variance = weight({outputs}), gamma = weight({outputs}),
                  beta = weight({outputs});
    const ValueId deviation = graph_.apply(OpKind::sqrt, {graph_.apply(OpKind::add, {variance, epsilon_})});
    const ValueId scale = graph_.apply(OpKind::div, {gamma, deviation});
    const ValueId shift = graph_.apply(OpKind::sub, {beta, graph_.apply(OpKind::mul, {mean, scale})});
    const auto channels = [&](ValueId v) { return graph_.apply(OpKind::reshape, {v}, {{"shape", Ints{-1, 1, 1}}}); };
    x = graph_.apply(OpKind::mul, {x, channels(scale)});
    return graph_.apply(OpKind::add, {x, channels(shift)});
  }

  Graph graph_;
  ValueId x_, epsilon_;
  int weights_ = 0;
};

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

/// As many as of an ONNX file, whose exporter folded the normalizations.
TEST(Networks, BatchNormalizationsOfWeightsAreFolded) {
  const Context context(ContextOptions{.device = "null", .threads = 1});
  Context own = context.with_own_stream();
  const auto launches = [&](const std::vector<std::string>& skip) {
    return Session(Resnet().graph(), own, [](const std::string&, std::int64_t, const TensorView&) {},
                   {.maximum = {}, .skip = skip})
        .executable()
        .steps()
        .size();
  };
  EXPECT_EQ(launches({}), 55u);
  EXPECT_GT(launches({"fold-constants"}), 150u);
}

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

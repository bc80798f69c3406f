// Graphs of tens of thousands of nodes, as imported models have them: every step of compilation grows with the graph and not with its square.
#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "runtime/compile.hpp"
#include "tests/model/plugin.hpp"

namespace cermet {
namespace {

constexpr int nodes_per_layer = 10;

/// Layers with a residual, a stacked projection that is split, reshapes that cost nothing, products and elementwise operators.
Graph layered_graph(int layers) {
  std::string text = "graph large {\n input %x0 : f32[T, 16]\n constant %norm : f32[16]\n constant %up : f32[48, 16]\n constant %down : f32[16, 16]\n";
  for (int i = 0; i < layers; ++i)
    text += fmt::format(
        R"( %n{0} = rms_norm(%x{0}, %norm) : f32[T, 16]  // layers.{0}
 %u{0} = linear(%n{0}, %up) : f32[T, 48]  // layers.{0}
 %a{0}, %b{0}, %c{0} = split(%u{0}) {{axis = -1, sizes = [16, 16, 16]}} : f32[T, 16], f32[T, 16], f32[T, 16]  // layers.{0}
 %h{0} = reshape(%a{0}) {{shape = [0, 4, 4]}} : f32[T, 4, 4]  // layers.{0}
 %s{0} = silu(%h{0}) : f32[T, 4, 4]  // layers.{0}
 %f{0} = reshape(%s{0}) {{shape = [0, 16]}} : f32[T, 16]  // layers.{0}
 %m{0} = mul(%f{0}, %b{0}) : f32[T, 16]  // layers.{0}
 %g{0} = add(%m{0}, %c{0}) : f32[T, 16]  // layers.{0}
 %d{0} = linear(%g{0}, %down) : f32[T, 16]  // layers.{0}
 %x{1} = add(%x{0}, %d{0}) : f32[T, 16]  // layers.{0}
)",
        i, i + 1);
  return parse_graph(text + fmt::format(" output y = %x{}\n}}", layers));
}

/// Seconds of each step, by name.
std::vector<CompileStep> compiled(int layers, const std::string& device_name) {
  ThreadPool pool(1);
  const auto device = make_device(device_name);
  const auto stream = device->target() ? device->make_stream() : nullptr;
  std::optional<ProgramStore> programs;
  CompileOptions options;
  if (stream) {
    programs.emplace(*device);
    options.queue = {device.get(), stream.get(), &*programs};
  }
  options.maximum.set(symbol_id("T"), 4);
  WeightStore weights([](const std::string&, std::int64_t, const TensorView&) {}, pool, options.queue);
  std::vector<CompileStep> report;
  const Graph graph = layered_graph(layers);
  EXPECT_EQ(graph.nodes().size(), static_cast<std::size_t>(layers * nodes_per_layer));
  const auto start = std::chrono::steady_clock::now();
  compile(graph, *device, weights, pool, options, &report);
  report.push_back({"all, with verification", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), ""});
  return report;
}

class LargeGraph : public testing::TestWithParam<std::string> {};

TEST_P(LargeGraph, CompilesInTime) {
  if (GetParam().starts_with("null:"))
    if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  compiled(1, GetParam());  // kernels come from the cache from now on
  for (const CompileStep& step : compiled(2000, GetParam())) {
    std::printf("  %-24s %6.3f s  %s\n", step.name.c_str(), step.seconds, step.note.c_str());
    EXPECT_LT(step.seconds, 5) << step.name;  // about half a second; a generous bound, because machines are shared
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LargeGraph, testing::Values("cpu", "null:sm_90"), [](const auto& info) { return info.param == "cpu" ? "cpu" : "cuda"; });

}  // namespace
}  // namespace cermet

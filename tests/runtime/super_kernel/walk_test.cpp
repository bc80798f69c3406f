// Super-kernels of compiled graphs: the CPU walks them with the same bits, and walks of GPUs' plans hold.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/session.hpp"
#include "runtime/super_kernel/mark.hpp"
#include "runtime/super_kernel/reference_page.hpp"
#include "runtime/super_kernel/report.hpp"
#include "tests/runtime/graph_harness.hpp"
#include "tests/runtime/super_kernel/walked_step.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

const std::string chain_text =
    "graph chain {\n  symbol T : 0..64\n  input %x : f32[T, 64]\n  constant %w : f32[128, 64]\n  constant %v : f32[64, "
    "128]\n  constant %g : f32[64]\n"
    "  %a = rms_norm(%x, %g) : f32[T, 64]  // layers.0.norm\n  %b = linear(%a, %w) : f32[T, 128]  // layers.0.up\n"
    "  %c = gelu(%b) : f32[T, 128]  // layers.0.act\n  %d = linear(%c, %v) : f32[T, 64]  // layers.0.down\n  %e = "
    "add(%d, %x) : f32[T, 64]  // layers.0\n"
    "  %f = rms_norm(%e, %g) : f32[T, 64]  // layers.1.norm\n  %h = softmax(%f) : f32[T, 64]  // layers.1.weights\n  "
    "%i = add(%h, %e) : f32[T, 64]\n  output y "
    "= %i\n}\n";

/// Bytes of the result for T rows, and the super-kernels.
struct Chain {
  std::vector<std::byte> bytes;
  std::string regions;
};
Chain run_chain(const SuperKernelSelection& selection, std::int64_t tokens, int threads = 3,
                FusionMode mode = FusionMode::full) {
  Context context({"cpu", threads});
  SessionOptions options;
  options.maximum.set(Symbol("T"), 64);
  options.fusion.mode = mode;
  options.fusion.super_kernel = selection;
  Session session(parse_graph(chain_text), context, load_by_name, options);
  OwnedTensor x(DType::f32, {tokens, 64});
  fill_by_name("x", x.view);
  session.bind("x", x.view);
  session.run();
  const TensorView y = session.output("y");
  Chain run;
  run.bytes.assign(y.as<std::byte>(), y.as<std::byte>() + dense_bytes(y.dtype, y.shape));
  if (const SuperFormation* formation = session.executable().super_kernels())
    for (const SuperRegion& region : formation->regions)
      run.regions += fmt::format("{} {}-{};", region.name, region.first_launch, region.end_launch);
  return run;
}

TEST(SuperKernelWalk, GivesTheSameBits) {
  for (const FusionMode mode : {FusionMode::none, FusionMode::full})
    for (const std::int64_t tokens : {0, 1, 2, 17, 64}) {
      const Chain plain = run_chain({}, tokens, 3, mode);
      EXPECT_EQ(plain.regions, "");
      for (const std::string options :
           {"", "width=2", "width=1", "debug-sync-all=1", "early-start=0:stream-fusion=0", "prefetch=0"})
        for (const std::string select : {"decode", "layer", "act:*.act", "b:b"}) {
          const Chain walked = run_chain({select, options}, tokens, 3, mode);
          EXPECT_EQ(walked.bytes, plain.bytes) << select << " " << options << ", " << tokens << " rows";
          EXPECT_EQ(walked.regions.empty(), tokens == 0) << select;
        }
    }
}

TEST(SuperKernelWalk, SelectionsNameTheirRegions) {
  EXPECT_EQ(run_chain({"decode", ""}, 4, 1, FusionMode::none).regions, "decode 0-8;");
  EXPECT_EQ(run_chain({"layer", ""}, 4, 1, FusionMode::none).regions, "layers.0 0-5;layers.1 5-7;");
  EXPECT_EQ(run_chain({"norms:*norm", ""}, 4, 1, FusionMode::none).regions, "norms 0-1;norms 5-6;");
  EXPECT_EQ(run_chain({"last:i", ""}, 4, 1, FusionMode::none).regions, "last 7-8;") << "by its result";
  EXPECT_EQ(run_chain({"none", ""}, 4, 1, FusionMode::none).regions, "");
}

TEST(SuperKernelSelection, WrongOnesAreRefused) {
  const auto error = [](const SuperKernelSelection& selection) { return error_text([&] { run_chain(selection, 1); }); };
  EXPECT_EQ(error({"all", ""}), "super-kernel: expected decode, layer, none or NAME:PATTERN, found 'all'");
  EXPECT_EQ(error({":x", ""}), "super-kernel: expected decode, layer, none or NAME:PATTERN, found ':x'");
  EXPECT_EQ(error({"x:", ""}), "super-kernel: expected decode, layer, none or NAME:PATTERN, found 'x:'");
  EXPECT_EQ(error({"", "width=2"}), "super-kernel options: expected a super-kernel beside them, found 'width=2' alone");
  EXPECT_EQ(error({"decode", "width=two"}), "super-kernel option width: expected 0 to 1048576, found \"two\"");
  EXPECT_EQ(error({"x:layers.7.*", ""}),
            "super-kernel: expected 'x:layers.7.*' to fit a node of graph 'chain', found none among 8");
}

TEST(SuperKernelSelection, LeavesTheBuildersMarks) {
  Graph graph = parse_graph(
      "graph g {\n  super_kernel own\n  input %x : f32[4]\n  %a = neg(%x) : f32[4] in own\n  %b = neg(%a) : f32[4] "
      "outside\n  %c = neg(%b) : f32[4]\n  output "
      "y = %c\n}");
  mark_super_kernels(graph, {"decode", "width=3"});
  EXPECT_EQ(graph.nodes()[0].super_kernel, 0);
  EXPECT_EQ(graph.nodes()[1].super_kernel, Node::excluded);
  EXPECT_EQ(graph.nodes()[2].super_kernel, 1);
  EXPECT_EQ(graph.super_kernels()[1], (SuperKernel{"decode", "width=3"}));
  mark_super_kernels(graph, {"none", ""});
  for (const Node& node : graph.nodes()) EXPECT_EQ(node.super_kernel, Node::unmarked);
}

TEST(SuperKernelSelection, PatternsHaveStars) {
  EXPECT_TRUE(fits_pattern("layers.0.mlp", "layers.*.mlp"));
  EXPECT_TRUE(fits_pattern("", "*"));
  EXPECT_TRUE(fits_pattern("aXbXb", "a*Xb"));
  EXPECT_TRUE(fits_pattern("abc", "abc**"));
  EXPECT_FALSE(fits_pattern("abc", "ab"));
  EXPECT_FALSE(fits_pattern("abc", "b*"));
  EXPECT_FALSE(fits_pattern("ac", "a*b*c"));
}

TEST(SuperKernelReference, PageIsUpToDate) {
  expect_golden("../docs/reference/super-kernels.md", super_kernel_reference_markdown());
}

/// A graph on a GPU that is not there: its regions are walked without their work in many orders of blocks.
void expect_walks_hold(const std::string& name, const std::string& options) {
  Context context({"null:sm_90", 1});
  Batch batch({11, 5}, {3, 1});
  SessionOptions session_options;
  for (const char* symbol : {"T", "B", "R"}) session_options.maximum.set(Symbol(symbol), 16);
  session_options.fusion.super_kernel = {"decode", options};
  const Graph graph = test_graph(name);
  Session session(graph, context, load_by_name, session_options);
  for (const Value& value : graph.values())
    if (value.kind == ValueKind::input) session.executable().bind(value.name, batch.inputs.at(value.name).view);
  session.executable().run(batch.symbols);
  const SuperFormation* formation = session.executable().super_kernels();
  ASSERT_NE(formation, nullptr);
  EXPECT_TRUE(std::ranges::any_of(
      formation->regions, [](const SuperRegion& region) { return region.end_launch - region.first_launch > 1; }))
      << name << ": launches that wait for each other";
  const Plan& plan = session.executable().plan();
  for (const SuperRegion& region : formation->regions) {
    const Needs needs =
        region_needs(plan, region.first_launch, region.end_launch - region.first_launch, goes_in_turn(region.options));
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      EXPECT_EQ(walk_in_any_order(plan, 1 + static_cast<std::uint32_t>(seed * 7), seed, needs, region.first_launch), "")
          << name << ", " << region.name;
  }
  EXPECT_NE(super_kernel_text(session.executable()).find("super-kernel decode"), std::string::npos);
}

TEST(SuperKernelPlans, WalksOfCompiledGraphsHold) {
  for (const std::string name : {"dense", "experts"})
    for (const std::string options : {"", "stream-fusion=0"}) expect_walks_hold(name, options);
}

}  // namespace
}  // namespace cermet

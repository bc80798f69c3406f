// What a compilation says that it did is what its executable runs.
#include "runtime/record.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "runtime/session.hpp"
#include "tests/runtime/graph_harness.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

constexpr const char* recorded_network = R"(graph g {
  input %x : f32[4, 8]
  constant %w : f32[8, 8]
  constant %bias : f32[8]
  %a = linear(%x, %w) : f32[4, 8]
  %b = add(%a, %bias) : f32[4, 8]
  %c = silu(%b) : f32[4, 8]
  %d = reshape(%c) {shape = [8, 4]} : f32[8, 4]
  %e = softmax(%d) : f32[8, 4]
  output y = %e
})";

CompileRecord record_in(FusionMode mode) {
  const Context context(ContextOptions{.device = "null", .threads = 1});
  Context own = context.with_own_stream();
  std::vector<CompileRecord> records;
  const Session session(parse_graph(recorded_network), own, load_by_name,
                        {.maximum = {}, .skip = {}, .fusion = {.mode = mode, .records = &records}});
  EXPECT_EQ(records.size(), 1u);
  const CompileRecord& record = records.at(0);
  EXPECT_EQ(record.groups.size(), session.executable().steps().size());
  EXPECT_EQ(record.blocks.size(), record.groups.size());
  for (std::size_t g = 0; g < record.groups.size(); ++g) {
    EXPECT_EQ(record.blocks[g].choice.kernel->name, session.executable().steps()[g].kernel);
    EXPECT_EQ(record.groups[g].region.to_string(), session.executable().steps()[g].region.to_string());
    EXPECT_GT(record.blocks[g].modelled_seconds, 0);
    EXPECT_EQ(record.blocks[g].work.bytes, cost_of(record.groups[g].region).bytes);
  }
  EXPECT_EQ(record.nodes_before, 5u);
  EXPECT_EQ(record.mode, mode);
  return record;
}

TEST(CompileRecord, SaysWhatAModeDid) {
  const CompileRecord none = record_in(FusionMode::none), full = record_in(FusionMode::full);
  EXPECT_EQ(none.groups.size(), 4u);
  EXPECT_EQ(none.views.size(), 1u);
  EXPECT_TRUE(none.rules.empty());
  EXPECT_EQ(full.groups.size(), 2u);
  ASSERT_EQ(full.rules.size(), 1u);
  EXPECT_EQ(full.rules[0].name, "linear-bias");
  EXPECT_LT(full.memory.total, none.memory.total);
  EXPECT_EQ(none.memory.total, 4 * 128) << "the product, the sum, the activation and the probabilities";
  EXPECT_EQ(full.memory.total, 2 * 128);
}

TEST(CompileRecord, HasAReasonForEveryValueBetweenBlocks) {
  const CompileRecord record = record_in(FusionMode::full);
  ASSERT_EQ(record.report.edges.size(), 2u);  // into the view and out of it
  EXPECT_EQ(record.report.edges[0].why, WhyApart::view);
  EXPECT_EQ(record.report.edges[1].why, WhyApart::view);
  EXPECT_EQ(record.report.edges[0].consumer, 1) << "the softmax, which reads the view";
  EXPECT_EQ(record.report.edges[1].consumer, 2) << "the view, behind the groups";
}

TEST(CompileRecord, KernelsSayWhyTheyDoNotTakeMore) {
  const CompileRecord record = record_in(FusionMode::pattern);
  for (const UnfusedEdge& edge : record.report.edges) EXPECT_FALSE(edge.text.empty());
}

/// Blocks as "concat+transpose+group_norm+silu+transpose", without views.
std::vector<std::string> blocks_of(const std::string& text) {
  const Context context(ContextOptions{.device = "null", .threads = 1});
  Context own = context.with_own_stream();
  std::vector<CompileRecord> records;
  const Session session(parse_graph(text), own, load_by_name,
                        {.maximum = {}, .skip = {}, .fusion = {.mode = FusionMode::full, .records = &records}});
  std::vector<std::string> blocks;
  for (const FusionGroup& group : records.at(0).groups) blocks.push_back(group.region.operators());
  return blocks;
}

/// A part of a U-Net as exporters write it: its norms read and write images with their channels last, joints of
/// channels with them, and gates of GELU are computed where the next product packs its rows.
TEST(CompileRecord, BlocksOfAUNet) {
  const std::vector<std::string> expected{
      "transpose + conv",
      "transpose + conv",
      "concat + transpose + group_norm + silu + transpose",
      "silu + linear",
      "conv + add",
      "transpose + group_norm + silu + transpose",
      "conv",
      "conv + add",
      "transpose + group_norm + transpose",
      "conv",
      "layer_norm + linear",
      "gelu_and_mul + linear + add",
      "conv + add",
      "transpose",
  };
  EXPECT_EQ(blocks_of(read_text(CERMET_SOURCE_DIR "/tests/graph/corpus/unet.graph")), expected);
}

}  // namespace
}  // namespace cermet

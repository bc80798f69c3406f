// Attention in super-kernels on GPUs: how it joins, and, where there is a GPU, the bits of launches one by one.
#include "tests/runtime/super_kernel/walked_step.hpp"

namespace cermet {
namespace {

/// Attention whose blocks form clusters gives way to one whose blocks meet in memory.
TEST(DeviceRegion, AttentionJoinsInPieces) {
  const auto device = make_null_device(90);
  const auto cache = TensorType{DType::bf16, {40, 8, 16, 64}};
  const auto program = [&](std::int64_t sequences, std::int64_t queries = 1) {
    Problem problem = make_problem(
        definition(OpKind::incre_flash_attention),
        {TensorType{DType::bf16, {sequences * queries, 32, 64}}, cache, cache, TensorType{DType::i32, {sequences, 40}},
         TensorType{DType::i32, {sequences}}, TensorType{DType::i32, {sequences + 1}}},
        {});
    problem.target = device->target();
    const Region region(problem);
    Choice choice = select_kernel(region);
    EXPECT_EQ(choice.kernel->name, "attention.decode");
    choose_joinable(region, choice);
    return choice.kernel->programs(region, choice.config).at(0);
  };
  const cuda::Program one = program(1);
  EXPECT_TRUE(one.header.ends_with("decode_pieces.cuh")) << one.header;
  EXPECT_NE(one.task.find(".ranks = 16"), std::string::npos) << one.task;
  EXPECT_EQ(one.walk.value().meeting_bytes, 8 * (2 + 64) * 4) << "maxima, sums and outputs of eight rows";
  EXPECT_NE(program(4).task.find(".ranks = 4"), std::string::npos) << "a block of an SM each";
  const cuda::Program pass = program(8, 4);
  EXPECT_TRUE(pass.header.ends_with("decode_pieces.cuh"))
      << "a pass that has room for several queries of each sequence: " << pass.header;
  EXPECT_NE(pass.task.find(".ranks = 2"), std::string::npos) << pass.task;
  const cuda::Program many = program(16);
  EXPECT_TRUE(many.header.ends_with("decode.cuh")) << "one block for each span: " << many.header;
  EXPECT_FALSE(many.walk);
}

/// Not the clusters of the kernel that was chosen for a launch of its own: others would join, and be slower.
TEST(DeviceRegion, AttentionThatIsFasterAloneSaysWhatJoiningWouldLose) {
  Step step("null:sm_90", "decode", "", attention_text);
  step.session.run();
  const SuperFormation& formation = *step.session.executable().super_kernels();
  EXPECT_FALSE(formation.breaks.empty());
  for (const SuperBreak& found : formation.breaks) {
    EXPECT_EQ(found.reason, SuperReason::loss) << found.found;
    EXPECT_NE(found.found.find("by forecast, so that kernels were chosen that are faster alone: clusters of"),
              std::string::npos)
        << found.found;
  }
}

/// Compiling attention takes seconds.
TEST(LongDeviceRegion, AttentionInPiecesHoldsInAnyOrderOfBlocks) {
  Step step("null:sm_90", "decode", "profile=1:strict-scope-check=abort", attention_text);
  step.session.run();
  const SuperFormation& formation = *step.session.executable().super_kernels();
  const Plan& plan = step.session.executable().plan();
  ASSERT_EQ(formation.regions.size(), 1u);
  ASSERT_EQ(formation.regions[0].end_launch, plan.launches().size());
  EXPECT_EQ(std::ranges::count(plan.launches(), 2u * 16u, &Launch::items), 2)
      << "a span of each key-value head, 16 pieces";
  const Needs needs = region_needs(plan, 0, plan.launches().size());
  for (const std::uint32_t blocks : {132, 7, 1})
    EXPECT_EQ(walk_in_any_order(plan, blocks, 5, needs), "") << blocks << " blocks";
}

/// The first run is launched one by one, with flags for the parts of attention; later ones meet in memory, with fewer
/// blocks than items, too.
TEST_F(DeviceStep, GivesTheBitsOfLaunchesOneByOneOfAttention) {
  for (const std::string options : {"profile=1", "width=132", "width=20", "width=1", "debug-sync-all=1",
                                    "width=132:prefetch=0", "width=31:early-start=0"}) {
    Step step("cuda", "decode", options, attention_text);
    const std::vector<std::byte> expected = step.run();
    for (int run = 0; run < 100; ++run) ASSERT_EQ(step.run(), expected) << options << ", run " << run;
  }
}

}  // namespace
}  // namespace cermet

// Which programs a launch takes, on a null device like an H200: nothing is compiled and no GPU is needed.
#include <gtest/gtest.h>

#include <set>

#include "kernel/cuda/device/attention/attention_params.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/region_text.hpp"
#include "tests/kernel_cuda/epilogue_case.hpp"
#include "tests/kernel_cuda/kernel_named.hpp"
#include "tests/kernel_cuda/product_cases.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"

namespace cermet {
namespace {

/// Operands with the distances between rows that a case's recipe asks for.
std::vector<TensorView> inputs_of(NullLaunches& null, const Case& recipe) {
  std::vector<TensorView> inputs(null.problem().inputs.size());
  for (std::size_t i = 0; i < recipe.inputs.size(); ++i)
    if (recipe.inputs[i]) inputs[i] = null.view(recipe.inputs[i]->type, recipe.inputs[i]->row_padding);
  return inputs;
}

/// A kernel whose own programs no case reaches would be tested in its fallback's shadow.
TEST(Launches, EveryKernelRunsACaseWithoutItsFallbacks) {
  std::set<std::string_view> taken, own;
  for (const Kernel* kernel : cuda::all_kernels())
    for (const Case& recipe : definition(kernel->op).cases()) {
      Problem problem = problem_of(kernel->op, recipe);
      const auto device = make_null_device(90);
      problem.target = device->target();
      if (kernel->declines(problem)) continue;
      taken.insert(kernel->name);
      NullLaunches null(problem, *kernel);
      if (null.launch(inputs_of(null, recipe), null.outputs()).size() > 0 && null.fallbacks == 0)
        own.insert(kernel->name);
    }
  for (const std::string_view kernel : taken) EXPECT_TRUE(own.contains(kernel)) << kernel << " of " << taken.size();
}

TEST(Launches, PersistentProductsTakeTheProgramAndTheRoundsThatTheyDeclare) {
  for (const PersistentCase& c : persistent_cases()) {
    const Kernel& kernel = kernel_named(c.op, c.kernel);
    NullLaunches null(problem_of(c.op, c.recipe), kernel);
    ASSERT_EQ(null.decline(), std::nullopt) << c.recipe.name;
    const std::vector<RecordedLaunch> launches = null.launch(inputs_of(null, c.recipe), null.outputs());
    ASSERT_FALSE(launches.empty()) << c.recipe.name;
    EXPECT_EQ(launches.back().program, "gemm/hopper") << c.recipe.name;
    EXPECT_EQ(launches.back().rounds(), c.rounds)
        << c.recipe.name << ": " << launches.back().items << " items, " << launches.back().blocks << " blocks";
  }
}

/// Operands and results that bulk copies cannot reach go to the general GEMM, and are counted.
TEST(Launches, UnalignedProductsFallBackAndAreCounted) {
  const CaseOperand x{{DType::bf16, {64, 256}}}, w{{DType::bf16, {128, 256}}, {}, 0, true}, bias{{DType::f32, {128}}};
  const Problem problem = problem_of(OpKind::linear, {"", {x, w, bias}});
  struct Unsuited {
    const char* what;
    std::int64_t x_padding, x_offset, bias_offset, y_padding;
    bool falls_back;
  };
  for (const Unsuited& u :
       {Unsuited{"aligned", 0, 0, 0, 0, false}, Unsuited{"rows of whole 16 bytes", 8, 8, 4, 8, false},
        Unsuited{"rows of x", 3, 0, 0, 0, true}, Unsuited{"first row of x", 0, 1, 0, 0, true},
        Unsuited{"bias", 0, 0, 1, 0, true}, Unsuited{"rows of y", 0, 0, 0, 3, true}}) {
    NullLaunches null(problem, kernel_named(OpKind::linear, "gemm.linear.hopper"));
    const std::vector<TensorView> inputs{null.view(problem.input(0), u.x_padding, u.x_offset),
                                         null.view(problem.input(1)), null.view(problem.input(2), 0, u.bias_offset)};
    const std::vector<RecordedLaunch> launches = null.launch(inputs, null.outputs(u.y_padding));
    ASSERT_EQ(launches.size(), 1u) << u.what;
    EXPECT_EQ(launches[0].program, u.falls_back ? "gemm/general" : "gemm/hopper") << u.what;
    EXPECT_EQ(null.fallbacks, u.falls_back ? 1 : 0) << u.what;
  }
}

/// Bulk copies step from row to row: an operand that repeats one row is read by the general GEMM.
TEST(Launches, ProductsOfARepeatedRowFallBack) {
  const CaseOperand x{{DType::bf16, {64, 256}}}, w{{DType::bf16, {128, 256}}};
  for (const OpKind op : {OpKind::linear, OpKind::dual_linear}) {
    const bool dual = op == OpKind::dual_linear;
    const Problem problem = problem_of(op, dual ? Case{"", {x, w, w}} : Case{"", {x, w}});
    for (std::size_t repeated = 0; repeated < (dual ? 3 : 2); ++repeated) {
      NullLaunches null(problem, kernel_named(op, dual ? "gemm.dual_linear.hopper" : "gemm.linear.hopper"));
      std::vector<TensorView> inputs = null.inputs();
      inputs[repeated].strides[0] = 0;
      const std::vector<RecordedLaunch> launches = null.launch(inputs, null.outputs());
      ASSERT_EQ(launches.size(), 1u);
      EXPECT_EQ(launches[0].program, "gemm/general") << "operand " << repeated << " of " << definition(op).name;
    }
  }
}

/// Launches of paged attention on a cache of 2048 pages, with the queries of a sequence that each one takes.
std::vector<std::string> attention_launches(std::int64_t tokens, std::int64_t sequences, bool with_starts = true,
                                            std::int64_t q_padding = 0) {
  const CaseOperand q{{DType::bf16, {tokens, 32, 128}}}, cache{{DType::bf16, {2048, 8, 16, 128}}},
      tables{{DType::i32, {sequences, 256}}}, lens{{DType::i32, {sequences}}}, starts{{DType::i32, {sequences + 1}}};
  const Problem problem =
      problem_of(OpKind::incre_flash_attention,
                 {"", {q, cache, cache, tables, lens, with_starts ? std::optional(starts) : std::nullopt}});
  NullLaunches null(problem, kernel_named(OpKind::incre_flash_attention, "attention.decode"));
  EXPECT_EQ(null.decline(), std::nullopt);
  std::vector<std::string> ranges;
  null.stream->on_params = [&](const void* params) {  // of every attention task, these come first
    const auto& p = *static_cast<const attention::Params*>(params);
    ranges.push_back(p.most_queries < 1 << 20 ? fmt::format("{}..{}", p.least_queries, p.most_queries)
                                              : fmt::format("{}..", p.least_queries));
  };
  std::vector<TensorView> inputs = null.inputs();
  inputs[0] = null.view(problem.input(0), q_padding);
  std::vector<std::string> found;
  for (const RecordedLaunch& launch : null.launch(inputs, null.outputs()))
    found.push_back(fmt::format("{} {}", launch.program, ranges[found.size()]));
  return found;
}

/// A launch of it would find the third operand where the second is.
TEST(Launches, AnOperatorAloneTakesNoOperandTwice) {
  const std::string cache = "bf16[4, 2, 16, 64]";
  Region region = parse_region(fmt::format(
      "{{n0 = incre_flash_attention($0: bf16[1, 4, 64], $1: {0}, $1: {0}, $2: i32[1, 4], $3: i32[1])}} anchor n0 -> n0",
      cache));
  const auto device = make_null_device(90);
  region.set_target(device->target());
  for (const Kernel* kernel : cuda::kernels_of(OpKind::incre_flash_attention))
    EXPECT_EQ(decline_of(*kernel, region).value_or("takes it"), "expects every operand once, in its place")
        << kernel->name;
}

TEST(Launches, AttentionGivesEachSequenceTheProgramForItsQueries) {
  using Found = std::vector<std::string>;
  EXPECT_EQ(attention_launches(1, 1), (Found{"attention/decode_cluster 0.."}));
  EXPECT_EQ(attention_launches(64, 64), (Found{"attention/decode 0.."}));
  EXPECT_EQ(attention_launches(64, 64, false), (Found{"attention/decode 0.."}));
  EXPECT_EQ(attention_launches(8, 1), (Found{"attention/decode_cluster 0.."}));
  EXPECT_EQ(attention_launches(8, 8), (Found{"attention/decode_cluster 0.."}));
  EXPECT_EQ(attention_launches(9, 9), (Found{"attention/decode 0.."}))
      << "two blocks for each of 72 spans are more than there are SMs";
  EXPECT_EQ(attention_launches(512, 1), (Found{"attention/prefill_tma 0.."}));
  EXPECT_EQ(attention_launches(79, 64), (Found{"attention/decode 0.."})) << "nor more than 16";
  EXPECT_EQ(attention_launches(80, 64), (Found{"attention/decode 0..16", "attention/prefill_tma 17.."}));
  EXPECT_EQ(attention_launches(575, 64), (Found{"attention/decode_shared 0..16", "attention/prefill_tma 17.."}));
  EXPECT_EQ(attention_launches(128, 64), (Found{"attention/decode 0..16", "attention/prefill_tma 17.."}))
      << "two queries of four heads are one tile of rows";
  EXPECT_EQ(attention_launches(16, 5), (Found{"attention/decode_shared 0.."})) << "more spans than clusters are for";
  EXPECT_EQ(attention_launches(575, 64, true, 3), (Found{"attention/general 0.."})) << "rows that are not aligned";
}

}  // namespace
}  // namespace cermet

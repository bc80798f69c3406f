// Decoding attention of many sequences, whose lengths say whether blocks have whole spans or share all units: both, and
// how the one gives way to the other.
#include "kernel/cuda/device/attention/decode_config.hpp"
#include "op/schema/operator.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/paged_case.hpp"
#include "tests/support/case_problem.hpp"

namespace cermet {
namespace {

struct SpansCase {
  const char* name;
  bool whole;  ///< whether lengths suit whole spans on a GPU of 264 blocks
  PagedCase sequences;

  std::int64_t rows() const { return sequences.heads / sequences.kv_heads <= 8 ? 8 : 16; }
  /// Whether they do: no sequence has several tiles of rows, and the longest is not much longer than a share.
  bool suits(int blocks) const {
    const std::int64_t unit_keys = 4 * (sequences.head_size <= 64 ? 32 : 16);
    std::int64_t units = 0, longest = 0;
    for (std::size_t s = 0; s < sequences.contexts.size(); ++s) {
      const std::int64_t tiles =
          div_up(static_cast<std::int64_t>(sequences.queries[s]) * sequences.heads / sequences.kv_heads, rows());
      if (tiles > 1) return false;
      if (tiles == 0) continue;
      const std::int64_t own = div_up(static_cast<std::int64_t>(sequences.contexts[s]), unit_keys);
      units += own * sequences.kv_heads;
      longest = std::max(longest, own);
    }
    return attention::whole_spans_suit(static_cast<int>(longest), static_cast<int>(units), blocks);
  }
};

std::vector<SpansCase> spans_cases() {
  const auto with = [](auto&& change, int longest = 346) {
    PagedCase c = PagedCase::decoding(40, longest);
    change(c);
    return c;
  };
  return {
      {"alike", true, with([](PagedCase&) {})},
      {"without_queries", true, with([](PagedCase& c) { c.queries[0] = c.queries[3] = c.queries[35] = 0; })},
      {"wide_of_16_rows", true, with([](PagedCase& c) { c.q = DType::f32, c.heads = 24, c.head_size = 128; }, 190)},
      {"odd_heads", true, with([](PagedCase& c) { c.head_size = 40; })},
      {"one_long", false, with([](PagedCase& c) { c.contexts[17] = 700; })},
      {"all_long", false, with([](PagedCase& c) { std::ranges::fill(c.contexts, 700); })},
      {"several_tiles", false, with([](PagedCase& c) { c.queries[9] = 3; })},
      {"odd_heads_one_long", false, with([](PagedCase& c) { c.head_size = 40, c.contexts[17] = 700; })},
      {"wide_of_16_rows_one_long", false,
       with([](PagedCase& c) { c.q = DType::f32, c.heads = 24, c.head_size = 128, c.contexts[0] = 500; }, 190)},
  };
}

TEST(WholeSpans, CasesHaveThemOrNot) {
  const auto device = make_null_device(90);
  for (const SpansCase& c : spans_cases()) {
    EXPECT_EQ(c.suits(264), c.whole) << c.name;
    const Problem problem = case_problem(OpKind::incre_flash_attention, c.sequences.named(c.name), device->target());
    NullLaunches null(problem, *choose_by_name(problem, "attention.decode", "default").kernel);
    const std::vector<RecordedLaunch> launches = null.launch(null.inputs(), null.outputs());
    ASSERT_EQ(launches.size(), 1u) << c.name;
    EXPECT_EQ(launches[0].program, "attention/decode") << c.name;
    EXPECT_EQ(launches[0].blocks, 264) << c.name;
  }
}

/// What a block knows of its own span alone never speaks against whole spans where all lengths speak for them.
TEST(WholeSpans, OneSpanIsNeverAgainstWhatAllSay) {
  constexpr int blocks = 264;
  for (const int spans : {1, 8, 100, 200, 263, 264})
    for (int longest = 1; longest < 200; ++longest)
      for (const int all :
           {longest, longest + (spans - 1) / 2, spans * longest})  // units of all spans, of which one has the most
        if (attention::whole_spans_suit(longest, all, blocks)) {
          for (int own = 0; own <= longest; ++own)
            ASSERT_TRUE(attention::whole_spans_suit(own, own * spans, blocks)) << spans << " spans, " << own;
        }
}

class WholeSpansOn : public testing::TestWithParam<const char*> {};

/// Twice each: what the first run leaves behind must not reach the second.
TEST_P(WholeSpansOn, AgreeWithTheReference) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (gpu.device->target()->compute_capability != 90)
    GTEST_SKIP() << "the programs are those of compute capability 9.0";
  for (const SpansCase& c : spans_cases()) {
    CaseData data = make_case_data(definition(OpKind::incre_flash_attention), c.sequences.named(c.name));
    data.problem.target = gpu.device->target();
    const Choice choice = choose_by_name(data.problem, "attention.decode", GetParam());
    const std::vector<cuda::Program> programs = choice.kernel->programs(data.problem, choice.config);
    EXPECT_EQ(programs.front().task.find(".whole = true") != std::string::npos, !choice.config.find("whole")) << c.name;
    const Expected expected = run_reference(data);
    RecordingStream recording(*gpu.stream, programs, gpu.programs->get(programs));
    for (int run = 0; run < 2; ++run)
      EXPECT_EQ(run_case_on_device(data, expected, *choice.kernel, gpu.queue(), gpu.pool,
                                   {.padding = 8, .config = choice.config}, nullptr, &recording),
                "")
          << c.name << ", run " << run;
    ASSERT_EQ(recording.launches.size(), 2u) << c.name;
    EXPECT_EQ(recording.launches.front().program, "attention/decode") << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, WholeSpansOn, testing::Values("default", "whole=0", "blocks=1,whole=0"),
                         [](const auto& test) { return fmt::format("number_{}", test.index); });

}  // namespace
}  // namespace cermet

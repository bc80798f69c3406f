// Runs in a row, each of which makes the inputs of the next: a step that chooses its token.
#include <gtest/gtest.h>

#include "tests/runtime/super_kernel/walked_step.hpp"

namespace cermet {
namespace {

/// A token's embedding, a product and the head, of 8,192 tokens, so that blocks of a walk share the choice.
const std::string choosing_text =
    "graph step {\n  input %ids : i32[1]\n  input %positions : i32[1]\n  input %slots : i32[1]\n  input %lens : "
    "i32[1]\n  input %tables : i32[1, 4]\n"
    "  input %draws : i64[1]\n  input %made : i32[32, 1]\n  input %count : i32[1]\n  constant %e : bf16[8192, 256]\n  "
    "constant %g : f32[256]\n"
    "  constant %w : bf16[256, 256]\n  %a = embedding(%ids, %e) {out_dtype = \"f32\"} : f32[1, 256]\n"
    "  %b = rms_norm(%a, %g) : f32[1, 256]\n  %c = linear(%b, %w) : f32[1, 256]\n  %d = linear(%c, %e) : f32[1, "
    "8192]\n  %f = argmax(%d) : i32[1]\n"
    "  %ids2, %positions2, %slots2, %lens2, %draws2, %made2, %count2 = advance_tokens(%f, %ids, %positions, %slots, "
    "%lens, %tables, %draws, %made, %count) "
    ": i32[1], i32[1], i32[1], i32[1], i64[1], i32[32, 1], i32[1]\n  output made = %made2\n  output slots = "
    "%slots2\n}\n";

/// The state of its inputs, as one block of memory: 64 bytes for each, then the tokens.
struct Choosing {
  static constexpr std::int64_t pitch = 64, made_at = 7 * pitch, bytes = made_at + 32 * 4;
  Context context;
  Session session;
  DeviceBuffer memory;
  AlignedBuffer host{bytes};

  Choosing(const std::string& device, const std::string& select, const std::string& options)
      : context({device, 2}),
        session(parse_graph(choosing_text), context, load_by_name, Step::options_of(select, options)) {
    memory = context.device().allocate(bytes);
    const auto bind = [&](const char* name, std::int64_t at, DType type, Shape shape) {
      session.bind(name, {memory.data() + at, type, shape});
    };
    for (const auto& [name, place] : {std::pair("ids", 0), {"positions", 1}, {"slots", 2}, {"lens", 3}, {"count", 6}})
      bind(name, place * pitch, DType::i32, {1});
    bind("tables", 4 * pitch, DType::i32, {1, 4});
    bind("draws", 5 * pitch, DType::i64, {1});
    bind("made", made_at, DType::i32, {32, 1});
  }
  std::int32_t* number(std::int64_t place) { return reinterpret_cast<std::int32_t*>(host.data() + place * pitch); }
  void begin() {
    std::memset(host.data(), 0, bytes);
    *number(0) = 7;
    for (int page = 0; page < 4; ++page) number(4)[page] = 9 - page;
    if (Stream* const stream = context.stream()) {
      stream->upload(memory.data(), host.data(), bytes);
      stream->synchronize();
    } else if (context.computes()) {
      std::memcpy(memory.data(), host.data(), bytes);
    }
  }
  /// The state after steps in rows of `row`, all of it.
  std::vector<std::byte> run(std::int64_t steps, std::int64_t row) {
    begin();
    for (std::int64_t done = 0; done < steps; done += row)
      session.executable().run_row({}, std::min(row, steps - done), [](std::int64_t) { return true; });
    return state();
  }
  std::vector<std::byte> state() {
    std::vector<std::byte> all(bytes);
    if (Stream* const stream = context.stream()) {
      stream->download(all.data(), memory.data(), bytes);
      stream->synchronize();
    } else {
      std::memcpy(all.data(), memory.data(), bytes);
    }
    session.executable().check_waits();
    return all;
  }
};

TEST(Rows, StepsInARowAreStepsOneByOne) {
  const std::vector<std::byte> expected = Choosing("cpu", "", "").run(20, 1);
  const auto* const ids = reinterpret_cast<const std::int32_t*>(expected.data() + Choosing::made_at);
  EXPECT_NE(ids[0], ids[1]) << "a step that changes nothing tests nothing";
  EXPECT_EQ(reinterpret_cast<const std::int32_t*>(expected.data() + Choosing::pitch)[0], 20) << "the position";
  EXPECT_EQ(reinterpret_cast<const std::int32_t*>(expected.data() + 2 * Choosing::pitch)[0], 8 * 16 + 4) << "its slot";
  for (const std::string options : {"", "width=1", "debug-sync-all=1", "profile=1", "prefetch=0"}) {
    Choosing step("cpu", options.empty() ? "" : "decode", options);
    for (const std::int64_t row : {20, 7, 4}) EXPECT_EQ(step.run(20, row), expected) << options << ", rows of " << row;
  }
}

TEST(Rows, ARowEndsWhereItsCallerSaysSo) {
  const std::vector<std::byte> expected = Choosing("cpu", "", "").run(5, 1);
  Choosing step("cpu", "decode", "");
  step.begin();
  std::vector<std::int64_t> seen;
  step.session.executable().run_row({}, 16, [&](std::int64_t run) {
    seen.push_back(run);
    return run < 4;
  });
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(step.state(), expected);
}

TEST(Rows, AnErrorInARowLeavesTheThreadsUsable) {
  Choosing step("cpu", "decode", "");
  step.begin();
  EXPECT_THROW(
      step.session.executable().run_row({}, 16, [](std::int64_t) -> bool { throw std::runtime_error("mine"); }),
      std::runtime_error);
  EXPECT_EQ(step.run(5, 5), Choosing("cpu", "", "").run(5, 1));
}

/// Blocks of a walk that goes round, on in any order: nothing where all end, and no item began before the round before
/// had ended and what it needs in its own.
std::string go_round_in_any_order(const Plan& plan, std::uint32_t blocks, std::uint32_t rounds, std::uint64_t seed,
                                  const Needs& needs, std::span<const std::uint32_t> carried) {
  const auto count = static_cast<std::uint32_t>(needs.size());
  const auto arrives = [&](std::uint32_t l) { return std::min(plan.launches()[l].items, blocks); };
  std::vector<std::uint32_t> at(blocks), round(blocks), arrivals(count);
  std::mt19937_64 random(seed);
  for (std::vector<std::uint32_t> able;; able.clear()) {
    bool all = true;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      if (round[b] == rounds) continue;
      all = false;
      const auto ended = [&](std::uint32_t runs) {
        return [&, runs](std::uint32_t need) { return arrivals[need] >= runs * arrives(need); };
      };
      if ((at[b] > 0 || std::ranges::all_of(carried, ended(round[b]))) &&
          std::ranges::all_of(needs[at[b]], ended(round[b] + 1)))
        able.push_back(b);
    }
    if (able.empty()) return all ? "" : "deadlock";
    const std::uint32_t b = able[random() % able.size()], l = at[b];
    if (b < arrives(l)) {
      for (std::uint32_t before = 0; before < count; ++before)
        if (arrivals[before] < round[b] * arrives(before))
          return fmt::format("launch {} began in round {} before launch {} had ended in the last", l, round[b], before);
      ++arrivals[l];
    }
    at[b] = (l + 1) % count;
    round[b] += at[b] == 0;
  }
}

/// Without a GPU: the choice is shared by blocks, everything is one region, and its kernel links.
TEST(Rows, AChoosingStepIsOneRegionWhoseChoiceBlocksShare) {
  if (const std::string reason = cuda::unavailable_reason(); reason.find("plugin") != std::string::npos)
    GTEST_SKIP() << reason;
  Choosing step("null:sm_90", "decode", "profile=1");
  step.run(1, 1);
  const SuperFormation* const formed = step.session.executable().super_kernels();
  const Plan& plan = step.session.executable().plan();
  ASSERT_EQ(formed->regions.size(), 1u);
  EXPECT_TRUE(formed->breaks.empty());
  EXPECT_EQ(formed->regions[0].end_launch, plan.launches().size());
  EXPECT_EQ(plan.launches()[plan.launches().size() - 2].items, 8u);
  const Needs needs = region_needs(plan, 0, plan.launches().size());
  const std::vector<std::uint32_t> ends = region_ends(needs);
  for (const std::uint32_t blocks : {132, 7, 1})
    for (const std::uint64_t seed : {1, 2, 3})
      EXPECT_EQ(go_round_in_any_order(plan, blocks, 4, seed, needs, ends), "") << blocks << " blocks";
  Step other("null:sm_90", "decode", "profile=1");  // its last launch has items on every block
  other.run();
  const Plan& wide = other.session.executable().plan();
  const Needs wide_needs = region_needs(wide, 0, wide.launches().size());
  EXPECT_EQ(go_round_in_any_order(wide, 132, 4, 1, wide_needs, region_ends(wide_needs)), "");
  EXPECT_NE(go_round_in_any_order(wide, 132, 4, 1, wide_needs, {}), "") << "what a missing wait looks like";
  std::vector<cuda::Program> programs;
  std::vector<RegionLaunch> launches;
  for (const Launch& launch : plan.launches()) {
    const StepInfo& info = step.session.executable().steps()[launch.step];
    Choice choice = select_kernel(info.region);
    choose_joinable(info.region, choice);
    programs.push_back(choice.kernel->programs(info.region, choice.config).at(launch.program));
  }
  for (const cuda::Program& program : programs) launches.push_back({&program, program.task});
  const DeviceRegion region(plan, 0, launches, step.context.queue(), {});
  EXPECT_GE(region.shape().stages, 2);
}

TEST_F(DeviceStep, StepsInARowAreStepsOneByOne) {
  const std::vector<std::byte> expected = Choosing("cuda", "", "").run(20, 1);
  for (const std::string options : {"", "profile=1", "width=132:debug-sync-all=1", "width=7", "width=1"}) {
    Choosing step("cuda", options.empty() ? "" : "decode", options);
    for (int round = 0; round < 30; ++round)
      for (const std::int64_t row : {1, 4, 20})
        ASSERT_EQ(step.run(20, row), expected) << options << ", rows of " << row << ", round " << round;
    EXPECT_EQ(step.session.executable().linked_regions().size(), options.empty() ? 0u : 1u);
  }
}

}  // namespace
}  // namespace cermet

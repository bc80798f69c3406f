// Which tokens the scheduler puts into a pass, and who waits.
#include "model/scheduler.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

using Limits = Scheduler::Limits;

/// "request:begin+count" of every part, "!" where the next token is chosen.
std::string pass_of(Scheduler& scheduler) {
  std::string text;
  for (const Scheduler::Part& part : scheduler.next_pass())
    text += fmt::format("{}{}:{}+{}{}", text.empty() ? "" : " ", part.request, part.begin, part.count,
                        part.is_last ? "!" : "");
  return text;
}

TEST(Scheduler, PromptsComeFirstAndThenDecodeTogether) {
  Scheduler scheduler({.sequences = 2, .blocks = 8, .context = 64, .pass_tokens = 32});
  scheduler.add(0, 5, 10);
  scheduler.add(1, 7, 10);
  EXPECT_EQ(pass_of(scheduler), "0:0+5! 1:0+7!");
  EXPECT_EQ(pass_of(scheduler), "0:5+1! 1:7+1!");
  EXPECT_EQ(pass_of(scheduler), "0:6+1! 1:8+1!");
}

TEST(Scheduler, APassMixesDecodesWithThePromptOfANewcomer) {
  Scheduler scheduler({.sequences = 2, .blocks = 8, .context = 64, .pass_tokens = 16});
  scheduler.add(0, 5, 10);
  EXPECT_EQ(pass_of(scheduler), "0:0+5!");
  scheduler.add(1, 20, 10);
  EXPECT_EQ(pass_of(scheduler), "0:5+1! 1:0+15");  // what the pass has left
  EXPECT_EQ(pass_of(scheduler), "0:6+1! 1:15+5!");
  EXPECT_EQ(pass_of(scheduler), "0:7+1! 1:20+1!");
}

TEST(Scheduler, WhereShortPassesComputeOtherwiseLongPartsStayAlone) {
  Scheduler scheduler({.sequences = 3, .blocks = 30, .context = 160, .pass_tokens = 40, .few_tokens = 8});
  scheduler.add(0, 5, 10);
  EXPECT_EQ(pass_of(scheduler), "0:0+5!");
  scheduler.add(1, 43, 10);
  scheduler.add(2, 20, 10);
  EXPECT_EQ(pass_of(scheduler),
            "1:0+40");  // nothing beside it: the rest of the pass has no room for 2, and 0 decodes in short passes
  EXPECT_EQ(pass_of(scheduler), "0:5+1! 1:40+3!");  // the end of 1 is short
  EXPECT_EQ(pass_of(scheduler), "2:0+20!");
  EXPECT_EQ(pass_of(scheduler), "0:6+1! 1:43+1! 2:20+1!");
}

TEST(Scheduler, ShortPartsThatHaveNoRoomBesideTheDecodesGoFirst) {
  Scheduler scheduler({.sequences = 3, .blocks = 30, .context = 160, .pass_tokens = 40, .few_tokens = 8});
  scheduler.add(0, 3, 10);
  scheduler.add(1, 3, 10);
  EXPECT_EQ(pass_of(scheduler), "0:0+3! 1:0+3!");
  scheduler.add(2, 7, 10);
  EXPECT_EQ(pass_of(scheduler), "2:0+7!");
  EXPECT_EQ(pass_of(scheduler), "0:3+1! 1:3+1! 2:7+1!");
}

TEST(Scheduler, RequestsWaitForBlocksInOrder) {
  Scheduler scheduler({.sequences = 4, .blocks = 6, .context = 96, .pass_tokens = 64});
  scheduler.add(0, 20, 14);  // 33 tokens at most: 3 blocks
  scheduler.add(1, 60, 5);   // 4 blocks
  scheduler.add(2, 1, 2);    // 1 block, but it came later
  EXPECT_EQ(pass_of(scheduler), "0:0+20!");
  EXPECT_EQ(scheduler.free_blocks(), 3);
  EXPECT_EQ(scheduler.waiting(), 2u);
  EXPECT_EQ(pass_of(scheduler), "0:20+1!");
  scheduler.finish(0);
  EXPECT_EQ(pass_of(scheduler), "1:0+60! 2:0+1!");
  EXPECT_EQ(scheduler.free_blocks(), 1);
  scheduler.finish(2);
  scheduler.finish(1);
  EXPECT_EQ(scheduler.free_blocks(), 6);
  EXPECT_EQ(pass_of(scheduler), "");
}

TEST(Scheduler, MistakesAreNamed) {
  const auto with = [](Limits limits) { return error_text([&] { Scheduler scheduler(limits); }); };
  EXPECT_EQ(with({.sequences = 4, .blocks = 1, .context = 32, .pass_tokens = 4}),
            "context: expected 1 to 16 tokens (those of all blocks), found 32");
  EXPECT_EQ(with({.sequences = 4, .blocks = 2, .context = 32, .pass_tokens = 3}),
            "pass_tokens: expected at least 4 (a token of each sequence), found 3");
  Scheduler scheduler({.sequences = 1, .blocks = 2, .context = 32, .pass_tokens = 8});
  EXPECT_EQ(error_text([&] { scheduler.add(0, 0, 1); }), "prompt: expected at least one token, found none");
  EXPECT_EQ(error_text([&] { scheduler.add(0, 33, 1); }), "prompt: expected at most 32 tokens (the context), found 33");
  EXPECT_EQ(error_text([&] { scheduler.finish(3); }), "request 3: expected one that runs or waits, found none");
}

/// A run of random requests: every token of every request is computed once and in order, no pass breaks a limit, and
/// all of them end.
class Simulation {
 public:
  Simulation(const Limits& limits, unsigned seed) : limits_(limits), scheduler_(limits), random_(seed) {}

  void run(std::size_t count) {
    while (done_ < count) {
      while (added_ < count && number(0, 2) > 0) add();
      const std::span<const Scheduler::Part> pass = scheduler_.next_pass();
      if (pass.empty()) {
        ASSERT_EQ(scheduler_.running(), 0u);
        ASSERT_EQ(scheduler_.waiting(), 0u) << "somebody waits although nothing runs";
        if (added_ < count) add();
        continue;
      }
      check(pass);
      const std::vector<Scheduler::Part> parts(pass.begin(), pass.end());
      for (const Scheduler::Part& part : parts) take(part);
    }
    EXPECT_EQ(scheduler_.free_blocks(), limits_.blocks);
  }

 private:
  struct Request {
    std::int64_t prompt = 0, most = 0, computed = 0, made = 0;
  };

  std::int64_t number(std::int64_t low, std::int64_t high) { return std::uniform_int_distribution(low, high)(random_); }

  void add() {
    Request& request = requests_[added_];
    request.prompt = number(1, limits_.context);
    request.most = number(1, 30);
    scheduler_.add(added_++, request.prompt, request.most);
  }

  void check(std::span<const Scheduler::Part> pass) {
    std::int64_t tokens = 0;
    std::set<int> slots;
    for (const Scheduler::Part& part : pass) {
      const Request& request = requests_.at(part.request);
      ASSERT_EQ(part.begin, request.computed);
      ASSERT_GT(part.count, 0);
      ASSERT_EQ(part.is_last, part.begin + part.count >= request.prompt);
      ASSERT_TRUE(slots.insert(part.sequence).second);
      tokens += part.count;
    }
    ASSERT_LE(tokens, limits_.pass_tokens);
    ASSERT_LE(std::ssize(pass), limits_.sequences);
    if (limits_.few_tokens == 0) return;
    for (const Scheduler::Part& part : pass)
      ASSERT_EQ(part.count <= limits_.few_tokens, tokens <= limits_.few_tokens)
          << "a part is computed as it would be alone";
  }

  void take(const Scheduler::Part& part) {
    Request& request = requests_.at(part.request);
    request.computed += part.count;
    std::int64_t blocks = 0;
    for (const auto& [id, r] : requests_)
      if (r.computed > 0) blocks += (r.computed + limits_.block_size - 1) / limits_.block_size;
    ASSERT_LE(blocks, limits_.blocks);
    if (!part.is_last || (++request.made < request.most && request.computed < limits_.context && number(0, 20) > 0))
      return;
    scheduler_.finish(part.request);
    requests_.erase(part.request);
    ++done_;
  }

  Limits limits_;
  Scheduler scheduler_;
  std::mt19937 random_;
  std::map<std::size_t, Request> requests_;
  std::size_t added_ = 0, done_ = 0;
};

TEST(Scheduler, NothingIsLostWhateverComes) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const std::int64_t few = seed % 2 ? 16 : 0, blocks = 8 + seed % 7;
    Simulation simulation(
        {.sequences = 1 + seed % 9, .blocks = blocks, .context = 8 * 16, .pass_tokens = 16 + seed, .few_tokens = few},
        seed);
    ASSERT_NO_FATAL_FAILURE(simulation.run(60)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cermet

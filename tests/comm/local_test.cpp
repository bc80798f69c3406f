// Ranks that are threads: every collective against its stacked definition, groups, and what ranks say when one of them
// fails.
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>

#include "comm/check.hpp"
#include "comm/join_watched.hpp"
#include "tests/comm/threads.hpp"

namespace cermet::test {
namespace {

using Strings = std::vector<std::string>;

class LocalRanks : public testing::TestWithParam<int> {};

TEST_P(LocalRanks, ComputeWhatTheStackedOperatorsDefine) {
  std::atomic<int> calls{0};
  const Strings errors = run_ranks(GetParam(), [&](Communicator& group) {
    const comm::CheckReport report = comm::check_communicator(group);
    EXPECT_EQ(report.wrong, "");
    calls += report.calls;
  });
  EXPECT_EQ(errors, Strings(errors.size()));
  EXPECT_GT(calls, 300 * GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, LocalRanks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST(Local, ResultsAreBitForBitThoseOfEveryOtherNumberOfWindows) {
  // The order of a sum does not depend on the size of the operand: an element alone and in the midst of many give the
  // same bits.
  constexpr int ranks = 3;
  constexpr std::int64_t many = 300'000;
  const Strings errors = run_ranks(ranks, [&](Communicator& group) {
    std::vector<float> x(many), y(many);
    for (std::int64_t i = 0; i < many; ++i)
      x[static_cast<std::size_t>(i)] = 1.0f / static_cast<float>(1 + (i * 7 + group.rank() * 13) % 1009);
    group.all_reduce({x.data(), DType::f32, {many}}, {y.data(), DType::f32, {many}});
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{65'537}, many - 1}) {
      float one = 0;
      group.all_reduce({&x[static_cast<std::size_t>(i)], DType::f32, {1}}, {&one, DType::f32, {1}});
      EXPECT_EQ(one, y[static_cast<std::size_t>(i)]) << i;
    }
  });
  EXPECT_EQ(errors, Strings(ranks));
}

TEST(Local, SplitsIntoGroupsInTheOrderOfKeys) {
  const Strings errors = run_ranks(6, [](Communicator& world) {
    const auto group = world.split(world.rank() % 2, -world.rank());
    EXPECT_EQ(group->size(), 3);
    EXPECT_EQ(group->rank(), 2 - world.rank() / 2);
    std::int32_t sum = world.rank(), from_first = world.rank();
    group->all_reduce({&sum, DType::i32, {1}}, {&sum, DType::i32, {1}});
    EXPECT_EQ(sum, world.rank() % 2 == 0 ? 0 + 2 + 4 : 1 + 3 + 5);
    group->broadcast({&from_first, DType::i32, {1}}, 0);
    EXPECT_EQ(from_first, 4 + world.rank() % 2);
    world.barrier();
    const auto pairs = group->split(group->rank() == 0 ? 0 : 1, 0);
    EXPECT_EQ(pairs->size(), group->rank() == 0 ? 1 : 2);
  });
  EXPECT_EQ(errors, Strings(6));
}

TEST(Local, GathersText) {
  const Strings errors = run_ranks(3, [](Communicator& group) {
    EXPECT_EQ(group.gather_text(std::string(static_cast<std::size_t>(group.rank()) * 2000, 'x') + "end"),
              (Strings{"end", std::string(2000, 'x') + "end", std::string(4000, 'x') + "end"}));
    group.require_same("seed", "42");
  });
  EXPECT_EQ(errors, Strings(3));
}

TEST(Local, RanksWithDifferentTextsAreNamed) {
  const Strings errors =
      run_ranks(3, [](Communicator& group) { group.require_same("model", group.rank() == 2 ? "llama" : "qwen"); });
  for (int r = 0; r < 3; ++r)
    EXPECT_EQ(
        errors[static_cast<std::size_t>(r)],
        fmt::format("rank {} of 3: model: expected that of rank 0, qwen, on every rank, found llama on rank 2", r));
}

/// Ranks make different calls: x of `sizes[rank]` elements of these types.
Strings differing(const std::vector<CollectiveCall>& calls) {
  return run_ranks(static_cast<int>(calls.size()), [&](Communicator& group) {
    float x[8] = {}, y[8] = {};
    group.barrier();
    CollectiveCall call = calls[static_cast<std::size_t>(group.rank())];
    call.x.data = x;
    call.y.data = y;
    group.run(call);
  });
}

CollectiveCall reduce_of(DType dtype, std::int64_t size, Reduction reduction = Reduction::sum) {
  return {Collective::all_reduce, reduction, 0, {nullptr, dtype, {size}}, {nullptr, dtype, {size}}, {}};
}

TEST(Local, DifferentSizesAreNamedOnEveryRank) {
  const Strings errors = differing({reduce_of(DType::f32, 4), reduce_of(DType::f32, 4), reduce_of(DType::f32, 8)});
  EXPECT_EQ(
      errors[0],
      "rank 0 of 3: call 2, all_reduce of f32[4 x 1] by sum: rank 2 makes call 2, all_reduce of f32[8 x 1] by sum");
  EXPECT_EQ(
      errors[1],
      "rank 1 of 3: call 2, all_reduce of f32[4 x 1] by sum: rank 2 makes call 2, all_reduce of f32[8 x 1] by sum");
  EXPECT_NE(errors[2].find("rank 2 of 3: call 2, all_reduce of f32[8 x 1] by sum: rank "), std::string::npos)
      << errors[2];
}

TEST(Local, DifferentTypesReductionsAndOperatorsAreNamed) {
  EXPECT_NE(differing({reduce_of(DType::f32, 4), reduce_of(DType::i32, 4)})[0].find(
                "rank 1 makes call 2, all_reduce of i32[4 x 1] by sum"),
            std::string::npos);
  EXPECT_NE(differing({reduce_of(DType::f32, 4), reduce_of(DType::f32, 4, Reduction::max)})[0].find("by max"),
            std::string::npos);
  CollectiveCall other = reduce_of(DType::f32, 4);
  other.kind = Collective::broadcast_from;
  EXPECT_NE(differing({reduce_of(DType::f32, 4), other})[0].find(
                "rank 1 makes call 2, broadcast_from of f32[4 x 1] with root 0"),
            std::string::npos);
}

TEST(Local, ARankWithAnErrorOfItsOwnTellsTheOthers) {
  const Strings errors = differing(
      {reduce_of(DType::f32, 4),
       {Collective::all_reduce, Reduction::sum, 0, {nullptr, DType::f32, {4}}, {nullptr, DType::f32, {5}}, {}}});
  EXPECT_EQ(errors[1], "rank 1 of 2: call 2, all_reduce: all_reduce: operand y: expected f32[4], found f32[5]");
  EXPECT_EQ(errors[0],
            "rank 0 of 2: call 2, all_reduce of f32[4 x 1] by sum: rank 1 failed: all_reduce: operand y: expected "
            "f32[4], found f32[5]");
}

TEST(Local, ARankThatEndsIsNamedByThoseThatWait) {
  const auto begin = std::chrono::steady_clock::now();
  const Strings left = run_ranks(3, [](Communicator& group) {
    group.barrier();
    if (group.rank() == 1) return;
    group.barrier();
  });
  EXPECT_EQ(left[0], "rank 0 of 3: call 2, barrier: rank 1 has left the group");
  EXPECT_NE(left[2].find("rank 1 has left the group"), std::string::npos) << left[2];
  const Strings thrown = run_ranks(3, [](Communicator& group) {
    group.barrier();
    if (group.rank() == 1) fail(Status::invalid_argument, "prompt: expected text, found none");
    group.barrier();
  });
  EXPECT_EQ(thrown[0], "rank 0 of 3: call 2, barrier: rank 1 ended with an error of its own");
  const Strings aborted = run_ranks(3, [](Communicator& group) {
    if (group.rank() == 1) return group.abort("cannot read its weights");
    group.barrier();
  });
  EXPECT_EQ(aborted[2], "rank 2 of 3: call 1, barrier: rank 1 cannot read its weights");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Local, ARankThatDoesNotComeIsNamedAfterTheTimeout) {
  const Strings errors = run_ranks(2, [](Communicator& group) {
    group.set_timeout(0.2);
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    group.barrier();
  });
  EXPECT_EQ(errors[0], "rank 0 of 2: call 1, barrier: rank 1 did not come within 0.2 s");
  EXPECT_NE(errors[1].find("rank 1 did not come within 0.2 s"), std::string::npos) << errors[1];
}

TEST(Local, AFailedCommunicatorMakesNoFurtherCall) {
  const Strings errors = run_ranks(2, [](Communicator& group) {
    if (group.rank() == 1) return;
    EXPECT_THROW(group.barrier(), Error);
    group.barrier();
  });
  EXPECT_EQ(errors[0], "rank 0 of 2: expected no call after one that failed, found call 0, barrier");
}

TEST(Local, RefusesOperandsThatDoNotFit) {
  const auto group = std::move(comm::make_local_group(1)[0]);
  float x[8] = {};
  const TensorView whole(x, DType::f32, {4}), part(x + 2, DType::f32, {4});
  EXPECT_THROW(group->all_reduce(whole, part), Error);  // overlaps
  EXPECT_THROW(comm::make_local_group(0), Error);
}

/// A library whose call waits for all ranks, of which one does not come, is late, or fails.
Strings joining(const std::function<void(int rank)>& join, double timeout) {
  return run_ranks(3, [&](Communicator& group) {
    const std::shared_ptr<std::atomic<bool>> made = std::make_shared<std::atomic<bool>>(false);
    comm::join_watched(
        group,
        [join, made, rank = group.rank()] {
          join(rank);
          *made = true;
          return std::unique_ptr<DeviceGroup>();
        },
        timeout);
    EXPECT_TRUE(*made);
  });
}

TEST(JoinWatched, EndsWhereARankFailsOrDoesNotCome) {
  EXPECT_EQ(joining([](int) {}, 5), Strings(3));
  const auto begin = std::chrono::steady_clock::now();
  const auto late = [](int rank) { std::this_thread::sleep_for(std::chrono::milliseconds(rank == 1 ? 0 : 400)); };
  const Strings failed = joining(
      [&](int rank) {
        late(rank);
        if (rank == 1) fail(Status::unsupported, "out of memory");
      },
      5);
  EXPECT_EQ(failed[1], "out of memory");
  EXPECT_EQ(failed[0], "rank 0 of 3: joining GPUs: rank 1 failed: out of memory");
  const Strings slow = joining(late, 0.1);
  EXPECT_NE(slow[0].find("NCCL did not join the GPUs within 0.1 s"), std::string::npos) << slow[0];
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

}  // namespace
}  // namespace cermet::test

// Searches over landscapes that are functions: nothing is measured.
#include "select/tune/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/device.hpp"
#include "kernel/cuda/task.hpp"
#include "op/schema/operator.hpp"
#include "select/tune/job.hpp"
#include "tests/select/landscape.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// Candidates in the order in which a search gives them, which gets each one's time at once.
std::vector<std::size_t> order_of(const Landscape& landscape, SearchKind kind, std::uint64_t seed,
                                  std::size_t at_once = 1) {
  TuneSearch search(landscape.candidates(), kind, seed);
  std::vector<std::size_t> order;
  for (std::vector<std::size_t> batch = search.next(at_once); !batch.empty(); batch = search.next(at_once))
    for (const std::size_t candidate : batch) {
      order.push_back(candidate);
      search.tell(candidate, landscape.seconds(landscape.candidates().list[candidate].choice));
    }
  return order;
}

/// Measurements until a candidate within 2 % of the best was measured.
std::size_t measurements(const Landscape& landscape, SearchKind kind, std::uint64_t seed) {
  const double wanted = 1.02 * landscape.best();
  TuneSearch search(landscape.candidates(), kind, seed);
  for (std::size_t count = 1;; ++count) {
    const std::size_t candidate = search.next(1).front();
    const double seconds = landscape.seconds(landscape.candidates().list[candidate].choice);
    if (seconds <= wanted) return count;
    search.tell(candidate, seconds);
  }
}

std::size_t median(std::vector<std::size_t> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

TEST(TuneSearch, GivesEveryCandidateOnce) {
  const Landscape landscape(bowl_space(), 3, bowl);
  for (const SearchKind kind : {SearchKind::bayes, SearchKind::random, SearchKind::exhaustive})
    for (const std::size_t at_once : {1u, 5u}) {
      const std::vector<std::size_t> order = order_of(landscape, kind, 3, at_once);
      EXPECT_EQ(order.size(), 1025u);
      EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), order.size()) << name_of(kind);
      EXPECT_EQ(order.front(), 0u) << "the choice without tuning";
    }
}

TEST(TuneSearch, FollowsFromItsSeed) {
  const Landscape landscape(bowl_space(), 3, bowl);
  for (const SearchKind kind : {SearchKind::bayes, SearchKind::random}) {
    EXPECT_EQ(order_of(landscape, kind, 7), order_of(landscape, kind, 7));
    EXPECT_NE(order_of(landscape, kind, 7), order_of(landscape, kind, 8));
  }
  EXPECT_EQ(order_of(landscape, SearchKind::exhaustive, 7), order_of(landscape, SearchKind::exhaustive, 8));
}

TEST(TuneSearch, BayesNeedsFewerMeasurementsThanRandom) {
  std::vector<std::size_t> bayes, random;
  const Landscape landscape(bowl_space(), 3, bowl);
  for (std::uint64_t seed = 0; seed < 21; ++seed) {
    bayes.push_back(measurements(landscape, SearchKind::bayes, seed));
    random.push_back(measurements(landscape, SearchKind::random, seed));
  }
  EXPECT_LT(3 * median(bayes), median(random)) << median(bayes) << " and " << median(random);
  EXPECT_LT(*std::ranges::max_element(bayes), 200u);
}

TEST(TuneSearch, BayesBeginsWithWhatModelsFindCheapest) {
  const Landscape landscape(bowl_space(), 3, bowl, bowl);
  const std::vector<std::size_t> order = order_of(landscape, SearchKind::bayes, 1);
  EXPECT_EQ(landscape.seconds(landscape.candidates().list[order[1]].choice), landscape.best());
  const std::vector<std::size_t> all = order_of(landscape, SearchKind::exhaustive, 1);
  for (std::size_t i = 2; i < all.size(); ++i)
    EXPECT_LE(landscape.candidates().list[all[i - 1]].modelled, landscape.candidates().list[all[i]].modelled) << i;
}

/// A model that sees one field only gives alike times; the first candidates are then unlike in what it sees.
TEST(TuneSearch, BayesBeginsWithUnlikeCandidates) {
  const Landscape landscape(bowl_space(), 3, bowl,
                            [](const Config& c) { return 1.0 + 0.1 * static_cast<double>(c.at("a")); });
  const std::vector<std::size_t> order = order_of(landscape, SearchKind::bayes, 1);
  std::set<std::int64_t> values;
  for (std::size_t i = 1; i < 8; ++i) values.insert(landscape.candidates().list[order[i]].choice.config.at("a"));
  EXPECT_EQ(values.size(), 7u);
}

TEST(TuneSearch, BayesBeginsWithWhatAKernelListsWhereModelsCannotTell) {
  const Landscape landscape(bowl_space(), 3, bowl, [](const Config& c) { return c.at("a") == 2 ? 1.0 : 2.0; });
  TuneCandidates candidates = landscape.candidates();
  const std::size_t listed = 1 + 2 * 128 + 77;  // one of those whose a is 2
  candidates.list[listed].is_listed = true;
  TuneSearch search(candidates, SearchKind::bayes, 0);
  EXPECT_EQ(search.next(2), (std::vector<std::size_t>{0, listed}));
}

TEST(TuneSearch, BayesTriesANeighbourOfWhatIsMuchFasterAtOnce) {
  const Landscape landscape(
      bowl_space(), 2.1, [](const Config& c) { return c.at("a") == 5 ? 1.0 : 2.0; },
      [](const Config& c) { return c.at("a") == 5 ? 1.5 : 1.0 + static_cast<double>(c.at("a")); });
  TuneSearch search(landscape.candidates(), SearchKind::bayes, 1);
  std::vector<std::int64_t> tried;
  for (int count = 0; count < 5; ++count) {
    const std::size_t candidate = search.next(1).front();
    const Choice& choice = landscape.candidates().list[candidate].choice;
    if (candidate > 0) tried.push_back(choice.config.at("a"));
    search.tell(candidate, landscape.seconds(choice));
  }
  EXPECT_EQ(tried, (std::vector<std::int64_t>{0, 5, 5, 1})) << "then the next that models find cheap";
}

TEST(TuneSearch, BayesLeavesWhatFails) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneSearch search(landscape.candidates(), SearchKind::bayes, 5);
  std::size_t failing = 0, count = 0;
  for (; count < 200; ++count) {
    const std::size_t candidate = search.next(1).front();
    const Choice& choice = landscape.candidates().list[candidate].choice;
    const bool fails = !choice.config.empty() && choice.config.at("fast") == 0;
    failing += count >= 50 && fails ? 1 : 0;
    search.tell(candidate, fails ? std::nullopt : std::optional(landscape.seconds(choice)));
  }
  EXPECT_LT(failing, 60u) << "of 150, half of which would fail by chance";
}

TEST(TuneSearch, NamesItsKinds) {
  for (const SearchKind kind : {SearchKind::bayes, SearchKind::random, SearchKind::exhaustive})
    EXPECT_EQ(parse_search(name_of(kind)), kind);
  EXPECT_EQ(error_text([] { parse_search("grid"); }), "--search: expected bayes, random or exhaustive, found \"grid\"");
}

TEST(TuneSearch, AGpusRegionsHaveAsManyMeasuredAsTheBudgetSays) {
  EXPECT_EQ(planned_candidates({60, 0.005, 60, 16}), 8u) << "a second of sixteen compilers";
  EXPECT_EQ(planned_candidates({60, 0.005, 60, 2}), 2u) << "two at least";
  EXPECT_EQ(planned_candidates({60, 0.06, 10, 160}), 60u) << "a tenth of a second to measure each";
}

TEST(TuneCandidates, ThatCompileToTheSameAreOne) {
  const auto device = make_device("null:sm_90");
  Problem norm = make_problem(definition(OpKind::rms_norm),
                              {TensorType{DType::bf16, {512, 1536}}, TensorType{DType::bf16, {1536}}}, {});
  norm.target = device->target();
  const TuneCandidates candidates = tune_candidates(norm, 1);
  const Kernel& kernel = *candidates.list[0].choice.kernel;
  std::set<std::vector<cuda::Program>> programs;
  std::size_t own = 0;
  for (const TuneCandidate& candidate : candidates.list)
    if (candidate.choice.kernel == &kernel) ++own, programs.insert(kernel.programs(norm, candidate.choice.config));
  EXPECT_EQ(programs.size(), own);
  EXPECT_LT(2 * own, space_of(kernel, norm).points().size())
      << "most registers that may be asked for make no difference";
  EXPECT_FALSE(candidates.list[0].places.empty()) << "the kernel's own choice is a point of its space";
}

TEST(TuneCandidates, LeaveLaunchesThatOverlapTheirNeighbours) {
  const auto device = make_device("null:sm_90");
  const auto candidates = [&](std::int64_t rows) {
    Problem product = make_problem(definition(OpKind::linear),
                                   {TensorType{DType::bf16, {rows, 4096}}, TensorType{DType::bf16, {4096, 4096}}}, {});
    product.target = device->target();
    product.constant_inputs = 2;
    return tune_candidates(product, 1);
  };
  const TuneCandidates row = candidates(1), rows = candidates(512);
  ASSERT_EQ(row.list.size(), 1u);
  EXPECT_EQ(row.list[0].choice.kernel->name, "gemv.linear");
  EXPECT_GT(rows.list.size(), 100u);
}

}  // namespace
}  // namespace cermet

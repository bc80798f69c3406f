// What a tuner decides, over times that are functions.
#include "select/tune/tuner.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/select/landscape.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

using State = TriedCandidate::State;

const TuneOptions everything{.search = SearchKind::exhaustive, .seconds = 60};

TEST(Tuner, FindsTheFastest) {
  const Landscape landscape(bowl_space(), 3, bowl);
  for (const SearchKind kind : {SearchKind::bayes, SearchKind::random, SearchKind::exhaustive}) {
    const TuneReport report = tune(landscape.candidates(), landscape.bench(), {.search = kind, .seconds = 60});
    EXPECT_EQ(report.choice.config.to_string(), "a=5 b=3 c=6 fast=1") << name_of(kind);
    EXPECT_DOUBLE_EQ(report.gain, 3);
    EXPECT_EQ(report.end, TuneReport::End::exhausted);
    EXPECT_EQ(report.tried.size(), 1025u);
    EXPECT_EQ(report.candidates, 1025u);
    EXPECT_TRUE(report.tried.front().choice.config.empty());
  }
}

/// Times that scatter by half a percent.
TEST(Tuner, TwoTuningsAgreeOrDifferByNoise) {
  const Landscape landscape(bowl_space(), 3, bowl);
  constexpr double scatter = 0.005;
  const auto tuned = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto measured = [&](const Choice& choice) {
      return landscape.seconds(choice) * (1 + scatter * std::normal_distribution()(random));
    };
    TuneBench bench = landscape.bench();
    bench.time = [&](const Choice& choice, double) {
      const double seconds = measured(choice);
      return Timing{seconds, 0.67 * scatter * seconds};
    };
    return landscape.seconds(
        tune(landscape.candidates(), bench, {.search = SearchKind::bayes, .seed = seed, .seconds = 60, .most = 300})
            .choice);
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    EXPECT_NEAR(tuned(2 * seed) / tuned(2 * seed + 1), 1, 6 * scatter) << "three deviations of each; " << seed;
}

TEST(Tuner, StopsAtItsMostCandidates) {
  const Landscape landscape(bowl_space(), 3, bowl);
  const TuneReport report =
      tune(landscape.candidates(), landscape.bench(), {.search = SearchKind::bayes, .seconds = 60, .most = 90});
  EXPECT_EQ(report.tried.size(), 90u);
  EXPECT_EQ(report.end, TuneReport::End::budget);
  EXPECT_LT(landscape.seconds(report.choice), 1.1);
}

TEST(Tuner, KeepsItsBudgetWithinOneMeasurement) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneBench bench = landscape.bench();
  bench.time = [&](const Choice& choice, double) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return Timing{landscape.seconds(choice), 0};
  };
  const TuneReport report = tune(landscape.candidates(), bench, {.search = SearchKind::random, .seconds = 0.3});
  EXPECT_EQ(report.end, TuneReport::End::budget);
  EXPECT_LT(report.tried.size(), 31u);
  EXPECT_GT(report.tried.size(), 2u);
}

TEST(Tuner, KeepsWhatItLearnedWhenItIsStopped) {
  const Landscape landscape(bowl_space(), 3, bowl);
  int asked = 0;
  TuneOptions options{.search = SearchKind::random, .seconds = 60};
  options.stop = [&] { return ++asked > 40; };
  const TuneReport report = tune(landscape.candidates(), landscape.bench(), options);
  EXPECT_EQ(report.end, TuneReport::End::stopped);
  EXPECT_LT(report.tried.size(), 50u);
  double least = 3;
  for (const TriedCandidate& tried : report.tried) least = std::min(least, tried.timing.median);
  EXPECT_DOUBLE_EQ(landscape.seconds(report.choice), least);
  EXPECT_GT(report.gain, 1);
}

TEST(Tuner, KeepsTheChoiceWithoutTuningUnlessItIsSlowerBeyondNoise) {
  const Landscape landscape(bowl_space(), 1.005, bowl);  // the best is half a percent faster
  EXPECT_TRUE(tune(landscape.candidates(), landscape.bench(), everything).choice.config.empty());
  const Landscape slower(bowl_space(), 1.2, bowl);
  TuneBench bench = slower.bench();
  bench.compare = [](const Choice&, const Choice&) { return PairedTiming{{1.2, 0}, {1, 0}, 0.9, 0.2}; };
  const TuneReport noisy = tune(slower.candidates(), bench, everything);
  EXPECT_TRUE(noisy.choice.config.empty()) << "0.9 with noise of 0.2 is no gain";
  EXPECT_EQ(noisy.gain, 1);
  bench.compare = [](const Choice&, const Choice&) { return PairedTiming{{1.2, 0}, {1, 0}, 1.1, 0}; };
  EXPECT_TRUE(tune(slower.candidates(), bench, everything).choice.config.empty())
      << "what was measured once turns out to be slower";
}

/// What is stored is what the comparison in turn found, with its noise: another tuning that decides otherwise differs
/// by less.
TEST(Tuner, KeepsTheNoiseOfTheComparison) {
  const Landscape landscape(bowl_space(), 1.02, bowl);
  for (const double noise : {0.001, 0.05}) {
    TuneBench bench = landscape.bench();
    bench.compare = [&](const Choice& first, const Choice& second) {
      const double a = 1.1 * landscape.seconds(first),
                   b = 1.1 * landscape.seconds(second);  // at a lower clock than alone
      return PairedTiming{{a, 0}, {b, 0}, b / a, noise};
    };
    const TuneReport report = tune(landscape.candidates(), bench, everything);
    EXPECT_EQ(report.choice.config.empty(), noise > 0.02);
    EXPECT_DOUBLE_EQ(report.timing.median, 1.1 * landscape.seconds(report.choice));
    EXPECT_DOUBLE_EQ(report.timing.spread, noise * report.timing.median);
  }
}

TEST(Tuner, TriesTheNextWhereTheFastestTurnsOutNotToBe) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneBench bench = landscape.bench();
  bench.compare = [&](const Choice& first, const Choice& second) {
    const double ratio = second.config.at("c") == 6 ? 1.5 : landscape.seconds(second) / landscape.seconds(first);
    return PairedTiming{{}, {landscape.seconds(second), 0}, ratio, 0};
  };
  const TuneReport report = tune(landscape.candidates(), bench, everything);
  EXPECT_NE(report.choice.config.at("c"), 6);
  EXPECT_GT(report.gain, 2.5);
}

TEST(Tuner, TakesNothingThatIsSlowerAtAnotherSize) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneBench bench = landscape.bench();
  std::vector<std::string> asked;
  bench.elsewhere.push_back([&](const Choice&, const Choice& second) {
    asked.push_back(second.config.to_string());
    return PairedTiming{{}, {}, second.config.at("c") == 6 ? 1.2 : 0.9, 0.01};
  });
  const TuneReport report = tune(landscape.candidates(), bench, everything);
  EXPECT_NE(report.choice.config.at("c"), 6);
  EXPECT_EQ(asked.front(), "a=5 b=3 c=6 fast=1");
  bench.elsewhere.front() = [](const Choice&, const Choice&) { return PairedTiming{{}, {}, 1.2, 0.01}; };
  EXPECT_TRUE(tune(landscape.candidates(), bench, everything).choice.config.empty());
}

TEST(Tuner, TiesGoToTheChoiceWithoutTuningAndThenToTheFirst) {
  const Landscape flat(bowl_space(), 1, [](const Config&) { return 1.0; });
  EXPECT_TRUE(tune(flat.candidates(), flat.bench(), everything).choice.config.empty());
  const Landscape plateau(bowl_space(), 2, [](const Config& c) { return c.at("a") >= 2 ? 1.0 : 1.5; });
  for (const std::uint64_t seed : {1, 2, 3}) {
    const TuneReport report =
        tune(plateau.candidates(), plateau.bench(), {.search = SearchKind::random, .seed = seed, .seconds = 60});
    EXPECT_EQ(report.choice.config.to_string(), "a=2 b=0 c=0 fast=0") << "whatever the order of measuring";
  }
}

TEST(Tuner, LeavesOutAndReportsWhatIsWrongOrFails) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneBench bench = landscape.bench();
  std::vector<std::string> timed;
  bench.check = [](const Choice& choice) {
    return choice.config.at("c") == 6 ? std::string("result 0, compared element 0: expected 1, found 2") : "";
  };
  bench.time = [&](const Choice& choice, double) -> Timing {
    if (!choice.config.empty() && choice.config.at("c") == 5) fail(Status::out_of_memory, "memory: expected more");
    timed.push_back(choice.config.to_string());
    return {landscape.seconds(choice), 0};
  };
  const TuneReport report = tune(landscape.candidates(), bench, everything);
  EXPECT_EQ(report.choice.config.to_string(), "a=5 b=3 c=7 fast=1");
  for (const TriedCandidate& tried : report.tried) {
    if (tried.choice.config.empty()) continue;
    const std::int64_t c = tried.choice.config.at("c");
    EXPECT_EQ(tried.state, c == 6 ? State::wrong : c == 5 ? State::failed : State::measured);
    EXPECT_EQ(tried.reason, c == 6   ? "result 0, compared element 0: expected 1, found 2"
                            : c == 5 ? "memory: expected more"
                                     : "");
  }
  for (const std::string& text : timed)
    EXPECT_EQ(text.find("c=6"), std::string::npos) << "a wrong candidate is not timed";
}

TEST(Tuner, GivesHopelessCandidatesUp) {
  const Landscape landscape(bowl_space(), 1.5, bowl);
  TuneBench bench = landscape.bench();
  bench.time = [&](const Choice& choice, double hopeless) {
    Timing timing{landscape.seconds(choice), 0};
    timing.given_up = hopeless > 0 && timing.median > hopeless;
    return timing;
  };
  const TuneReport report = tune(landscape.candidates(), bench, everything);
  EXPECT_EQ(report.choice.config.to_string(), "a=5 b=3 c=6 fast=1");
  int given_up = 0;
  double least = 1.5;
  for (const TriedCandidate& tried : report.tried) {
    if (tried.state == State::given_up) {
      ++given_up;
      EXPECT_GT(tried.timing.median, 2 * least);
    } else {
      least = std::min(least, tried.timing.median);
    }
  }
  EXPECT_GT(given_up, 0);
}

TEST(Tuner, PassesOnWhyTheChoiceWithoutTuningCannotRun) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneBench bench = landscape.bench();
  bench.expect = [](const Choice&) { fail(Status::unsupported, "no device"); };
  EXPECT_EQ(error_text([&] { tune(landscape.candidates(), bench, everything); }), "no device");
}

TEST(Tuner, CompilesAheadWhatItMeasuresNext) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneBench bench = landscape.bench();
  std::vector<std::string> later, prepared;
  bench.prepare = [&](const std::vector<Choice>& choices) {
    for (const Choice& choice : choices) prepared.push_back(choice.config.to_string());
  };
  bench.prepare_later = [&](const std::vector<Choice>& choices) {
    for (const Choice& choice : choices) later.push_back(choice.config.to_string());
  };
  const TuneReport report =
      tune(landscape.candidates(), bench, {.search = SearchKind::random, .seconds = 60, .at_once = 3});
  EXPECT_EQ(prepared.size(), 1025u);
  ASSERT_EQ(later.size(), 1023u) << "all but the first two";
  for (std::size_t i = 0; i < later.size(); ++i) EXPECT_EQ(later[i], prepared[i + 2]);
  EXPECT_EQ(report.tried.size(), 1025u);
}

/// Where nothing compiles beside measuring, those that are likely next are compiled with a candidate that is not ready.
TEST(Tuner, CompilesInParallelWhatItIsLikelyToMeasure) {
  const Landscape landscape(bowl_space(), 3, bowl);
  TuneBench bench = landscape.bench();
  std::set<std::string> ready;
  std::size_t calls = 0, compiled = 0;
  bench.prepare = [&](const std::vector<Choice>& choices) {
    ++calls, compiled += choices.size();
    for (const Choice& choice : choices) ready.insert(choice.config.to_string());
  };
  bench.check = [&](const Choice& choice) { return ready.contains(choice.config.to_string()) ? "" : "not compiled"; };
  const TuneReport report =
      tune(landscape.candidates(), bench, {.search = SearchKind::bayes, .seconds = 60, .most = 100, .at_once = 4});
  for (const TriedCandidate& tried : report.tried) EXPECT_EQ(tried.state, State::measured) << tried.reason;
  EXPECT_EQ(ready.size(), compiled) << "each once";
  EXPECT_LT(calls, 75u);
  EXPECT_LT(compiled, 200u);
}

TEST(Tuner, TellsItsSearchEveryTimeBeforeTheNext) {
  const Landscape landscape(bowl_space(), 3, bowl);
  const TuneReport report = tune(landscape.candidates(), landscape.bench(),
                                 {.search = SearchKind::bayes, .seed = 3, .seconds = 60, .most = 100, .at_once = 8});
  TuneSearch search(landscape.candidates(), SearchKind::bayes, 3);
  for (const TriedCandidate& tried : report.tried) {
    const std::size_t candidate = search.next(1).front();
    EXPECT_EQ(tried.choice, landscape.candidates().list[candidate].choice);
    search.tell(candidate, landscape.seconds(tried.choice));
  }
}

TEST(Tuner, MakesAnEntryWithItsRivals) {
  const Landscape landscape(bowl_space(), 3, bowl);
  const TuneReport report =
      tune(landscape.candidates(), landscape.bench(), {.search = SearchKind::bayes, .seconds = 60, .most = 40});
  const TuningEntry entry = entry_of(report, {"region", "device", "versions"});
  EXPECT_EQ(entry.kernel, "landscape");
  EXPECT_EQ(entry.config, report.choice.config.to_string());
  EXPECT_EQ(entry.rivals.size(), 39u);
  EXPECT_TRUE(std::ranges::is_sorted(entry.rivals, {}, &TunedRival::seconds));
  EXPECT_EQ(std::ranges::count(entry.rivals, std::string("default"), &TunedRival::config), 1);
  EXPECT_EQ(entry.key.device, "device");
}

}  // namespace
}  // namespace cermet

#include "select/tune/tuner.hpp"

#include <algorithm>
#include <chrono>
#include <set>

namespace cermet {
namespace {

using Clock = std::chrono::steady_clock;

/// A launch that takes so many times the best is not measured further.
constexpr double hopeless_factor = 2;
/// Candidates that are compared with the choice without tuning, if the fastest turn out not to be.
constexpr std::size_t most_finalists = 3;
/// Differences below this are never taken for a gain: clocks drift.
constexpr double least_gain = 0.01;
/// Of the budget, what is kept for that.
constexpr double kept_share = 0.15;

class TunerRun {
 public:
  TunerRun(const TuneCandidates& candidates, const TuneBench& bench, const TuneOptions& options)
      : candidates_(candidates), bench_(bench), options_(options), search_(candidates, options.search, options.seed) {
    report_.candidates = candidates.list.size();
  }

  TuneReport run() {
    const Choice& own = candidates_.list.front().choice;
    if (bench_.prepare) bench_.prepare({own});
    bench_.expect(own);
    search_.next(1);
    const Timing timing = bench_.time(own, 0);
    search_.tell(0, timing.median);
    keep(0, {own, TriedCandidate::State::measured, timing});
    try_others();
    decide();
    report_.seconds = spent();
    return std::move(report_);
  }

 private:
  double spent() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  bool is_over() {
    if (options_.stop()) report_.end = TuneReport::End::stopped;
    else if (spent() > limit() || (options_.most > 0 && std::ssize(report_.tried) >= options_.most))
      report_.end = TuneReport::End::budget;
    else return false;
    return true;
  }

  /// The search gets each time before it proposes the next.
  void try_others() {
    for (;;) {
      if (is_over()) return;
      const std::vector<std::size_t> next = search_.next(1);
      if (next.empty() || !make_ready(next.front())) return;
      try_one(next.front());
    }
  }

  /// Compiles a candidate, and with it, or meanwhile, those that would be proposed next if nothing faster were found.
  /// False where the budget leaves no time.
  bool make_ready(std::size_t candidate) {
    if (!bench_.prepare) return true;
    const bool is_new = asked_for_.insert(candidate).second;
    if (!is_new && !bench_.prepare_later) return true;  // it was made ready with another
    std::vector<std::size_t> wanted{candidate}, likely = TuneSearch(search_).next(options_.at_once);
    std::erase_if(likely, [&](std::size_t i) { return !asked_for_.insert(i).second; });
    if (bench_.prepare_later) bench_.prepare_later(choices_of(likely));
    else wanted.insert(wanted.end(), likely.begin(), likely.end());
    if (report_.tried.size() > 1 && spent() + expected_prepare() > limit()) {
      report_.end = TuneReport::End::budget;
      return false;
    }
    prepare(wanted);
    return true;
  }

  double limit() const { return (1 - kept_share) * options_.seconds; }
  double expected_prepare() const { return std::max(options_.prepare_seconds, report_.prepare_seconds); }

  std::vector<Choice> choices_of(const std::vector<std::size_t>& batch) const {
    std::vector<Choice> choices;
    for (const std::size_t candidate : batch) choices.push_back(candidates_.list[candidate].choice);
    return choices;
  }

  /// One that does not compile fails again, by itself, when its turn comes.
  void prepare(const std::vector<std::size_t>& batch) {
    const auto begin = Clock::now();
    try {
      bench_.prepare(choices_of(batch));
    } catch (const Error& error) {
      if (error.status() == Status::cancelled) throw;
    }
    report_.prepare_seconds =
        std::max(report_.prepare_seconds, std::chrono::duration<double>(Clock::now() - begin).count());
  }

  void try_one(std::size_t candidate) {
    TriedCandidate tried{candidates_.list[candidate].choice};
    try {
      tried.reason = bench_.check(tried.choice);
      if (!tried.reason.empty()) tried.state = TriedCandidate::State::wrong;
      else tried.timing = bench_.time(tried.choice, hopeless_factor * best_);
      if (tried.timing.given_up) tried.state = TriedCandidate::State::given_up;
    } catch (const Error& error) {
      if (error.status() == Status::cancelled) throw;
      tried.state = TriedCandidate::State::failed;
      tried.reason = error.what();
    }
    const bool measured = tried.state == TriedCandidate::State::measured;
    search_.tell(candidate, measured ? std::optional(tried.timing.median) : std::nullopt);
    keep(candidate, std::move(tried));
  }

  void keep(std::size_t candidate, TriedCandidate tried) {
    if (tried.state == TriedCandidate::State::measured) {
      best_ = best_ > 0 ? std::min(best_, tried.timing.median) : tried.timing.median;
      measured_.push_back({candidate, report_.tried.size()});
    }
    report_.tried.push_back(std::move(tried));
    options_.on_progress(report_.tried.size(), candidates_.list.size(), best_);
  }

  const TriedCandidate& tried(std::size_t place) const { return report_.tried[measured_[place].tried]; }

  /// The fastest first; of those that differ by less than their noise from the fastest, the first of the space.
  void sort_measured() {
    std::ranges::stable_sort(measured_, {}, [&](const Measured& m) { return report_.tried[m.tried].timing.median; });
    const Timing fastest = tried(0).timing;
    const double tie = fastest.median + std::max(fastest.spread, least_gain * fastest.median);
    const auto end =
        std::ranges::find_if(measured_, [&](const Measured& m) { return report_.tried[m.tried].timing.median > tie; });
    std::sort(measured_.begin(), end, [](const Measured& a, const Measured& b) { return a.candidate < b.candidate; });
  }

  void decide() {
    sort_measured();
    const TriedCandidate& own = report_.tried.front();
    report_.choice = own.choice;
    report_.timing = own.timing;
    for (std::size_t i = 0; i < std::min(most_finalists, measured_.size()) && measured_[i].candidate != 0; ++i) {
      const auto [pair, is_faster] = compare_twice(own.choice, tried(i).choice);
      const bool is_taken = is_faster && !is_slower_elsewhere(tried(i).choice);
      report_.timing = is_taken ? pair.second : pair.first;
      report_.timing.spread = std::max(report_.timing.spread, pair.noise * report_.timing.median);
      if (!is_taken) continue;
      report_.choice = tried(i).choice;
      report_.gain = 1 / pair.ratio;
      return;
    }
  }

  /// Whether the second is faster in two comparisons, because what else a machine does may last for one; the comparison
  /// that says less for it.
  std::pair<PairedTiming, bool> compare_twice(const Choice& first, const Choice& second) const {
    const auto shows = [](const PairedTiming& pair) { return pair.ratio <= 1 - std::max(least_gain, pair.noise); };
    const PairedTiming pair = bench_.compare(first, second);
    if (!shows(pair)) return {pair, false};
    const PairedTiming again = bench_.compare(first, second);
    return {again.ratio > pair.ratio ? again : pair, shows(again)};
  }

  bool is_slower_elsewhere(const Choice& choice) const {
    return std::ranges::any_of(bench_.elsewhere, [&](const auto& compare) {
      const PairedTiming pair = compare(report_.tried.front().choice, choice);
      return pair.ratio > 1 + std::max(least_gain, pair.noise);
    });
  }

  struct Measured {
    std::size_t candidate, tried;  ///< places among all candidates and among those that were tried
  };
  const TuneCandidates& candidates_;
  const TuneBench& bench_;
  const TuneOptions& options_;
  TuneSearch search_;
  TuneReport report_;
  std::vector<Measured> measured_;
  std::set<std::size_t> asked_for_;  ///< to be made ready, now or later
  double best_ = 0;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

TuneReport tune(const TuneCandidates& candidates, const TuneBench& bench, const TuneOptions& options) {
  CERMET_ASSERT(!candidates.list.empty());
  return TunerRun(candidates, bench, options).run();
}

TuningEntry entry_of(const TuneReport& report, TuningKey key) {
  TuningEntry entry{.key = std::move(key),
                    .kernel = report.choice.kernel->name,
                    .config = report.choice.config.to_string(),
                    .seconds = report.timing.median,
                    .spread = report.timing.spread,
                    .date = tuning_date(),
                    .rivals = {}};
  for (const TriedCandidate& tried : report.tried)
    if (tried.state == TriedCandidate::State::measured && tried.choice != report.choice)
      entry.rivals.push_back(
          {tried.choice.kernel->name, tried.choice.config.to_string(), tried.timing.median, tried.timing.spread});
  std::ranges::stable_sort(entry.rivals, {}, &TunedRival::seconds);
  return entry;
}

}  // namespace cermet

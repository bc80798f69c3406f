// Looks for the fastest way to compute a region: proposes candidates, checks what they compute, measures them one at a
// time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "select/tune/meter.hpp"
#include "select/tune/search.hpp"
#include "select/tuning_entry.hpp"

namespace cermet {

/// What a tuner asks: a Meter, or in tests a function of the configuration.
struct TuneBench {
  /// Makes candidates ready before the first is measured: compiles their programs, in parallel. May be empty.
  std::function<void(const std::vector<Choice>&)> prepare = {};
  /// Says which will probably be asked for after those, so that they compile meanwhile. May be empty.
  std::function<void(const std::vector<Choice>&)> prepare_later = {};
  std::function<void(const Choice&)> expect;
  std::function<std::string(const Choice&)> check;
  std::function<Timing(const Choice&, double hopeless)> time;
  std::function<PairedTiming(const Choice& first, const Choice& second)> compare;
  /// The same at other sizes, where what is fastest must not be slower than without tuning.
  std::vector<std::function<PairedTiming(const Choice& first, const Choice& second)>> elsewhere = {};
};

/// What became of a candidate.
struct TriedCandidate {
  enum class State : std::uint8_t { measured, given_up, wrong, failed };
  Choice choice;
  State state = State::measured;
  Timing timing = {};       ///< of one that was measured or given up
  std::string reason = {};  ///< why it is wrong or failed
};

struct TuneOptions {
  SearchKind search = SearchKind::bayes;
  std::uint64_t seed = 0;
  double seconds = 10;      ///< budget; the candidate that is being measured when it ends is finished
  std::int64_t most = 0;    ///< candidates; 0: as many as the budget allows
  std::size_t at_once = 4;  ///< compiled in parallel, of those that are likely to be proposed next
  double prepare_seconds =
      0;  ///< what compiling so many is expected to take; where less is left of the budget it is not begun
  std::function<bool()> stop = [] { return false; };  ///< asked between candidates
  std::function<void(std::size_t tried, std::size_t all, double best)> on_progress = [](std::size_t, std::size_t,
                                                                                        double) {};
};

struct TuneReport {
  enum class End : std::uint8_t { exhausted, budget, stopped };
  std::vector<TriedCandidate> tried;  ///< in the order in which they were measured; the choice without tuning first
  std::size_t candidates = 0;         ///< all that there are
  Choice choice;                      ///< what is fastest
  Timing timing;  ///< of it, in turn with the other where they were compared; its spread is then no less than the noise
                  ///< of that
  /// What the choice without tuning took, measured in turn with the choice, as a multiple of the choice's time; 1 where
  /// they are the same.
  double gain = 1;
  End end = End::exhausted;
  double seconds = 0;          ///< that tuning took
  double prepare_seconds = 0;  ///< the longest that it waited for candidates to compile
};

/// Where the choice without tuning cannot run, throws its error. A candidate that fails, or computes something else, is
/// left out and reported. Of candidates whose times differ by less than noise, the choice without tuning is preferred,
/// then the first in the order of the space. What is fastest is measured once more in turn with the choice without
/// tuning, which stays unless it is slower beyond noise.
TuneReport tune(const TuneCandidates& candidates, const TuneBench& bench, const TuneOptions& options);

/// What a database stores for a report.
TuningEntry entry_of(const TuneReport& report, TuningKey key);

}  // namespace cermet

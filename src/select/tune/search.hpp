// In which order candidates are measured. Pure: it receives times and measures nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "select/tune/candidates.hpp"

namespace cermet {

enum class SearchKind : std::uint8_t { bayes, random, exhaustive };
/// Throws Error for another word.
SearchKind parse_search(std::string_view text);
std::string_view name_of(SearchKind kind);

/// exhaustive: all in the order of modelled times. random: in an order that follows from the seed. bayes: a
/// tree-structured Parzen estimator (Bergstra and others, 2011), whose first candidates are the cheapest by the models,
/// one for each modelled time, and a neighbour of what is much faster than all before; candidate 0, the choice without
/// tuning, is always first.
class TuneSearch {
 public:
  TuneSearch(const TuneCandidates& candidates, SearchKind kind, std::uint64_t seed);

  /// Up to `most` candidates that it has not given before; none when it has given all.
  std::vector<std::size_t> next(std::size_t most);
  /// Seconds that a candidate took; nothing where it was given up, failed or computed something else.
  void tell(std::size_t candidate, std::optional<double> seconds);

 private:
  struct Observation {
    std::size_t candidate;
    double seconds;  ///< infinite where none was given
  };
  std::size_t propose();
  std::optional<std::size_t> propose_near_best() const;
  std::size_t propose_by_estimate();

  const TuneCandidates& candidates_;
  SearchKind kind_;
  std::mt19937_64 random_;
  std::vector<std::size_t> order_;  ///< of what is given without an estimate
  std::vector<int> cost_places_;    ///< of each candidate: place among the modelled times, in buckets
  std::vector<bool> given_;
  bool advanced_ = false;  ///< one was much faster than all before, and no neighbour of it was proposed yet
  std::size_t next_ = 0, left_ = 0, startup_ = 0;
  std::vector<Observation> observations_;
  std::vector<std::size_t> pending_;  ///< proposed, without a time yet
};

}  // namespace cermet

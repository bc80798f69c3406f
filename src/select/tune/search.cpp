#include "select/tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "select/tune/parzen.hpp"

namespace cermet {
namespace {

constexpr std::size_t startup_candidates = 8;
constexpr double advance = 0.9;  ///< times the least so far: what is faster than that has a neighbour tried at once
constexpr std::size_t improved_candidates = 2;  ///< whose neighbours are tried
constexpr int estimated_every = 3;  ///< one proposal of so many is the estimator's, the others are neighbours
constexpr int explored_every =
    6;  ///< one proposal of so many is drawn from all that are left, because models and estimates may both be wrong

bool is_modelled(const TuneCandidate& candidate) { return candidate.modelled > 0; }

/// By modelled time, those first that their kernel lists; those without a model last, in their order.
std::vector<std::size_t> by_cost(const std::vector<TuneCandidate>& list) {
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (is_modelled(list[a]) != is_modelled(list[b])) return is_modelled(list[a]);
    return std::pair(list[a].modelled, !list[a].is_listed) < std::pair(list[b].modelled, !list[b].is_listed);
  });
  return order;
}

/// The same with the first of each kernel and modelled time before the others: models do not see every field, and alike
/// candidates teach little.
std::vector<std::size_t> unlike_first(const std::vector<TuneCandidate>& list, const std::vector<std::size_t>& order) {
  std::vector<std::size_t> first, later;
  std::set<std::pair<const Kernel*, double>> seen;
  for (const std::size_t i : order)
    (seen.emplace(list[i].choice.kernel, list[i].modelled).second ? first : later).push_back(i);
  first.insert(first.end(), later.begin(), later.end());
  return first;
}

/// How far two points are apart that differ in one field alone; 0 for others.
int steps_between(const std::vector<int>& a, const std::vector<int>& b) {
  if (a.size() != b.size()) return 0;
  int steps = 0;
  for (std::size_t f = 0; f < a.size(); ++f) {
    if (a[f] == b[f]) continue;
    if (steps > 0) return 0;
    steps = std::abs(a[f] - b[f]);
  }
  return steps;
}

/// In an order that the seed gives, alike on every machine.
void shuffle(std::vector<std::size_t>& order, std::mt19937_64& random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
}

}  // namespace

SearchKind parse_search(std::string_view text) {
  for (const SearchKind kind : {SearchKind::bayes, SearchKind::random, SearchKind::exhaustive})
    if (text == name_of(kind)) return kind;
  fail(Status::invalid_argument, "--search: expected bayes, random or exhaustive, found {}", quote(text));
}

std::string_view name_of(SearchKind kind) {
  return kind == SearchKind::bayes ? "bayes" : kind == SearchKind::random ? "random" : "exhaustive";
}

TuneSearch::TuneSearch(const TuneCandidates& candidates, SearchKind kind, std::uint64_t seed)
    : candidates_(candidates),
      kind_(kind),
      random_(seed),
      given_(candidates.list.size()),
      left_(candidates.list.size()) {
  const std::vector<TuneCandidate>& list = candidates.list;
  const std::vector<std::size_t> costs = by_cost(list);
  cost_places_.resize(list.size());
  for (std::size_t place = 0; place < costs.size(); ++place)
    cost_places_[costs[place]] = static_cast<int>(place * ParzenFields::cost_buckets / costs.size());
  order_ = kind == SearchKind::bayes ? unlike_first(list, costs) : costs;
  if (kind == SearchKind::random) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    shuffle(order_, random_);
  }
  if (!list.empty()) {  // the choice without tuning, which all others are compared with
    std::erase(order_, std::size_t{0});
    order_.insert(order_.begin(), std::size_t{0});
  }
  startup_ = kind == SearchKind::bayes ? std::min(startup_candidates, list.size()) : list.size();
}

std::vector<std::size_t> TuneSearch::next(std::size_t most) {
  std::vector<std::size_t> given;
  while (given.size() < most && left_ > 0) {
    const std::size_t candidate = propose();
    given_[candidate] = true;
    --left_;
    pending_.push_back(candidate);
    given.push_back(candidate);
  }
  return given;
}

void TuneSearch::tell(std::size_t candidate, std::optional<double> seconds) {
  std::erase(pending_, candidate);
  const double least = observations_.empty() ? 0 : std::ranges::min(observations_, {}, &Observation::seconds).seconds;
  advanced_ = advanced_ || (seconds && *seconds < advance * least);
  observations_.push_back({candidate, seconds ? *seconds : std::numeric_limits<double>::infinity()});
}

std::size_t TuneSearch::propose() {
  const std::size_t count = candidates_.list.size() - left_;
  const bool estimates = kind_ == SearchKind::bayes && count >= startup_ && !observations_.empty();
  if (estimates && count % explored_every != 0) {
    const std::optional<std::size_t> near = count % estimated_every != 0 ? propose_near_best() : std::nullopt;
    return near ? *near : propose_by_estimate();
  }
  if (estimates) {
    std::size_t skip = random_() % left_;
    for (std::size_t i = 0;; ++i)
      if (!given_[i] && skip-- == 0) return i;
  }
  if (kind_ == SearchKind::bayes && std::exchange(advanced_, false))
    if (const std::optional<std::size_t> near = propose_near_best()) return *near;
  while (given_[order_[next_]]) ++next_;
  return order_[next_];
}

/// The neighbour of the fastest, or of the second, that differs in one field alone: by modelled time, then by how far
/// the field's value is.
std::optional<std::size_t> TuneSearch::propose_near_best() const {
  std::vector<Observation> sorted = observations_;
  std::ranges::stable_sort(sorted, {}, &Observation::seconds);
  const std::vector<TuneCandidate>& list = candidates_.list;
  for (std::size_t i = 0; i < std::min(improved_candidates, sorted.size()) && std::isfinite(sorted[i].seconds); ++i) {
    const TuneCandidate& best = list[sorted[i].candidate];
    std::optional<std::size_t> nearest;
    std::pair<double, int> least;
    for (std::size_t c = 0; c < list.size(); ++c) {
      const int steps =
          given_[c] || list[c].choice.kernel != best.choice.kernel ? 0 : steps_between(list[c].places, best.places);
      if (steps == 0) continue;
      const std::pair<double, int> rank(list[c].modelled, steps);
      if (!nearest || rank < least) nearest = c, least = rank;
    }
    if (nearest) return nearest;
  }
  return std::nullopt;
}

std::size_t TuneSearch::propose_by_estimate() {
  std::vector<Observation> sorted = observations_;
  std::ranges::stable_sort(sorted, {}, &Observation::seconds);
  const auto good = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(sorted.size()))));
  ParzenFields likely(candidates_, cost_places_), others(candidates_, cost_places_);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    (i < good && std::isfinite(sorted[i].seconds) ? likely : others).add(sorted[i].candidate);
  for (const std::size_t candidate : pending_)
    others.add(candidate);  // so that candidates that are proposed together differ
  std::optional<std::size_t> best;
  double most = 0;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (given_[i]) continue;
    const double score = likely.log_density(i) - others.log_density(i);
    if (!best || score > most) best = i, most = score;
  }
  return *best;
}

}  // namespace cermet

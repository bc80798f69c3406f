// What all candidates of a call took on a GPU, as bench/tune_tables.py records it: searches and models are held against it without one.
#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "io/json_file.hpp"
#include "kernel/cuda/task.hpp"
#include "select/tune/fit.hpp"
#include "select/tune/search.hpp"

namespace cermet {

/// A region with its candidates as they are now, and what those took that were recorded.
class RecordedTable {
 public:
  /// `json`: one of the record's tables. Candidates are told by what they compile, so that a record outlives the names of configurations.
  RecordedTable(const Json& json, const Target* target) : name(fmt::format("{} {}", json.at("op").as_string(), json.at("shape").as_string())) {
    region = region_of_tuning_text(json.at("region").as_string(), target);
    candidates = tune_candidates(region, 1);
    seconds.resize(candidates.list.size());
    std::map<Way, std::size_t> known;
    for (std::size_t i = 0; i < candidates.list.size(); ++i) known.emplace(way_of(candidates.list[i].choice), i);
    const Selection selection = explain_selection(region, {.tuned = false});
    for (const Json row : json.at("tried").as_array()) {
      if (row.size() < 4) continue;  // it was given up, or failed
      const auto kernel = std::ranges::find_if(selection.candidates, [&](const Candidate& c) { return c.kernel->name == row.at(0).as_string(); });
      const double measured = 1e-6 * row.at(2).as_number();
      least = std::min(least, measured);
      if (kernel == selection.candidates.end() || kernel->decline) continue;
      const auto found = known.find(way_of({*kernel->kernel, parse_config(row.at(1).as_string())}));
      if (found != known.end()) seconds[found->second] = measured;
    }
  }

  /// Least time / the least recorded, after each candidate that a search measures; infinite until one was recorded.
  std::vector<double> curve(SearchKind kind, std::uint64_t seed) const {
    TuneSearch search(candidates, kind, seed);
    std::vector<double> ratios;
    double best = std::numeric_limits<double>::infinity();
    for (auto batch = search.next(1); !batch.empty(); batch = search.next(1))
      for (const std::size_t i : batch) {
        search.tell(i, seconds[i]);
        if (seconds[i]) best = std::min(best, *seconds[i]);
        ratios.push_back(best / least);
      }
    return ratios;
  }

  std::string name;
  Region region;
  TuneCandidates candidates;
  std::vector<std::optional<double>> seconds;  ///< by candidate
  double least = std::numeric_limits<double>::infinity();

 private:
  using Way = std::tuple<std::string, std::vector<cuda::Program>, std::string>;
  Way way_of(const Choice& choice) const {
    if (!choice.kernel->programs) return {choice.kernel->name, {}, choice.config.to_string()};
    return {choice.kernel->name, choice.kernel->programs(region, choice.config), {}};
  }
};

inline std::vector<RecordedTable> recorded_tables(const std::filesystem::path& file, const Target* target) {
  const JsonDocument document = JsonDocument::read(file);
  std::vector<RecordedTable> tables;
  for (const Json table : document.root().at("tables").as_array()) tables.emplace_back(table, target);
  return tables;
}

}  // namespace cermet

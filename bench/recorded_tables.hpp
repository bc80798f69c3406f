// What all candidates of a call took, as bench/tune_tables.py records it: searches and models are held against it,
// those of a GPU without one.
#pragma once

#include <cstdlib>
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
  /// `json`: one of the record's tables; `threads`: of a CPU's record. A GPU's candidates are identified by what they
  /// compile, so that a record outlives the names of configurations; a CPU's are those of this machine.
  RecordedTable(const Json& json, const Target* target, int threads = 1)
      : name(fmt::format("{} {}", json.at("op").as_string(), json.at("shape").as_string())) {
    region = region_of_tuning_text(json.at("region").as_string(), target);
    candidates = tune_candidates(region, threads);
    seconds.resize(candidates.list.size());
    std::map<Way, std::size_t> known;
    for (std::size_t i = 0; i < candidates.list.size(); ++i) known.emplace(way_of(candidates.list[i].choice), i);
    const Selection selection = explain_selection(region, {.threads = threads, .tuned = false});
    for (const Json row : json.at("tried").as_array()) {
      if (row.size() < 4) continue;  // it was given up, or failed
      const auto kernel = std::ranges::find_if(
          selection.candidates, [&](const Candidate& c) { return c.kernel->name == row.at(0).as_string(); });
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

/// Threads of a CPU's record, by the end of its device's text ("..., L3 32768 KiB, 8 threads"); nothing for a GPU's.
inline std::optional<int> threads_of(std::string_view device) {
  constexpr std::string_view end = " threads";
  if (!device.ends_with(end)) return std::nullopt;
  device.remove_suffix(end.size());
  return std::atoi(std::string(device.substr(device.rfind(' ') + 1)).c_str());
}

/// `gpu`: what stands for the GPU of a GPU's record.
inline std::vector<RecordedTable> recorded_tables(const std::filesystem::path& file, const Target* gpu) {
  const JsonDocument document = JsonDocument::read(file);
  const std::optional<int> threads = threads_of(document.root().at("device").as_string());
  std::vector<RecordedTable> tables;
  for (const Json table : document.root().at("tables").as_array())
    tables.emplace_back(table, threads ? nullptr : gpu, threads.value_or(1));
  return tables;
}

}  // namespace cermet

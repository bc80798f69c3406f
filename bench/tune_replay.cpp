// How near searches come to the best of all candidates, and how near the choice without tuning is, by recorded tables:
// needs no GPU, and for a CPU's record that machine or one like it.
//   build/bin/bench_tune_replay bench/results/h200/tune/tables.json [--json]
//   build/bin/bench_tune_replay bench/results/h200/tune/tables.json --wrong-models 0.3
// The second: with every modelled time off by a factor whose logarithm has that deviation, and another candidate in
// place of the choice without tuning.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include "device/device.hpp"
#include "io/json_value.hpp"
#include "recorded_tables.hpp"

namespace cermet {
namespace {

constexpr std::uint64_t seeds = 51;

/// Of all seeds the median, after so many candidates.
double median_after(const std::vector<std::vector<double>>& curves, std::size_t count) {
  std::vector<double> values;
  for (const auto& curve : curves) values.push_back(curve[std::min(count, curve.size()) - 1]);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Of all that a table's models find alike the same factor, and any recorded candidate first.
RecordedTable with_wrong_models(RecordedTable table, double deviation, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> logarithm(0, deviation);
  std::map<std::pair<const Kernel*, double>, double> factors;
  for (TuneCandidate& candidate : table.candidates.list) {
    const auto [found, is_new] = factors.try_emplace({candidate.choice.kernel, candidate.modelled}, 1);
    if (is_new) found->second = std::exp(logarithm(random));
    candidate.modelled *= found->second;
  }
  std::size_t first = 0;
  do first = random() % table.candidates.list.size();
  while (!table.seconds[first]);
  std::swap(table.candidates.list[0], table.candidates.list[first]);
  std::swap(table.seconds[0], table.seconds[first]);
  return table;
}

int replay_with_wrong_models(const std::vector<RecordedTable>& tables, double deviation) {
  constexpr double most = 9;  // where nothing that was recorded has been measured yet
  std::size_t near = 0;
  double logarithms = 0;
  for (const RecordedTable& table : tables) {
    const std::size_t tenth = (table.candidates.list.size() + 9) / 10;
    std::vector<std::vector<double>> curves;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      curves.push_back(with_wrong_models(table, deviation, seed).curve(SearchKind::bayes, seed));
      logarithms += std::log(std::min(most, curves.back()[tenth - 1])) / static_cast<double>(seeds * tables.size());
    }
    near += median_after(curves, tenth) < 1.02 ? 1 : 0;
  }
  fmt::print(
      "after a tenth of the candidates within 2 % of the least: {} of {} tables by the medians of {} seeds; {:.4f} "
      "times the least, geometric mean\n",
      near, tables.size(), seeds, std::exp(logarithms));
  return 0;
}

JsonValue replay(const RecordedTable& table, bool prints) {
  const std::size_t all = table.candidates.list.size(), tenth = (all + 9) / 10;
  JsonValue json{{"name", table.name}, {"candidates", all}, {"tenth", tenth}, {"curves", JsonValue::object()}};
  std::string text;
  for (const SearchKind kind : {SearchKind::bayes, SearchKind::random, SearchKind::exhaustive}) {
    std::vector<std::vector<double>> curves;
    for (std::uint64_t seed = 0; seed < (kind == SearchKind::exhaustive ? 1 : seeds); ++seed)
      curves.push_back(table.curve(kind, seed));
    JsonValue curve = JsonValue::array();
    for (std::size_t count = 1; count <= all; ++count)
      curve.push_back(std::isfinite(median_after(curves, count)) ? JsonValue(median_after(curves, count))
                                                                 : JsonValue());
    json["curves"][std::string(name_of(kind))] = std::move(curve);
    text += fmt::format("{:>7.3f}{:>7.3f}{:>7.3f}{:>7.3f}", median_after(curves, tenth), median_after(curves, 8),
                        median_after(curves, 16), median_after(curves, 32));
  }
  json["untuned"] = table.seconds[0] ? JsonValue(*table.seconds[0] / table.least) : JsonValue();
  if (prints)
    fmt::print("{:70.70} {:>4}{:>4} {:>6.3f} {}\n", table.name, all, tenth,
               table.seconds[0].value_or(NAN) / table.least, text);
  return json;
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) {
  using namespace cermet;
  if (argc < 2)
    return fmt::print(stderr, "usage: bench_tune_replay TABLES.json [--json | --wrong-models DEVIATION]\n"), 2;
  const bool is_json = argc > 2 && std::string(argv[2]) == "--json";
  const auto device = make_device("null:sm_90");
  JsonValue list = JsonValue::array();
  if (argc > 3 && std::string(argv[2]) == "--wrong-models")
    return replay_with_wrong_models(recorded_tables(argv[1], device->target()), std::atof(argv[3]));
  if (!is_json)
    fmt::print(
        "least time / least of all after a tenth, 8, 16 and 32 candidates: bayes, random, by modelled time; medians of "
        "{} seeds\n",
        seeds);
  try {
    for (const RecordedTable& table : recorded_tables(argv[1], device->target()))
      list.push_back(replay(table, !is_json));
  } catch (const Error& error) {
    return fmt::print(stderr, "{}\n", error.what()), 1;
  }
  if (is_json) fmt::print("{}\n", list.dump());
}

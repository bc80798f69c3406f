// How near searches come to the best of all candidates, and how near the choice without tuning is, by recorded tables: needs no GPU.
//   build/bin/bench_tune_replay bench/results/h200/tune/tables.json [--json]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

JsonValue replay(const RecordedTable& table, bool prints) {
  const std::size_t all = table.candidates.list.size(), tenth = (all + 9) / 10;
  JsonValue json{{"name", table.name}, {"candidates", all}, {"tenth", tenth}, {"curves", JsonValue::object()}};
  std::string text;
  for (const SearchKind kind : {SearchKind::bayes, SearchKind::random, SearchKind::exhaustive}) {
    std::vector<std::vector<double>> curves;
    for (std::uint64_t seed = 0; seed < (kind == SearchKind::exhaustive ? 1 : seeds); ++seed) curves.push_back(table.curve(kind, seed));
    JsonValue curve = JsonValue::array();
    for (std::size_t count = 1; count <= all; ++count)
      curve.push_back(std::isfinite(median_after(curves, count)) ? JsonValue(median_after(curves, count)) : JsonValue());
    json["curves"][std::string(name_of(kind))] = std::move(curve);
    text += fmt::format("{:>7.3f}{:>7.3f}{:>7.3f}{:>7.3f}", median_after(curves, tenth), median_after(curves, 8), median_after(curves, 16),
                        median_after(curves, 32));
  }
  json["untuned"] = table.seconds[0] ? JsonValue(*table.seconds[0] / table.least) : JsonValue();
  if (prints) fmt::print("{:70.70} {:>4}{:>4} {:>6.3f} {}\n", table.name, all, tenth, table.seconds[0].value_or(NAN) / table.least, text);
  return json;
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) {
  using namespace cermet;
  if (argc < 2) return fmt::print(stderr, "usage: bench_tune_replay TABLES.json [--json]\n"), 2;
  const bool is_json = argc > 2 && std::string(argv[2]) == "--json";
  const auto device = make_device("null:sm_90");
  JsonValue list = JsonValue::array();
  if (!is_json) fmt::print("least time / least of all after a tenth, 8, 16 and 32 candidates: bayes, random, by modelled time; medians of {} seeds\n", seeds);
  try {
    for (const RecordedTable& table : recorded_tables(argv[1], device->target())) list.push_back(replay(table, !is_json));
  } catch (const Error& error) {
    return fmt::print(stderr, "{}\n", error.what()), 1;
  }
  if (is_json) fmt::print("{}\n", list.dump());
}

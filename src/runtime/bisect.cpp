#include "runtime/bisect.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace cermet {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double difference(double expected, double found) {
  if (expected == found || (std::isnan(expected) && std::isnan(found))) return 0;
  const double apart = std::abs(found - expected);
  return std::isnan(apart) ? infinite : apart;
}

WorstElement compare(const RunValue& expected, const RunValue& found) {
  WorstElement worst{expected.name};
  if (expected.elements.size() != found.elements.size()) return {expected.name, 0, 0, 0, infinite};
  double largest = 0;
  for (const double x : expected.elements)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < expected.elements.size(); ++i) {
    const double apart = difference(expected.elements[i], found.elements[i]);
    const double error = apart == 0 ? 0 : largest > 0 ? apart / largest : infinite;
    if (i == 0 || error > worst.error) worst = {expected.name, i, expected.elements[i], found.elements[i], error};
  }
  return worst;
}

class Bisection {
 public:
  Bisection(const BisectRun& run, FusionOptions options) : run_(run), options_(std::move(options)) {}

  std::vector<RunValue> results(std::size_t changes, std::vector<std::string> keep = {}) {
    ++runs;
    made_ = {};
    made_.limit = static_cast<std::int64_t>(changes);
    made_.keep = std::move(keep);
    options_.changes = &made_;
    return run_(options_);
  }
  const std::vector<Change>& made() const { return made_.made; }

  std::size_t runs = 0;

 private:
  const BisectRun& run_;
  FusionOptions options_;
  Changes made_;
};

std::vector<RunValue> named(const std::vector<RunValue>& values, const std::vector<std::string>& names) {
  std::vector<RunValue> list;
  for (const RunValue& value : values)
    if (std::ranges::find(names, value.name) != names.end()) list.push_back(value);
  return list;
}

}  // namespace

WorstElement compare_runs(const std::vector<RunValue>& expected, const std::vector<RunValue>& found) {
  WorstElement worst;
  for (const RunValue& value : expected) {
    const auto other = std::ranges::find(found, value.name, &RunValue::name);
    const WorstElement here =
        other == found.end() ? WorstElement{value.name, 0, 0, 0, infinite} : compare(value, *other);
    if (worst.value.empty() || here.error > worst.error) worst = here;
  }
  return worst;
}

BisectReport bisect(const BisectRun& run, FusionOptions options, double tolerance) {
  require(tolerance >= 0, "--tolerance: expected a number from 0, found {}", tolerance);
  Bisection bisection(run, std::move(options));
  const std::vector<RunValue> expected = bisection.results(0);
  BisectReport report;
  report.whole = compare_runs(expected, bisection.results(std::numeric_limits<std::uint32_t>::max()));
  report.changes = bisection.made().size();
  std::size_t good = 0, bad = report.changes;
  report.with = report.whole;
  while (report.whole.error > tolerance && bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    const WorstElement worst = compare_runs(expected, bisection.results(middle));
    (worst.error > tolerance ? bad : good) = middle;
    if (worst.error > tolerance) report.with = worst;
  }
  if (report.whole.error > tolerance) {
    CERMET_ASSERT(bad > 0);
    report.position = bad - 1;
    const std::vector<RunValue> with = bisection.results(bad);
    report.culprit = bisection.made().at(report.position);
    if (const std::vector<std::string> names = report.culprit->results; !names.empty())
      report.block =
          compare_runs(named(bisection.results(bad - 1, names), names), named(bisection.results(bad, names), names));
  }
  report.runs = bisection.runs;
  return report;
}

}  // namespace cermet

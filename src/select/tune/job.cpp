#include "select/tune/job.hpp"

#include <algorithm>
#include <set>

#include "op/operator.hpp"
#include "select/tuning_key.hpp"

namespace cermet {
namespace {

std::vector<cuda::Program> programs_of(const Region& region, const std::vector<Choice>& choices) {
  std::vector<cuda::Program> programs;
  for (const Choice& choice : choices)
    if (choice.kernel->programs) std::ranges::move(choice.kernel->programs(region, choice.config), std::back_inserter(programs));
  return programs;
}

/// Time to spend on a comparison in turn: as much as on ten candidates.
double compare_seconds(const MeterOptions& metering) { return 10 * metering.seconds; }

}  // namespace

Region with_sizes(const Region& region, const SymbolValues& values) {
  Region result = region;
  for (RegionNode& node : result.nodes) {
    std::vector<std::optional<TensorType>> types;
    for (const auto& type : node.problem.inputs) types.push_back(type ? std::optional(TensorType{type->dtype, to_dims(bind(type->dims, values))}) : type);
    Problem problem = make_problem(definition(node.problem), std::move(types), node.problem.attributes);
    problem.constant_inputs = node.problem.constant_inputs;
    problem.target = node.problem.target;
    node.problem = std::move(problem);
  }
  return result;
}

Region without_symbols(const Region& region) { return with_sizes(region, region.maximum()); }

std::optional<Symbol> only_symbol(const Region& region) {
  const std::set<Symbol> symbols = symbols_of(region);
  return symbols.size() == 1 ? std::optional(*symbols.begin()) : std::nullopt;
}

std::vector<SymbolValues> sizes_of(const TuneJob& job) {
  const std::optional<Symbol> symbol = only_symbol(job.region);
  std::vector<SymbolValues> sizes{job.region.maximum()};
  if (!symbol) return sizes;
  const std::int64_t most = job.region.maximum()[*symbol];
  std::set<std::int64_t, std::greater<>> others;
  for (const std::int64_t size : {most / 4, most / 16, job.least})
    if (size >= job.least && size >= 1 && size < most) others.insert(size);
  for (const std::int64_t size : others) {
    sizes.push_back(job.region.maximum());
    sizes.back().set(*symbol, size);
  }
  return sizes;
}

std::size_t planned_candidates(const TuneMeans& means) {
  constexpr double program_seconds = 2, seconds_around = 0.04;  // 16 cores took 1.3 to 1.6 s each; operands, checks and capturing
  const double each = means.budget / static_cast<double>(means.regions);
  return static_cast<std::size_t>(std::max(2.0, std::min(each * means.cores / program_seconds, each / (means.seconds + seconds_around))));
}

std::vector<cuda::Program> first_programs(const TuneJob& job, const TunePlace& place, const TuneOptions& options) {
  const TuneCandidates candidates = tune_candidates(job.region, place.pool.size());
  TuneSearch search(candidates, options.search, options.seed);
  std::vector<Choice> choices;
  for (const std::size_t candidate : search.next(1 + options.at_once)) choices.push_back(candidates.list[candidate].choice);
  return programs_of(job.region, choices);
}

TuneReport tune(const TuneJob& job, const TunePlace& place, const MeterOptions& metering, const TuneOptions& options) {
  const TuneCandidates candidates = tune_candidates(job.region, place.pool.size());
  const std::vector<SymbolValues> sizes = sizes_of(job);
  const Region largest = with_sizes(job.region, sizes.front());
  Meter meter(job.region, largest, place.pool, place.queue, metering);
  TuneBench bench{.expect = [&](const Choice& choice) { meter.expect(choice); },
                  .check = [&](const Choice& choice) { return meter.check(choice); },
                  .time = [&](const Choice& choice, double hopeless) { return meter.time(choice, hopeless); },
                  .compare = [&](const Choice& first, const Choice& second) { return meter.compare(first, second, compare_seconds(metering)); }};
  for (std::size_t i = 1; i < sizes.size(); ++i)
    bench.elsewhere.push_back([&, i](const Choice& first, const Choice& second) {
      const Region sized = with_sizes(job.region, sizes[i]);
      return Meter(job.region, sized, place.pool, place.queue, metering).compare(first, second, compare_seconds(metering) / 2);
    });
  if (place.queue.programs) {
    bench.prepare = [&](const std::vector<Choice>& choices) {
      const std::vector<cuda::Program> programs = programs_of(job.region, choices);
      if (place.ahead) place.ahead->leave(programs);
      place.queue.programs->prepare(programs);
    };
    if (place.ahead) bench.prepare_later = [&](const std::vector<Choice>& choices) { place.ahead->want(programs_of(job.region, choices)); };
  }
  return tune(candidates, bench, options);
}

}  // namespace cermet

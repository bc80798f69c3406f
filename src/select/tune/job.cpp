#include "select/tune/job.hpp"

#include <algorithm>
#include <iterator>

#include "select/tune/job_sizes.hpp"

namespace cermet {
namespace {

std::vector<cuda::Program> programs_of(const Region& region, const std::vector<Choice>& choices) {
  std::vector<cuda::Program> programs;
  for (const Choice& choice : choices)
    if (choice.kernel->programs)
      std::ranges::move(choice.kernel->programs(region, choice.config), std::back_inserter(programs));
  return programs;
}

/// Time to spend on a comparison in turn: as much as on ten candidates.
double compare_seconds(const MeterOptions& metering) { return 10 * metering.seconds; }

}  // namespace

std::size_t planned_candidates(const TuneMeans& means) {
  constexpr double program_seconds = 2,
                   seconds_around = 0.04;  // 16 cores took 1.3 to 1.6 s each; operands, checks and capturing
  const double each = means.budget / static_cast<double>(means.regions);
  return static_cast<std::size_t>(
      std::max(2.0, std::min(each * means.cores / program_seconds, each / (means.seconds + seconds_around))));
}

std::vector<cuda::Program> first_programs(const TuneJob& job, const TuneDevice& place, const TuneOptions& options) {
  const TuneCandidates candidates = tune_candidates(job.region, place.pool.size());
  TuneSearch search(candidates, options.search, options.seed);
  std::vector<Choice> choices;
  for (const std::size_t candidate : search.next(1 + options.at_once))
    choices.push_back(candidates.list[candidate].choice);
  return programs_of(job.region, choices);
}

TuneReport tune(const TuneJob& job, const TuneDevice& place, const MeterOptions& metering, const TuneOptions& options) {
  const TuneCandidates candidates = tune_candidates(job.region, place.pool.size());
  const std::vector<SymbolValues> sizes = sizes_of(job);
  const Region largest = with_sizes(job.region, sizes.front());
  Meter meter(job.region, largest, place.pool, place.queue, metering);
  TuneBench bench{
      .expect = [&](const Choice& choice) { meter.expect(choice); },
      .check = [&](const Choice& choice) { return meter.check(choice); },
      .time = [&](const Choice& choice, double hopeless) { return meter.time(choice, hopeless); },
      .compare = [&](const Choice& first,
                     const Choice& second) { return meter.compare(first, second, compare_seconds(metering)); }};
  for (std::size_t i = 1; i < sizes.size(); ++i)
    bench.elsewhere.push_back([&, i](const Choice& first, const Choice& second) {
      const Region sized = with_sizes(job.region, sizes[i]);
      return Meter(job.region, sized, place.pool, place.queue, metering)
          .compare(first, second, compare_seconds(metering) / 2);
    });
  if (place.queue.programs) {
    bench.prepare = [&](const std::vector<Choice>& choices) {
      const std::vector<cuda::Program> programs = programs_of(job.region, choices);
      if (place.ahead) place.ahead->leave(programs);
      place.queue.programs->prepare(programs);
    };
    if (place.ahead)
      bench.prepare_later = [&](const std::vector<Choice>& choices) {
        place.ahead->want(programs_of(job.region, choices));
      };
  }
  return tune(candidates, bench, options);
}

}  // namespace cermet

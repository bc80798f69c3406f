// A region that is to be tuned, at the sizes that its launches have.
#pragma once

#include <cstdint>
#include <vector>

#include "select/tune/compile_ahead.hpp"
#include "select/tune/job_sizes.hpp"
#include "select/tune/tuner.hpp"

namespace cermet {

struct TuneDevice {
  ThreadPool& pool;
  DeviceQueue queue;              ///< null: the CPU
  CompileAhead* ahead = nullptr;  ///< of a queue with programs
};

/// What tuning so many regions is given.
struct TuneMeans {
  double budget = 60, seconds = 0.02;  ///< for everything, and for the timed launches of a candidate
  std::size_t regions = 1;
  unsigned cores = 1;  ///< that compile
};
/// Candidates of a GPU that each region can have measured beside its untuned choice, two at least: compilers on all
/// cores take a few seconds for each, and one is measured at a time. It does not depend on the clock, so that two
/// tunings with one budget measure the same candidates.
std::size_t planned_candidates(const TuneMeans& means);

/// Programs of the candidates that tuning the job would measure first.
std::vector<cuda::Program> first_programs(const TuneJob& job, const TuneDevice& place, const TuneOptions& options);
/// Measures at the maxima, and what is fastest there also at the other sizes, where it must not be slower than without
/// tuning.
TuneReport tune(const TuneJob& job, const TuneDevice& place, const MeterOptions& metering, const TuneOptions& options);

}  // namespace cermet

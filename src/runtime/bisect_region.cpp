#include "runtime/bisect_region.hpp"

#include <bit>
#include <cstring>

#include "op/schema/reference.hpp"
#include "runtime/super_kernel/super_region.hpp"

namespace cermet {
namespace {

/// The first of the results whose bits differ; its element and how many there are.
std::optional<RegionFault> find_difference(const std::vector<OwnedTensor>& expected,
                                           const std::vector<OwnedTensor>& found) {
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const TensorView &one = expected[r].view, &other = found[r].view;
    if (std::memcmp(one.data, other.data, static_cast<std::size_t>(dense_bytes(one.dtype, one.shape))) == 0) continue;
    RegionFault fault;
    fault.result = r;
    fault.elements = static_cast<std::size_t>(one.elements());
    for (std::size_t i = 0; i < fault.elements; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double a = load(one, at), b = load(other, at);
      if (std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) continue;
      if (fault.differing++ == 0) fault.element = i, fault.expected = a, fault.found = b;
    }
    return fault;
  }
  return {};
}

class RegionBisection {
 public:
  RegionBisection(Executable& executable, const RepeatedRun& repeated) : executable_(executable), repeated_(repeated) {}
  ~RegionBisection() { executable_.select_launches(); }
  RegionBisection(const RegionBisection&) = delete;
  RegionBisection& operator=(const RegionBisection&) = delete;

  std::vector<OwnedTensor> results(std::size_t step, const LaunchSelection& selection) {
    ++runs;
    executable_.select_launches();
    repeated_.prepare();
    executable_.select_launches(selection);
    repeated_.run();
    return executable_.step_results(step);
  }

  std::size_t runs = 0;

 private:
  Executable& executable_;
  const RepeatedRun& repeated_;
};

/// Whether a launch is the last of its step in a plan.
bool ends_step(std::span<const Launch> all, std::size_t launch) {
  return launch + 1 == all.size() || all[launch + 1].step != all[launch].step;
}

}  // namespace

RegionBisectReport bisect_region(Executable& executable, const RepeatedRun& repeated,
                                 const RegionBisectOptions& options) {
  const SuperFormation* const formed = executable.super_kernels();
  require(formed && !formed->regions.empty(),
          "bisect-region: expected a run with a region of a super-kernel, found none");
  const std::vector<SuperRegion> regions = formed->regions;
  std::vector<std::size_t> steps;  // by launch
  std::vector<bool> ends;
  for (const Launch& launch : executable.plan().launches()) steps.push_back(launch.step);
  for (std::size_t l = 0; l < steps.size(); ++l) ends.push_back(ends_step(executable.plan().launches(), l));
  RegionBisectReport report;
  report.regions = regions.size();
  for (const SuperRegion& region : regions) report.launches += region.end_launch - region.first_launch;
  RegionBisection bisection(executable, repeated);
  for (const SuperRegion& region : regions)
    for (std::size_t l = region.first_launch; l < region.end_launch && !report.fault; ++l) {
      if (!ends[l] || (options.ends && l + 1 != region.end_launch)) continue;
      const auto expected = bisection.results(steps[l], {.end = l + 1, .one_by_one = true});
      std::vector<OwnedTensor> found;
      for (int again = 0; again < options.repeat && !report.fault; ++again) {
        found = bisection.results(steps[l], {.end = l + 1, .too_early = options.fault});
        report.fault = find_difference(expected, found);
      }
      const StepInfo& info = executable.steps()[steps[l]];
      if (options.keep)
        options.keep(RegionResults{region.name, info.scope, info.kernel, l, expected, found, !report.fault});
      if (!report.fault) continue;
      report.fault->super_kernel = region.name;
      report.fault->launch = l;
      report.fault->scope = info.scope;
      report.fault->kernel = info.kernel;
    }
  report.runs = bisection.runs;
  return report;
}

}  // namespace cermet

#include <algorithm>
#include <iterator>

#include "runtime/step/compilation.hpp"

namespace cermet {

/// All programs together, so that they compile in parallel. A device without a driver compiles where there is a toolchain.
std::string step::compile_kernels(Compilation& c) {
  if (!c.device.target()) return "none: kernels of the CPU are part of the library";
  CERMET_ASSERT(c.options.queue.programs != nullptr && c.options.queue.stream != nullptr);
  std::vector<cuda::Program> programs;
  for (std::size_t step = 0; step < c.choices.size(); ++step) std::ranges::move(c.programs_of(step), std::back_inserter(programs));
  const ProgramReport report = c.options.queue.programs->prepare(programs);
  return fmt::format("{} compiled, {} from the cache, in {:.2f} s", report.compiled, report.from_cache, report.seconds);
}

}  // namespace cermet

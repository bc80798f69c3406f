#include "runtime/step/compilation.hpp"

namespace cermet {

/// All programs together, so that they compile in parallel. A device without a driver compiles where there is a
/// toolchain.
std::string step::compile_kernels(Compilation& c) {
  if (!c.device.target()) return "none: kernels of the CPU are part of the library";
  CERMET_ASSERT(c.options.queue.programs != nullptr && c.options.queue.stream != nullptr);
  const ProgramReport report = c.options.queue.programs->prepare(c.programs());
  return fmt::format("{} compiled, {} from the cache, in {:.2f} s", report.compiled, report.from_cache, report.seconds);
}

}  // namespace cermet

#include "select/select.hpp"

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"

namespace cermet {

Selection explain_selection(const Problem& problem) {
  if (!problem.target) cpu::active_isa();
  Selection selection;
  for (const Kernel* kernel : problem.target ? cuda::kernels_of(problem.op->kind) : cpu::kernels_of(problem.op->kind)) {
    Decline decline = decline_of(*kernel, problem);
    if (!decline && !selection.kernel) selection.kernel = kernel;
    selection.candidates.push_back({kernel, std::move(decline)});
  }
  return selection;
}

const Kernel& select_kernel(const Problem& problem) {
  const Selection selection = explain_selection(problem);
  if (selection.kernel) return *selection.kernel;
  std::string reasons;
  for (const Candidate& candidate : selection.candidates) reasons += fmt::format("; {}: {}", candidate.kernel->name, *candidate.decline);
  fail(Status::unsupported, "{}: expected a {} kernel that takes it, found none{}", problem.to_string(), problem.target ? "CUDA" : "CPU", reasons);
}

}  // namespace cermet

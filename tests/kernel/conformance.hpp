// What every kernel is checked against: its operator's reference, over the operator's own cases, instruction sets and
// thread counts.
#pragma once

#include <gtest/gtest.h>

#include <span>

#include "kernel/cpu/isa.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/operator.hpp"
#include "select/case_run.hpp"

namespace cermet {

/// Expects every kernel that does not decline a case on some instruction set to compute what the operator's reference
/// does, on one thread and on three. Returns how many there were; expects one on each instruction set with `every_isa`.
inline int expect_case_conforms(const OpDefinition& op, const Case& test_case, std::span<const Kernel* const> kernels,
                                bool every_isa) {
  static ThreadPool one(1), three(3);
  int taken = 0;
  const CaseData data = make_case_data(op, test_case);
  const Expected expected = run_reference(data);
  for (const cpu::Isa isa : cpu::supported_isas()) {
    cpu::force_isa(isa);
    const int before = taken;
    for (const Kernel* kernel : kernels) {
      if (kernel->declines(data.problem)) continue;
      ++taken;
      for (ThreadPool* pool : {&one, &three})
        EXPECT_EQ(run_case(data, expected, *kernel, *pool, {.padding = pool == &one ? 0 : 3}), "")
            << op.name << " case " << test_case.name << ", kernel " << kernel->name << ", " << name_of(isa) << ", "
            << pool->size() << " threads";
    }
    EXPECT_TRUE(!every_isa || taken > before)
        << op.name << " case " << test_case.name << ": every kernel declines on " << name_of(isa);
  }
  cpu::force_isa(cpu::supported_isas().back());
  return taken;
}

/// The same over an operator's own cases. With `every_case` some kernel must take each case on each instruction set;
/// without, some case.
inline void expect_conforms(const OpDefinition& op, std::span<const Kernel* const> kernels, bool every_case) {
  int taken = 0;
  const std::vector<Case> cases = op.cases();
  ASSERT_FALSE(cases.empty()) << op.name << " lists no cases";
  for (const Case& test_case : cases) taken += expect_case_conforms(op, test_case, kernels, every_case);
  EXPECT_GT(taken, 0) << op.name << ": every kernel declines every case";
}

}  // namespace cermet

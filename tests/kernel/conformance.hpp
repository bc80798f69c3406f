// What every kernel is checked against: its operator's reference, over the operator's own cases, instruction sets and thread counts.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "kernel/cpu/isa.hpp"
#include "kernel/kernel.hpp"
#include "op/case_data.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"
#include "select/bound_op.hpp"

namespace cermet {

/// Memory for one result: rows are padded, to catch a kernel that ignores strides, and filled with a pattern that must survive around them.
struct Result {
  static constexpr unsigned char pattern = 0xa5;
  OwnedTensor memory;
  TensorView view;
  int dense;

  Result(const TensorType& type, int dense_dims, std::int64_t padding) : dense(std::min(dense_dims, type.rank())) {
    const Shape shape = bind(type.dims, {});
    Shape padded = shape;
    if (dense < shape.rank() || dense == 1) padded[shape.rank() - dense] += padding;
    memory = OwnedTensor(type.dtype, padded);
    if (memory.memory.size() > 0) std::memset(memory.memory.data(), pattern, static_cast<std::size_t>(memory.memory.size()));
    view = TensorView(memory.memory.data(), type.dtype, shape, dense_strides(padded));
  }

  bool padding_untouched() const {
    const Rows allocated(memory.view, dense), used(view, dense);
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(view.dtype));
    for (std::int64_t r = 0; r < allocated.count(); ++r)
      for (std::int64_t i = used.length() * bytes; i < allocated.length() * bytes; ++i)
        if (static_cast<unsigned char>(allocated.row(r)[i]) != pattern) return false;
    return true;
  }
};

/// Runs one kernel on a case; rows of the results are `padding` elements apart. Returns "" or what is wrong.
inline std::string run_kernel(const CaseData& data, const Expected& expected, const Kernel& kernel, ThreadPool& pool, std::int64_t padding) {
  BoundOp op(data.problem, kernel, pool);
  for (std::size_t i = 0; i < data.inputs.size(); ++i)
    if (data.problem.is_constant(i)) op.prepack(i, data.inputs[i]);
  std::vector<Result> results;
  std::vector<TensorView> views;
  const auto& aliases = definition(data.problem).aliases;
  for (std::size_t o = 0; o < data.problem.outputs.size(); ++o) {
    results.emplace_back(data.problem.outputs[o], dense_dims_of(data.problem), o < aliases.size() && aliases[o] >= 0 ? 0 : padding);
    views.push_back(results.back().view);
  }
  std::vector<TensorView> inputs = data.inputs;
  for (std::size_t o = 0; o < std::min(aliases.size(), views.size()); ++o) {
    if (aliases[o] < 0) continue;
    TensorView& shared = inputs[static_cast<std::size_t>(aliases[o])];
    for (std::int64_t e = 0; e < shared.elements(); ++e) store(views[o], e, load(shared, e));
    shared = views[o];
  }
  op.run(inputs, views);
  for (const Result& result : results)
    if (!result.padding_untouched()) return "wrote between the rows of a strided result";
  return compare(data.problem, expected, views);
}

/// Expects every kernel that does not decline a case on some instruction set to compute what the operator's reference does, on one thread and on three.
/// Returns how many there were; expects one on each instruction set with `every_isa`.
inline int expect_case_conforms(const OpDefinition& op, const Case& test_case, std::span<const Kernel* const> kernels, bool every_isa) {
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
        EXPECT_EQ(run_kernel(data, expected, *kernel, *pool, pool == &one ? 0 : 3), "")
            << op.name << " case " << test_case.name << ", kernel " << kernel->name << ", " << name_of(isa) << ", " << pool->size() << " threads";
    }
    EXPECT_TRUE(!every_isa || taken > before) << op.name << " case " << test_case.name << ": every kernel declines on " << name_of(isa);
  }
  cpu::force_isa(cpu::supported_isas().back());
  return taken;
}

/// The same over an operator's own cases. With `every_case` some kernel must take each case on each instruction set; without, some case.
inline void expect_conforms(const OpDefinition& op, std::span<const Kernel* const> kernels, bool every_case) {
  int taken = 0;
  const std::vector<Case> cases = op.cases();
  ASSERT_FALSE(cases.empty()) << op.name << " lists no cases";
  for (const Case& test_case : cases) taken += expect_case_conforms(op, test_case, kernels, every_case);
  EXPECT_GT(taken, 0) << op.name << ": every kernel declines every case";
}

}  // namespace cermet

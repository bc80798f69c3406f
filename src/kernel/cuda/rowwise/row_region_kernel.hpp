// Row reductions and elementwise operators, one or many, in one program.
#pragma once

#include <functional>

#include "kernel/cuda/rowwise/rowwise.hpp"

namespace cermet::cuda {

/// How the rows of an operator alone lie over threads.
using RowSpecOf = std::function<RowSpec(const Problem&)>;

/// The kernel of an operator that reduces rows, for regions whose anchor it is and for the operator alone. needs_of: of
/// the operator alone; as for regions where it is not given.
Kernel row_kernel(std::string name, OpKind op, std::string summary, const RowSpecOf& spec_of = {});

}  // namespace cermet::cuda

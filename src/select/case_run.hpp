// One run of a kernel on an operator's case, compared with the reference: what tests do with our own kernels, and
// checks with those from outside.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "op/schema/case_data.hpp"
#include "select/bound_op.hpp"

namespace cermet {

struct CaseRunOptions {
  std::int64_t padding = 0;  ///< elements between the rows of results, which must stay as they are
  Config config = {};
  std::vector<int> in_place =
      {};                ///< by result: the operand whose memory it overwrites, as the operator allows; -1 for none
  bool guarded = false;  ///< operands, results and workspace in memory of their own, around which nothing may be
                         ///< written; inputs must stay as they are
};

/// Memory for one result: rows are padded, to catch a kernel that ignores strides, and filled with a pattern that must
/// survive around them.
struct CaseResult {
  static constexpr unsigned char pattern = 0xa5;
  OwnedTensor memory;  ///< with padding
  TensorView view;
  int dense;

  CaseResult(const TensorType& type, int dense_dims, std::int64_t padding);
  /// Whether the elements between its rows hold the pattern.
  bool padding_untouched() const;
};

/// Operand whose memory result `o` has, always or in this run; -1 for none.
int shared_operand(const Problem& problem, const CaseRunOptions& options, std::size_t o);

/// Runs a CPU kernel. Returns "" or what is wrong.
std::string run_case(const CaseData& data, const Expected& expected, const Kernel& kernel, ThreadPool& pool,
                     const CaseRunOptions& options = {});

}  // namespace cermet

#include "kernel/wide_indices.hpp"

#include "base/checked.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

bool is_wide(const Problem& p, std::size_t i) {
  return p.has(i) && p.input(i).dtype == DType::i64 && definition(p).inputs[i].dtypes.contains(DType::i32);
}

}  // namespace

bool WideIndices::any(const Problem& problem) {
  for (std::size_t i = 0; i < problem.inputs.size(); ++i)
    if (is_wide(problem, i)) return true;
  return false;
}

WideIndices::WideIndices(const Problem& problem) {
  CERMET_ASSERT(problem.inputs.size() <= most_operands);
  Problem narrowed = problem;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (!is_wide(problem, i)) continue;
    narrowed.inputs[i]->dtype = DType::i32;
    wide_ |= std::uint64_t{1} << i;
    bytes_ += bytes_of(problem.input(i).elements().value(problem.maximum));
  }
  narrowed_ = Region(std::move(narrowed));
}

std::int64_t WideIndices::bytes_of(std::int64_t elements) { return round_up(elements * byte_size(DType::i32), 256); }

}  // namespace cermet

// Matrices that come transposed: [.., K, N] with strides (1, K) is memory of [.., N, K]. Callers of products have
// weights so: b.T of NumPy and PyTorch, and b of torch._scaled_mm, vLLM and InfiniOP.
#pragma once

#include <dlpack/dlpack.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "op/schema/operator.hpp"

namespace cermet::api {

/// An operand whose matrices may come so.
struct TransposedOperand {
  std::size_t input = 0;
  std::string attribute;  ///< of the operator, which says that they do ("transpose_b"); empty where strides alone say
                          ///< it (b of scaled_mm)
};
std::vector<TransposedOperand> transposed_operands(const OpDefinition& op);

/// Whether the last two dimensions lie the other way round. Where either way is true, because one of them is 1,
/// `length` decides, the size that the last one has in memory; without it they do not.
bool lies_transposed(std::span<const std::int64_t> shape, const std::int64_t* strides,
                     std::optional<std::int64_t> length = {});

/// Whether kernels read the operand by its last stride, too: scales of blocks in scaled_mm, which may lie by columns.
bool reads_any_strides(const Problem& problem, std::size_t input);
/// Whether an operand of the operator may be such.
bool may_have_any_strides(const OpDefinition& op, std::size_t input);

/// Tensors of a call with those operands swapped that lie transposed. Allocates nothing.
class TransposedTensors {
 public:
  explicit TransposedTensors(const OpDefinition& op);
  /// Bit i: operand i lies transposed.
  std::uint64_t found_in(std::span<const DLTensor* const> tensors) const;
  /// The tensors, with those of the bits swapped; valid until the next call, and as long as the tensors.
  std::span<const DLTensor* const> swapped(std::span<const DLTensor* const> tensors, std::uint64_t bits);
  /// The attributes for operands that are swapped.
  Attributes attributes(const Attributes& given, std::uint64_t bits) const;
  const std::vector<TransposedOperand>& operands() const { return operands_; }

 private:
  struct Swapped {
    DLTensor tensor{};
    std::array<std::int64_t, Shape::max_rank> shape{}, strides{};
  };
  std::vector<TransposedOperand> operands_;
  std::vector<Swapped> swapped_;
  std::vector<const DLTensor*> list_;
};

}  // namespace cermet::api

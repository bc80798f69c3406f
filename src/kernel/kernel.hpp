// HOW an operator is computed: the host half that every kernel of every backend has. Pure functions; nothing here compiles or keeps state.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "op/operator.hpp"

namespace cermet {

namespace cuda {
struct Program;
class TaskQueue;
}  // namespace cuda

/// Why a kernel does not take a problem; nothing when it does. Written for a reader: "weight is not constant, so it cannot be prepacked".
using Decline = std::optional<std::string>;

/// Order in which a kernel needs a weight matrix [N, K] in memory. Kernels that name the same layout share one packed copy.
struct WeightLayout {
  std::string_view name;
  /// Bytes of one packed matrix of this type [N, K].
  std::int64_t (*bytes)(const TensorType& matrix);
  /// Packs one dense matrix; `destination` is 64-byte aligned. A rank-3 weight [E, N, K] is packed slice by slice, at round_up(bytes, 64) steps.
  void (*pack)(const TensorView& matrix, std::byte* destination, ThreadPool& pool);
};

/// Operands of a launch, in the schema's order. An operand with a WeightLayout arrives packed: data points to the packed bytes, shape is the logical one.
struct LaunchArgs {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::byte* workspace = nullptr;  ///< at least the bytes that `workspace` returned, 64-byte aligned
  ThreadPool* pool = nullptr;
  const cuda::TaskQueue* queue = nullptr;  ///< where a CUDA kernel enqueues its tasks; operands and workspace are in device memory then

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].present; }
};

/// Runs the kernel; allocates nothing, looks up no strings. Attributes were read at binding.
using Launcher = std::function<void(const LaunchArgs&)>;

struct Kernel {
  std::string_view name;  ///< family and variant: "rowwise.rms_norm"
  OpKind op;
  std::string_view summary;  ///< what it does and when it wins, one line
  Decline (*declines)(const Problem&) = [](const Problem&) -> Decline { return std::nullopt; };
  Launcher (*bind)(const Problem&) = nullptr;
  /// Layout that operand i must arrive in; null for plain row-major.
  const WeightLayout* (*weight_layout)(const Problem&, std::size_t operand) = [](const Problem&, std::size_t) -> const WeightLayout* { return nullptr; };
  /// Scratch bytes at the symbols' maximum.
  std::int64_t (*workspace)(const Problem&, int threads) = [](const Problem&, int) -> std::int64_t { return 0; };
  /// Whether the kernel can compute this operator as the prologue of its own; null: none.
  bool (*takes_prologue)(const Problem& prologue) = nullptr;
  /// What a CUDA kernel compiles for a problem; its launcher names programs by their place in the list. Null for CPU kernels.
  std::vector<cuda::Program> (*programs)(const Problem&) = nullptr;
};

}  // namespace cermet

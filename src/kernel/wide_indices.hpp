// Operands that are indices in int64, for kernels that read int32: they are narrowed into the workspace first.
#pragma once

#include <array>

#include "kernel/kernel.hpp"

namespace cermet {

/// The operator with int32 in place of every index in int64.
class WideIndices {
 public:
  explicit WideIndices(const Problem& problem);
  /// Whether an operand holds indices in int64 where int32 would be taken.
  static bool any(const Problem& problem);

  const Region& narrowed() const { return narrowed_; }
  /// Workspace of the narrowed operands.
  std::int64_t bytes() const { return bytes_; }

  static constexpr std::size_t most_operands = 16;
  using Operands = std::array<TensorView, most_operands>;
  /// The operands of a launch with those in `memory` in place of the wide ones; narrow(from, to) fills each of them.
  template <class Narrow>
  Operands operands(const LaunchArgs& args, std::byte* memory, Narrow&& narrow) const {
    Operands views{};
    for (std::size_t i = 0; i < args.inputs.size(); ++i) {
      views[i] = args.inputs[i];
      if ((wide_ >> i & 1u) == 0) continue;
      views[i] = TensorView(memory, DType::i32, args.inputs[i].shape);
      memory += bytes_of(args.inputs[i].elements());
      narrow(args.inputs[i], views[i]);
    }
    return views;
  }

 private:
  static std::int64_t bytes_of(std::int64_t elements);

  Region narrowed_;
  std::uint64_t wide_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace cermet

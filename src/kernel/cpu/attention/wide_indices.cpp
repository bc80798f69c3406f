// incre_flash_attention with tables, lengths or starts in int64, by the kernel for int32.
#include "kernel/wide_indices.hpp"

#include <algorithm>
#include <limits>

#include "kernel/cpu/index_list.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/part_choice.hpp"

namespace cermet::cpu {
namespace {

/// Indices that int32 does not hold become some that no operand has.
void narrow_indices(const TensorView& from, const TensorView& to) {
  const IndexList wide(from);
  auto* const indices = to.as<std::int32_t>();
  for (std::int64_t i = 0; i < from.elements(); ++i)
    indices[i] =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(wide[i], -1, std::numeric_limits<std::int32_t>::max()));
}

PartChoice int32_choice(const WideIndices& wide) {
  return choose_part(kernels_of(OpKind::incre_flash_attention), wide.narrowed());
}

}  // namespace

extern const Kernel attention_wide_indices{
    .name = "attention.wide_indices",
    .op = OpKind::incre_flash_attention,
    .summary = "tables, lengths and starts in int64, narrowed for the kernel that takes int32",
    .declines = [](const Problem& p) -> Decline {
      if (!WideIndices::any(p)) return "indices are int32";
      if (!int32_choice(WideIndices(p)).kernel) return "no kernel takes it with indices in int32";
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      const WideIndices wide(p);
      const PartChoice choice = int32_choice(wide);
      return [wide, launch = choice.kernel->bind(wide.narrowed(), choice.config)](const LaunchArgs& args) {
        const WideIndices::Operands operands = wide.operands(args, args.workspace, narrow_indices);
        LaunchArgs narrowed = args;
        narrowed.inputs = std::span(operands).first(args.inputs.size());
        narrowed.workspace = args.workspace + wide.bytes();
        launch(narrowed);
      };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const WideIndices wide(p);
      const PartChoice choice = int32_choice(wide);
      return wide.bytes() + choice.kernel->workspace(wide.narrowed(), choice.config, threads);
    },
};

}  // namespace cermet::cpu

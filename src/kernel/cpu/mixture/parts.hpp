// What kernels of whole mixtures share: the kernels of their parts, and the gate between the products.
#pragma once

#include <array>

#include "kernel/kernel.hpp"
#include "kernel/mixture_parts.hpp"
#include "kernel/part_choice.hpp"
#include "op/activation.hpp"

namespace cermet::cpu {

/// Beside the parts of every mixture: what quantizes rows before its products.
enum QuantizingPart : std::size_t {
  part_quantize_x = mixture_part_count,
  part_quantize_hidden,
  cpu_mixture_part_count
};

/// One operator inside the mixture with the kernel that takes it; null where every one declines.
struct MixturePartKernel {
  Region region;
  PartChoice choice = {};
  bool needed = false;  ///< whether the mixture has this part
};
using MixtureKernels = std::array<MixturePartKernel, cpu_mixture_part_count>;
using MixtureLaunchers = std::array<Launcher, cpu_mixture_part_count>;

MixtureKernels mixture_kernels(const Problem& problem);
/// The first part that no kernel takes.
Decline mixture_declines(const Problem& problem);
MixtureLaunchers bind_mixture_parts(const Problem& problem);
/// Of the router's and the experts' weights.
const WeightLayout* mixture_weight_layout(const Problem& problem, std::size_t operand);
/// Largest workspace of a part.
std::int64_t mixture_part_workspace(const Problem& problem, int threads);

/// Element types of the rows that the products multiply, and whether they have scales of their own: of rows that are
/// quantized per token.
struct ExpertTypes {
  DType x = DType::f32, hidden = DType::f32;
  bool quantizes_x = false, quantizes_hidden = false, rounds_hidden = false, x_scales = false, hidden_scales = false;
};
ExpertTypes expert_types(const Problem& problem);

/// Rows sorted by expert, [R, H], and memory for what the experts make of them.
struct ExpertRows {
  TensorView rows, scales;           ///< scales: f32[R], where rows have them
  TensorView offsets;                ///< i32[E + 1]
  TensorView gated;                  ///< f32[R, 2F]
  TensorView hidden, hidden_scales;  ///< [R, F] and f32[R], where the hidden elements are rounded or quantized
  TensorView results;                ///< f32[R, H]
};
/// Results of the experts. `workspace`: that of the parts.
void run_experts(const LaunchArgs& args, const MixtureLaunchers& launch, const ExpertTypes& types,
                 Activation activation, const ExpertRows& rows, std::byte* workspace);
/// The rows of x quantized, with their scales where rows have them.
void quantize_tokens(const LaunchArgs& args, const MixtureLaunchers& launch, const TensorView& quantized,
                     const TensorView& scales, std::byte* workspace);
/// to[row_of[t, j]] = from[t].
void permute_scales(const TensorView& from, const TensorView& row_of, const TensorView& to);

/// rows [r, 2F]: row[i] = activation(row[i]) * row[F + i], i < F.
void gate_rows(const TensorView& rows, Activation activation, ThreadPool& pool);

}  // namespace cermet::cpu

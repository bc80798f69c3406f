// What kernels of whole mixtures share: the kernels of their parts, and the gate between the products.
#pragma once

#include <array>

#include "kernel/mixture_parts.hpp"
#include "kernel/part_choice.hpp"
#include "op/activation.hpp"

namespace cermet::cpu {

/// One operator inside the mixture with the kernel that takes it; null where every one declines.
struct MixturePartKernel {
  Region region;
  PartChoice choice = {};
};
using MixtureKernels = std::array<MixturePartKernel, mixture_part_count>;
using MixtureLaunchers = std::array<Launcher, mixture_part_count>;

MixtureKernels mixture_kernels(const Problem& problem);
/// The first part that no kernel takes.
Decline mixture_declines(const Problem& problem);
MixtureLaunchers bind_mixture_parts(const Problem& problem);
/// Of the router's and the experts' weights.
const WeightLayout* mixture_weight_layout(const Problem& problem, std::size_t operand);
/// Largest workspace of a part.
std::int64_t mixture_part_workspace(const Problem& problem, int threads);

/// rows [r, 2F]: row[i] = activation(row[i]) * row[F + i], i < F.
void gate_rows(const TensorView& rows, Activation activation, ThreadPool& pool);

}  // namespace cermet::cpu

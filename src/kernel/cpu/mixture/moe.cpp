// moe and ep_moe: the kernels of their parts in sequence, with float32 in between.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/mixture/moe.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/kernels.hpp"
#include "kernel/cpu/mixture/parts.hpp"
#include "kernel/cpu/pointwise/activation-inl.hpp"
#include "kernel/workspace_layout.hpp"
#include "op/mixture.hpp"
#include "op/schema/infer.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// row[i] = activation(row[i]) * row[features + i], 0 <= i < features.
void gate_row(float* row, std::int64_t features, Activation activation) {
  for_vectors(static_cast<std::size_t>(features), [&](std::size_t i, std::size_t n) HWY_ATTR {
    store_n(hn::Mul(activate(activation, Real(load_n(row + i, n))).v, load_n(row + features + i, n)), row + i, n);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(gate_row);

void gate_rows(const TensorView& rows, Activation activation, ThreadPool& pool) {
  const std::int64_t features = rows.shape[1] / 2;
  pool.parallel_for(rows.shape[0], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(gate_row)(rows.as<float>() + r * 2 * features, features, activation);
  });
}

namespace {

/// Sizes of a call and the values between its parts, one after the other in a workspace.
struct Layout : WorkspaceLayout {
  std::int64_t tokens, hidden, features, experts, k;
  TensorView logits, weights, ids, row_of;
  TensorView quantized, scales;  ///< of the tokens, where experts are quantized
  ExpertRows rows;

  Layout(std::int64_t token_count, std::int64_t hidden_size, std::int64_t feature_count, std::int64_t expert_count,
         std::int64_t chosen, const ExpertTypes& types, std::byte* workspace)
      : WorkspaceLayout{workspace},
        tokens(token_count),
        hidden(hidden_size),
        features(feature_count),
        experts(expert_count),
        k(chosen) {
    logits = place(DType::f32, {tokens, experts});
    weights = place(DType::f32, {tokens, k});
    ids = place(DType::i32, {tokens, k});
    row_of = place(DType::i32, {tokens, k});
    const std::int64_t pairs = tokens * k;
    if (types.quantizes_x) quantized = place(types.x, {tokens, hidden});
    if (types.x_scales) scales = place(DType::f32, {tokens}), rows.scales = place(DType::f32, {pairs});
    if (types.rounds_hidden) rows.hidden = place(types.hidden, {pairs, features});
    if (types.hidden_scales) rows.hidden_scales = place(DType::f32, {pairs});
    rows.rows = place(types.x, {pairs, hidden});
    rows.offsets = place(DType::i32, {experts + 1});
    rows.gated = place(DType::f32, {pairs, 2 * features});
    rows.results = place(DType::f32, {pairs, hidden});
  }
};

struct Mixture {
  MixtureLaunchers launch;
  ExpertTypes types;
  Activation activation;
  std::int64_t k;
};

Layout run_mixture(const LaunchArgs& args, const Mixture& m) {
  const TensorView &x = args.inputs[mixture_x], &first = args.inputs[mixture_gate_up];
  const Layout l(Rows(x).count(), x.shape.back(), first.shape[1] / 2, first.shape[0], m.k, m.types, args.workspace);
  const auto run = [&](MixturePart part, std::initializer_list<TensorView> inputs,
                       std::initializer_list<TensorView> outputs) {
    m.launch[part]({inputs, outputs, args.workspace + l.bytes, args.pool});
  };
  const auto optional = [&](std::size_t operand) { return args.has(operand) ? args.inputs[operand] : TensorView(); };
  run(part_router, {x, args.inputs[mixture_router], TensorView()}, {l.logits});
  run(part_gating, {l.logits, optional(mixture_bias)}, {l.weights, l.ids});
  if (m.types.quantizes_x) quantize_tokens(args, m.launch, l.quantized, l.scales, args.workspace + l.bytes);
  run(part_permute, {m.types.quantizes_x ? l.quantized : x, l.ids}, {l.rows.rows, l.rows.offsets, l.row_of});
  if (m.types.x_scales) permute_scales(l.scales, l.row_of, l.rows.scales);
  run_experts(args, m.launch, m.types, m.activation, l.rows, args.workspace + l.bytes);
  run(part_unpermute, {l.rows.results, l.row_of, l.weights, optional(mixture_residual)}, {args.outputs[0]});
  const auto* offsets = l.rows.offsets.as<const std::int32_t>();
  for (std::int64_t e = 0; e < l.experts; ++e) args.outputs[1].as<std::int32_t>()[e] = offsets[e + 1] - offsets[e];
  return l;
}

/// dispatch[i][j]: pairs of tokens of rank i and experts of rank j.
void count_dispatch(const Layout& l, std::int64_t ranks, const TensorView& dispatch) {
  const Rows counts(dispatch);
  for (std::int64_t i = 0; i < ranks; ++i) std::fill_n(reinterpret_cast<std::int32_t*>(counts.row(i)), ranks, 0);
  const std::int64_t tokens_each = l.tokens / ranks, experts_each = l.experts / ranks;
  for (std::int64_t pair = 0; pair < l.tokens * l.k; ++pair)
    ++reinterpret_cast<std::int32_t*>(
        counts.row(pair / l.k / tokens_each))[l.ids.as<const std::int32_t>()[pair] / experts_each];
}

Decline declines(const Problem& p) {
  if (p.op->kind == OpKind::ep_moe && takes_own_tokens(p) && p.attributes.integer("ranks") > 1)
    return "has one rank's tokens, so it needs a communicator";
  return mixture_declines(p);
}

Mixture bind_mixture(const Problem& p) {
  return {bind_mixture_parts(p), expert_types(p), activation_from_name(p.attributes.text("activation")),
          p.attributes.integer("k")};
}

std::int64_t workspace(const Problem& p, int threads) {
  std::int64_t tokens = 1;
  for (int axis = 0; axis + 1 < p.input(mixture_x).rank(); ++axis) tokens *= p.size(mixture_x, axis);
  const Layout layout(tokens, p.size(mixture_x, -1), p.size(mixture_down, 2), p.size(mixture_router, 0),
                      p.attributes.integer("k"), expert_types(p), nullptr);
  return layout.bytes + mixture_part_workspace(p, threads);
}

}  // namespace

extern const Kernel moe_mixture{
    .name = "moe.mixture",
    .op = OpKind::moe,
    .summary =
        "router, gating, sort by expert, grouped products and weighted sum by their own kernels; float32 between them",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [m = bind_mixture(p)](const LaunchArgs& args) { run_mixture(args, m); };
    },
    .weight_layout = mixture_weight_layout,
    .workspace = workspace,
};

extern const Kernel moe_mixture_of_ranks{
    .name = "moe.mixture_of_ranks",
    .op = OpKind::ep_moe,
    .summary = "all ranks in one memory: the tokens of all ranks as one batch, sorted by expert and so by rank",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [m = bind_mixture(p), ranks = p.attributes.integer("ranks")](const LaunchArgs& args) {
        count_dispatch(run_mixture(args, m), ranks, args.outputs[2]);
      };
    },
    .weight_layout = mixture_weight_layout,
    .workspace = workspace,
};

}  // namespace cermet::cpu
#endif

// moe and ep_moe: the kernels of their parts in a row, with float32 in between.
#include <array>

#include "kernel/cuda/device/mixture/moe.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/cuda/movement/copy.hpp"
#include "kernel/mixture_parts.hpp"
#include "kernel/part_choice.hpp"
#include "kernel/workspace_layout.hpp"
#include "op/mixture.hpp"
#include "op/schema/infer.hpp"

namespace cermet::cuda::mixture_moe_file {
namespace {

/// One operator inside the mixture with the kernel that takes it and the place of its programs among the mixture's.
struct Part {
  Region region;
  PartChoice choice = {};
  std::size_t first_program = 0, program_count = 0;

  std::vector<Program> programs() const { return choice.kernel->programs(region, choice.config); }
};

/// Programs of the mixture itself; those of its parts follow.
enum OwnProgram : std::size_t { gate, count, copy, own_programs };

struct Parts {
  std::array<Part, mixture_part_count> part;
  /// The first part that every kernel declines; mixture_part_count where there is none.
  std::size_t missing = mixture_part_count;
};

Parts parts_of(const Problem& p) {
  Parts parts;
  std::size_t first = own_programs, i = 0;
  for (Problem& problem : mixture_parts(p)) {
    Part& part = parts.part[i];
    part.region = Region(std::move(problem));
    part.choice = choose_part(kernels_of(part.region.problem().op->kind), part.region);
    if (!part.choice.kernel) {
      parts.missing = i;
      break;
    }
    part.first_program = first;
    part.program_count = part.programs().size();
    first += part.program_count;
    ++i;
  }
  return parts;
}

Decline declines(const Problem& p) {
  if (p.op->kind == OpKind::ep_moe && takes_own_tokens(p) && p.attributes.integer("ranks") > 1)
    return "has one rank's tokens, so it needs a communicator";
  if (is_quantized_weight(p, mixture_gate_up) || is_quantized_weight(p, mixture_down))
    return "has quantized experts, which the CPU alone computes";
  if (hidden_type(p.attributes, p.input(mixture_down).dtype) != DType::f32)
    return "rounds what its second weights multiply, which the CPU alone does";
  const Parts parts = parts_of(p);
  if (parts.missing == mixture_part_count) return std::nullopt;
  return fmt::format("no kernel takes {}", parts.part[parts.missing].region.to_string());
}

/// Sizes of a call and the values between its parts, laid one after the other into a workspace.
struct Layout : WorkspaceLayout {
  std::int64_t tokens, hidden, features, experts, k;
  TensorView logits, weights, ids, sorted, offsets, row_of, gated, results;
  TensorView x, residual, y;  ///< dense copies, where rows of several ranks are not evenly apart

  Layout(const Shape& x_shape, std::int64_t feature_count, std::int64_t expert_count, std::int64_t chosen, DType x_type,
         DType residual_type, DType y_type, std::byte* workspace)
      : WorkspaceLayout{workspace, 256},
        tokens(1),
        hidden(x_shape.back()),
        features(feature_count),
        experts(expert_count),
        k(chosen) {
    for (int a = 0; a + 1 < x_shape.rank(); ++a) tokens *= x_shape[a];
    logits = place(DType::f32, {tokens, experts});
    weights = place(DType::f32, {tokens, k});
    ids = place(DType::i32, {tokens, k});
    sorted = place(x_type, {tokens * k, hidden});
    offsets = place(DType::i32, {experts + 1});
    row_of = place(DType::i32, {tokens, k});
    gated = place(DType::f32, {tokens * k, 2 * features});
    results = place(DType::f32, {tokens * k, hidden});
    if (x_shape.rank() == 2) return;
    x = place(x_type, {tokens, hidden});
    residual = place(residual_type, {tokens, hidden});
    y = place(y_type, {tokens, hidden});
  }
  /// The first half of `gated`, which holds the hidden elements after the gate.
  TensorView hidden_rows() const {
    return TensorView(gated.data, DType::f32, {tokens * k, features}, {2 * features, 1});
  }
};

/// The view as a matrix [tokens, hidden]; nothing where its rows are not evenly apart.
std::optional<TensorView> as_matrix(const TensorView& view, std::int64_t tokens) {
  const int rank = view.shape.rank();
  for (int a = 0; a + 2 < rank; ++a)
    if (view.shape[a] > 1 && view.strides[a] != view.shape[a + 1] * view.strides[a + 1]) return std::nullopt;
  return TensorView(view.data, view.dtype, {tokens, view.shape.back()}, {view.strides[rank - 2], 1});
}

StridedCopy copy_between(const TensorView& from, const TensorView& to, const Shape& shape, bool gather) {
  return {shape,
          from.data,
          gather ? from.strides : dense_strides(shape),
          to.data,
          gather ? dense_strides(shape) : to.strides,
          byte_size(to.dtype)};
}

struct Mixture {
  std::array<Launcher, mixture_part_count> launch;
  std::array<std::pair<std::size_t, std::size_t>, mixture_part_count> programs;
  std::int64_t k;
};

Mixture bind_mixture(const Problem& p) {
  Mixture m{{}, {}, p.attributes.integer("k")};
  const Parts parts = parts_of(p);
  for (std::size_t i = 0; i < mixture_part_count; ++i) {
    m.launch[i] = parts.part[i].choice.kernel->bind(parts.part[i].region, parts.part[i].choice.config);
    m.programs[i] = {parts.part[i].first_program, parts.part[i].program_count};
  }
  return m;
}

void run_mixture(const LaunchArgs& args, const Mixture& m, std::int64_t ranks) {
  const TensorView &x = args.inputs[mixture_x], &first = args.inputs[mixture_gate_up], &y = args.outputs[0];
  const bool adds = args.has(mixture_residual);
  const Layout l(x.shape, first.shape[1] / 2, first.shape[0], m.k, x.dtype,
                 adds ? args.inputs[mixture_residual].dtype : x.dtype, y.dtype, args.workspace);
  const auto run = [&](MixturePart part, std::initializer_list<TensorView> inputs,
                       std::initializer_list<TensorView> outputs) {
    const TaskQueue queue = args.queue->part(m.programs[part].first, m.programs[part].second);
    m.launch[part]({inputs, outputs, args.workspace + l.bytes, args.pool, &queue});
  };
  const auto matrix = [&](const TensorView& view, const TensorView& dense) {
    if (const std::optional<TensorView> even = as_matrix(view, l.tokens)) return *even;
    enqueue_copy(*args.queue, copy, copy_between(view, dense, view.shape, true));
    return dense;
  };
  const TensorView tokens = matrix(x, l.x);
  const std::optional<TensorView> even = as_matrix(y, l.tokens);
  run(part_router, {tokens, args.inputs[mixture_router], TensorView()}, {l.logits});
  run(part_gating, {l.logits, args.has(mixture_bias) ? args.inputs[mixture_bias] : TensorView()}, {l.weights, l.ids});
  run(part_permute, {tokens, l.ids}, {l.sorted, l.offsets, l.row_of});
  run(part_gate_up, {l.sorted, first, l.offsets, TensorView()}, {l.gated});
  if (l.features > 0) args.queue->run(gate, l.tokens * l.k, moe::GateParams{l.gated.as<float>(), l.features});
  run(part_down, {l.hidden_rows(), args.inputs[mixture_down], l.offsets, TensorView()}, {l.results});
  const TensorView residual = adds ? matrix(args.inputs[mixture_residual], l.residual) : TensorView();
  run(part_unpermute, {l.results, l.row_of, l.weights, residual}, {even ? *even : l.y});
  if (!even) enqueue_copy(*args.queue, copy, copy_between(l.y, y, y.shape, false));
  const bool dispatches = args.outputs.size() > 2;
  const moe::CountParams params{.offsets = l.offsets.as<const std::int32_t>(),
                                .ids = l.ids.as<const std::int32_t>(),
                                .load = args.outputs[1].as<std::int32_t>(),
                                .dispatch = dispatches ? args.outputs[2].as<std::int32_t>() : nullptr,
                                .experts = l.experts,
                                .ranks = ranks,
                                .pairs_each = l.tokens / ranks * l.k,
                                .dispatch_stride = dispatches ? args.outputs[2].strides[0] : 0};
  args.queue->run(count, 1 + (dispatches ? ranks : 0), params);
}

std::vector<Program> programs(const Problem& p) {
  const std::string header = "kernel/cuda/device/mixture/moe.cuh";
  std::vector<Program> list{
      {.header = header,
       .task = fmt::format("cermet::moe::Gate<cermet::Activation::{}>", p.attributes.text("activation")),
       .threads = moe::threads},
      {.header = header, .task = "cermet::moe::Count", .threads = moe::threads, .shared_bytes = moe::pass_ranks * 4},
      copy_program()};
  for (const Part& part : parts_of(p).part) {
    std::vector<Program> more = part.programs();
    std::move(more.begin(), more.end(), std::back_inserter(list));
  }
  return list;
}

const WeightLayout* weight_layout(const Problem& p, std::size_t operand) {
  const MixturePart index = part_of_weight(operand);
  if (index == mixture_part_count) return nullptr;
  const Parts parts = parts_of(p);
  return parts.part[index].choice.kernel->weight_layout(parts.part[index].region, 1);
}

std::int64_t workspace(const Problem& p, int threads) {
  std::int64_t largest = 0;
  for (const Part& part : parts_of(p).part)
    largest = std::max(largest, part.choice.kernel->workspace(part.region, part.choice.config, threads));
  Shape x;
  for (int axis = 0; axis < p.input(mixture_x).rank(); ++axis) x.push_back(p.size(mixture_x, axis));
  const DType type = p.input(mixture_x).dtype;
  const Layout layout(x, p.size(mixture_down, 2), p.size(mixture_router, 0), p.attributes.integer("k"), type,
                      p.has(mixture_residual) ? p.input(mixture_residual).dtype : type, p.outputs[0].dtype, nullptr);
  return layout.bytes + largest;
}

}  // namespace

extern const Kernel moe_mixture;
const Kernel moe_mixture{
    .name = "moe.mixture",
    .op = OpKind::moe,
    .summary =
        "router, gating, sort by expert, grouped products and weighted sum by their own kernels; float32 between them",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [m = bind_mixture(p)](const LaunchArgs& args) { run_mixture(args, m, 1); };
    },
    .weight_layout = weight_layout,
    .workspace = workspace,
    .programs = programs};

extern const Kernel moe_mixture_of_ranks;
const Kernel moe_mixture_of_ranks{
    .name = "moe.mixture_of_ranks",
    .op = OpKind::ep_moe,
    .summary = "all ranks in one memory: the tokens of all ranks as one batch, sorted by expert and so by rank",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [m = bind_mixture(p), ranks = p.attributes.integer("ranks")](const LaunchArgs& args) {
        run_mixture(args, m, ranks);
      };
    },
    .weight_layout = weight_layout,
    .workspace = workspace,
    .programs = programs};

}  // namespace cermet::cuda::mixture_moe_file

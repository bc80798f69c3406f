// The kernels of a mixture's parts, and its experts: two grouped products with the gate between them, of rows that are
// quantized where the weights are.
#include "kernel/cpu/mixture/parts.hpp"

#include "kernel/cpu/kernels.hpp"
#include "op/mixture.hpp"
#include "op/schema/infer.hpp"

namespace cermet::cpu {

MixtureKernels mixture_kernels(const Problem& p) {
  MixtureKernels parts;
  const auto choose = [&](std::size_t i, Problem problem) {
    parts[i].region = Region(std::move(problem));
    parts[i].choice = choose_part(kernels_of(parts[i].region.problem().op->kind), parts[i].region);
    parts[i].needed = true;
  };
  std::size_t i = 0;
  for (Problem& problem : mixture_parts(p)) choose(i++, std::move(problem));
  MixtureQuantizers quantizers = mixture_quantizers(p);
  if (quantizers.x) choose(part_quantize_x, std::move(*quantizers.x));
  if (quantizers.hidden) choose(part_quantize_hidden, std::move(*quantizers.hidden));
  return parts;
}

Decline mixture_declines(const Problem& p) {
  for (const MixturePartKernel& part : mixture_kernels(p))
    if (part.needed && !part.choice.kernel) return fmt::format("no kernel takes its part {}", part.region.to_string());
  return std::nullopt;
}

MixtureLaunchers bind_mixture_parts(const Problem& p) {
  MixtureLaunchers launchers;
  const MixtureKernels parts = mixture_kernels(p);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].needed) launchers[i] = parts[i].choice.kernel->bind(parts[i].region, parts[i].choice.config);
  return launchers;
}

const WeightLayout* mixture_weight_layout(const Problem& p, std::size_t operand) {
  const MixturePart part = part_of_weight(operand);
  if (part == mixture_part_count) return nullptr;
  const MixtureKernels parts = mixture_kernels(p);
  return parts[part].choice.kernel->weight_layout(parts[part].region, 1);
}

std::int64_t mixture_part_workspace(const Problem& p, int threads) {
  std::int64_t largest = 0;
  for (const MixturePartKernel& part : mixture_kernels(p))
    if (part.needed)
      largest = std::max(largest, part.choice.kernel->workspace(part.region, part.choice.config, threads));
  return largest;
}

ExpertTypes expert_types(const Problem& p) {
  ExpertTypes types{.quantizes_x = is_quantized_weight(p, mixture_gate_up),
                    .quantizes_hidden = is_quantized_weight(p, mixture_down)};
  types.x = types.quantizes_x ? p.input(mixture_gate_up).dtype : p.input(mixture_x).dtype;
  types.hidden = hidden_type(p.attributes, p.input(mixture_down).dtype);
  types.rounds_hidden = types.hidden != DType::f32;
  types.x_scales = types.quantizes_x && !p.has(mixture_x_scale);
  types.hidden_scales = types.quantizes_hidden && !p.has(mixture_hidden_scale);
  return types;
}

namespace {

/// Static quantization with the scale that operand `scale` gives, else dynamic with a scale for each row; rounding
/// where there are no scales.
void quantize_rows(const LaunchArgs& args, const Launcher& launch, std::size_t scale, const TensorView& from,
                   const TensorView& quantized, const TensorView& scales, std::byte* workspace) {
  const TensorView inputs[] = {from, args.has(scale) ? args.inputs[scale] : TensorView()},
                   outputs[] = {quantized, scales};
  const std::size_t count = args.has(scale) ? 2 : 1;
  launch({std::span(inputs).first(count), std::span(outputs).first(scales.present ? 2 : 1), workspace, args.pool});
}

}  // namespace

void quantize_tokens(const LaunchArgs& args, const MixtureLaunchers& launch, const TensorView& quantized,
                     const TensorView& scales, std::byte* workspace) {
  quantize_rows(args, launch[part_quantize_x], mixture_x_scale, args.inputs[mixture_x], quantized, scales, workspace);
}

void permute_scales(const TensorView& from, const TensorView& row_of, const TensorView& to) {
  const auto* scales = from.as<const float>();
  const auto* rows = row_of.as<const std::int32_t>();
  const std::int64_t k = row_of.shape[1];
  for (std::int64_t pair = 0; pair < row_of.elements(); ++pair) to.as<float>()[rows[pair]] = scales[pair / k];
}

void run_experts(const LaunchArgs& args, const MixtureLaunchers& launch, const ExpertTypes& types,
                 Activation activation, const ExpertRows& r, std::byte* workspace) {
  const auto multiply = [&](std::size_t part, const TensorView& rows, std::size_t weight, bool quantized,
                            const TensorView& row_scales, std::size_t weight_scale, const TensorView& y) {
    const TensorView inputs[] = {rows,       args.inputs[weight],
                                 r.offsets,  TensorView(),
                                 row_scales, quantized ? args.inputs[weight_scale] : TensorView()};
    launch[part]({std::span(inputs).first(quantized ? 6 : 4), std::span(&y, 1), workspace, args.pool});
  };
  multiply(part_gate_up, r.rows, mixture_gate_up, types.quantizes_x,
           types.x_scales || !types.quantizes_x ? r.scales : args.inputs[mixture_x_scale], mixture_gate_up_scale,
           r.gated);
  gate_rows(r.gated, activation, *args.pool);
  const std::int64_t features = r.gated.shape[1] / 2;
  const TensorView halves(r.gated.data, DType::f32, {r.gated.shape[0], features},
                          {2 * features, 1});  // gate_row leaves the hidden elements there
  if (types.rounds_hidden)
    quantize_rows(args, launch[part_quantize_hidden], mixture_hidden_scale, halves, r.hidden, r.hidden_scales,
                  workspace);
  multiply(part_down, types.rounds_hidden ? r.hidden : halves, mixture_down, types.quantizes_hidden,
           types.hidden_scales || !types.quantizes_hidden ? r.hidden_scales : args.inputs[mixture_hidden_scale],
           mixture_down_scale, r.results);
}

}  // namespace cermet::cpu

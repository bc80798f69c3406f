#include "kernel/cpu/gemm/prologue.hpp"

#include <algorithm>
#include <array>

#include "base/checked.hpp"
#include "kernel/cpu/before_anchor.hpp"
#include "kernel/step_builder.hpp"

namespace cermet::cpu {
namespace {

constexpr std::size_t most_tensors = 12;

std::size_t anchor_of(const Region& region) { return static_cast<std::size_t>(region.anchor); }

bool is_norm(OpKind op) { return op == OpKind::rms_norm || op == OpKind::add_rms_norm || op == OpKind::layer_norm; }

Dim rows_of(const Region& region) { return region.problem().input(0).dims[0]; }

/// Whether an operand has a part for each row: as its first dimension of two, or as the only one of a scale of tokens.
bool is_by_row(const Region& region, std::size_t operand, Dim rows) {
  const TensorType& type = region.operand_type(operand);
  return (type.rank() == 2 || (type.rank() == 1 && goes_by_token(region, operand))) && type.dims[0] == rows;
}

/// Whether one node reads an operand as a scale of tokens and another as a value for each column.
bool is_by_row_and_column(const Region& region, std::size_t operand) {
  if (!region.has(operand) || region.operand_type(operand).rank() != 1 || !goes_by_token(region, operand)) return false;
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const Region node(region.nodes[n].problem);
    for (std::size_t i = 0; i < region.nodes[n].problem.inputs.size(); ++i)
      if (region.operand_of(n, i) == operand && !goes_by_token(node, i)) return true;
  }
  return false;
}

/// The part of a tensor that belongs to rows [first, last).
TensorView slice_rows(TensorView view, std::int64_t first, std::int64_t last) {
  view.data = view.as<std::byte>() + first * view.strides[0] * static_cast<std::int64_t>(size_of(view.dtype));
  view.shape[0] = last - first;
  return view;
}

}  // namespace

Decline Prologue::declines(const Region& region) {
  const std::size_t count = anchor_of(region);
  if (count == 0) return std::nullopt;
  const RegionNode& anchor = region.nodes[count];
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} before {}: {}", region.nodes[count - 1].problem.op->name, anchor.problem.op->name, why);
  };
  if (!anchor.inputs[0].is_inside() || std::ranges::count_if(anchor.inputs, &RegionInput::is_inside) != 1)
    return fails("the product reads it as more than its left operand");
  if (anchor.problem.input(0).rank() != 2) return fails("its rows have more dimensions than one");
  if (anchor.inputs[0].rounding != Rounding::strict && anchor.problem.input(0).dtype != DType::f32) return fails("float32 is packed as the operand's type");
  const bool elementwise = std::ranges::all_of(region.nodes.begin(), region.nodes.begin() + region.anchor,
                                               [](const RegionNode& node) { return StepBuilder::knows(node.problem.op->kind); });
  const Problem& first = region.nodes[0].problem;
  if (!elementwise && (count > 1 || !is_norm(first.op->kind))) return fails("only elementwise operators or one normalization can precede");
  const std::size_t weight = first.op->kind == OpKind::add_rms_norm ? 2 : 1;
  for (std::size_t i = weight; !elementwise && i < first.inputs.size(); ++i)
    if (first.has(i) && first.input(i).rank() > 1) return fails("its weight covers several dimensions");
  const PartBeforeAnchor part = part_before_anchor(region);
  if (std::max(part.region.operands.size(), part.region.results.size()) > most_tensors) return fails("too many tensors");
  for (std::size_t i = 0; i < part.region.operands.size(); ++i)
    if (is_by_row_and_column(part.region, i)) return fails("an operand goes by row and by column");
  if (std::ranges::any_of(part.region.results, [&](const RegionPlace& place) {
        return region.nodes[static_cast<std::size_t>(place.node)].problem.outputs[static_cast<std::size_t>(place.index)].rank() != 2;
      }))
    return fails("a result is no matrix");
  const auto in_order = [&](const RegionPlace& place) { return place == RegionPlace{0, static_cast<std::int32_t>(&place - part.region.results.data())}; };
  if (count == 1 && (part.region.results.size() != first.outputs.size() || !std::ranges::all_of(part.region.results, in_order)))
    return fails("it stores other results than the region does");
  if (!kernel_without_workspace(part.region)) return fails("no kernel computes it by rows");
  return std::nullopt;
}

Prologue::Prologue(const Region& region) {
  if (anchor_of(region) == 0) return;
  const PartBeforeAnchor part = part_before_anchor(region);
  const Dim rows = rows_of(region);
  launch_ = kernel_without_workspace(part.region)->bind(part.region);
  dtype_ = region.problem().input(0).dtype;
  for (std::size_t i = 0; i < part.operands.size(); ++i) inputs_.push_back({part.operands[i], part.region.has(i) && is_by_row(part.region, i, rows)});
  for (const std::size_t result : part.results) outputs_.push_back({result, true});
}

std::int64_t Prologue::workspace(const Region& region, std::int64_t rows) {
  if (anchor_of(region) == 0) return 0;
  const Problem& p = region.problem();
  return round_up(rows * p.size(0, -1) * static_cast<std::int64_t>(size_of(p.input(0).dtype)), 64);
}

TensorView Prologue::rows(std::int64_t rows, std::int64_t length, std::byte* memory) const { return {memory, dtype_, {rows, length}}; }

void Prologue::run(const LaunchArgs& args, std::int64_t first, std::int64_t last, const TensorView& made, std::int64_t base) const {
  static ThreadPool own_thread(1);
  std::array<TensorView, most_tensors> inputs, outputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].index || !args.has(*inputs_[i].index)) continue;
    const TensorView& whole = args.inputs[*inputs_[i].index];
    inputs[i] = inputs_[i].by_row ? slice_rows(whole, first, last) : whole;
  }
  outputs[0] = slice_rows(made, first - base, last - base);
  for (std::size_t o = 0; o < outputs_.size(); ++o) outputs[o + 1] = slice_rows(args.outputs[*outputs_[o].index], first, last);
  launch_({.inputs = {inputs.data(), inputs_.size()}, .outputs = {outputs.data(), outputs_.size() + 1}, .pool = &own_thread});
}

}  // namespace cermet::cpu

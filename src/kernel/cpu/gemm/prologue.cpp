#include "kernel/cpu/gemm/prologue.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.hpp"
#include "kernel/cpu/gemm/prologue_part.hpp"
#include "kernel/cpu/gemm/row_operands.hpp"
#include "kernel/cpu/gemm/row_slices.hpp"
#include "kernel/step_builder.hpp"

namespace cermet::cpu {
namespace {

constexpr std::size_t most_tensors = 12;

std::size_t anchor_index(const Region& region) { return static_cast<std::size_t>(region.anchor); }

bool is_norm(OpKind op) { return op == OpKind::rms_norm || op == OpKind::add_rms_norm || op == OpKind::layer_norm; }

/// What is computed of each row by itself. Gates of SiLU are left to products that compute them at their end, which
/// grouped ones do not.
bool goes_by_rows(OpKind op, OpKind anchor) {
  return is_norm(op) || op == OpKind::gelu_and_mul || (op == OpKind::silu_and_mul && anchor == OpKind::grouped_linear);
}

/// How many of the first nodes only move elements.
std::size_t moves_of(const Region& region) {
  std::size_t count = 0;
  while (count < anchor_index(region) && PieceMap::knows(region.nodes[count].problem.op->kind)) ++count;
  return count;
}

Dims rows_of(const Region& region) {
  const Dims& x = region.problem().input(0).dims;
  return {x.begin(), x.end() - 1};
}

/// Whether the nodes before a product are norms, perhaps with a quantization, and what comes before them, which one
/// kernel computes by rows.
bool ends_by_rows(const Region& region) {
  const auto anchor = region.nodes.begin() + region.anchor;
  const OpKind last = (anchor - 1)->problem.op->kind;
  const auto knows = [&](const RegionNode& node) {
    const OpKind op = node.problem.op->kind;
    return StepBuilder::knows(op) || is_norm(op) || op == OpKind::gather || (op == last && quantizes_rows(op));
  };
  return std::all_of(region.nodes.begin(), anchor, knows) && (is_norm(last) || quantizes_rows(last)) &&
         anchor->inputs[0].index == region.anchor - 1;
}

/// Whether a mean, seen with other dimensions, is what the anchor reads.
bool begins_with_mean(const Region& region) {
  return anchor_index(region) > 0 && region.nodes[0].problem.op->kind == OpKind::reduce_mean;
}

Decline declines_mean(const Region& region) {
  constexpr std::int64_t most_rows = 64;
  const Problem& mean = region.nodes[0].problem;
  const TensorType& x = region.problem().input(0);
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("reduce_mean before {}: {}", region.problem().op->name, why);
  };
  for (std::size_t n = 1; n <= anchor_index(region); ++n) {
    const RegionNode& node = region.nodes[n];
    if (n < anchor_index(region) && node.problem.op->kind != OpKind::reshape)
      return fails("only reshapes come in between");
    if (node.inputs[0] != RegionInput::inside(n - 1, 0, Rounding::strict) ||
        std::ranges::count_if(node.inputs, &RegionInput::is_inside) != 1)
      return fails("the product reads it as more than its left operand");
  }
  if (std::ranges::any_of(region.results, [&](const RegionPlace& r) { return r.node < region.anchor; }))
    return fails("others read it, too");
  if (mean.input(0).dtype != x.dtype || mean.outputs[0].dtype != x.dtype) return fails("it is of another type");
  std::int64_t rows = 1;
  for (const Dim& dim : x.dims) {
    if (!dim.is_constant()) return fails("its size is open");
    if (&dim != &x.dims.back()) rows *= dim.constant();
  }
  if (x.rank() < 2 || rows > most_rows || region.problem().op->kind == OpKind::grouped_linear)
    return fails("its rows are many");
  return kernel_without_workspace(mean) ? std::nullopt : fails("no kernel computes it alone");
}

}  // namespace

Decline Prologue::declines(const Region& region) {
  if (begins_with_mean(region)) return declines_mean(region);
  const std::size_t count = anchor_index(region), moves = moves_of(region);
  if (count == 0) return std::nullopt;
  const RegionNode& anchor = region.nodes[count];
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} before {}: {}", region.nodes[count - 1].problem.op->name, anchor.problem.op->name, why);
  };
  const TensorType& x = anchor.problem.input(0);
  const Problem& last = region.nodes[count - 1].problem;
  const bool quantizes = quantizes_rows(last.op->kind);
  if (quantizes) {
    if (Decline reason = declines_quantized(region)) return fails(*reason);
  } else if (!anchor.inputs[0].is_inside() || std::ranges::count_if(anchor.inputs, &RegionInput::is_inside) != 1) {
    return fails("the product reads it as more than its left operand");
  }
  if (x.rank() < 2) return fails("it has no rows");
  if (anchor.inputs[0].rounding != Rounding::strict && x.dtype != DType::f32)
    return fails("float32 is packed as the operand's type");
  const bool is_by_rows = goes_by_rows(last.op->kind, anchor.problem.op->kind);
  if (moves > 0) {
    if (!x.dims.back().is_constant()) return fails("the length of rows is open");
    const RegionInput& read = moves == count ? anchor.inputs[0] : region.nodes[moves].inputs[0];
    const RegionPlace place{read.index, read.output};
    if (moves + 1 < count || (moves < count && !is_by_rows))
      return fails("one normalization at most comes between what is moved and the product");
    if (moves < count && (last.op->kind == OpKind::add_rms_norm || last.input(0).dtype != last.outputs[0].dtype ||
                          last.input(0).dims != x.dims))
      return fails("it does not replace what was moved");
    if (moves < count &&
        (!read.is_inside() || std::ranges::count_if(region.nodes[moves].inputs, &RegionInput::is_inside) != 1))
      return fails("it reads what was moved as more than x");
    if (std::ranges::any_of(region.results,
                            [&](const RegionPlace& r) { return r.node < static_cast<std::int32_t>(moves); }))
      return fails("what is moved is read elsewhere");
    if (Decline reason = PieceMap::declines(region, moves, place, x.dims.back().constant())) return fails(*reason);
  }
  if (moves == count) return std::nullopt;
  const bool elementwise =
      std::ranges::all_of(region.nodes.begin(), region.nodes.begin() + region.anchor,
                          [](const RegionNode& node) { return StepBuilder::knows(node.problem.op->kind); });
  const bool by_rows = !elementwise && moves == 0 && count > 1;
  if (!elementwise && (by_rows ? !ends_by_rows(region) : !is_by_rows && !quantizes))
    return fails(
        "only elementwise operators, a normalization, with what is elementwise or gathered before it, or a gate can "
        "precede");
  if (elementwise && x.rank() != 2) return fails("its rows have more dimensions than one");
  const std::size_t weight = last.op->kind == OpKind::add_rms_norm ? 2 : 1;
  for (std::size_t i = weight; is_by_rows && i < last.inputs.size(); ++i)
    if (last.has(i) && last.input(i).rank() > 1) return fails("its weight covers several dimensions");
  if (moves > 0) return kernel_without_workspace(last) ? std::nullopt : fails("no kernel computes it by rows");
  const ProloguePart part(region);
  if (std::max(part.region.operands.size(), part.region.results.size()) > most_tensors)
    return fails("too many tensors");
  for (std::size_t i = 0; i < part.region.operands.size(); ++i)
    if (is_by_row_and_column(part.region, i)) return fails("an operand goes by row and by column");
  for (std::size_t i = 0; by_rows && i < part.region.operands.size(); ++i)
    if (Decline reason = declines_part(part.region, i, rows_of(region))) return fails(*reason);
  for (std::size_t r = 0; r < part.results.size(); ++r) {
    const Dims& dims = part.region.result_type(r).dims;
    const bool has_rows = dims.size() == x.dims.size() && std::equal(dims.begin(), dims.end() - 1, x.dims.begin());
    if (!has_rows && part.results[r] != ProloguePart::made_scales) return fails("a result has other rows");
  }
  const auto in_order = [&](const RegionPlace& place) {
    return place == RegionPlace{0, static_cast<std::int32_t>(&place - part.region.results.data())};
  };
  if (count == 1 &&
      (part.region.results.size() != last.outputs.size() || !std::ranges::all_of(part.region.results, in_order)))
    return fails("it stores other results than the region does");
  if (!kernel_without_workspace(part.region)) return fails("no kernel computes it by rows");
  return std::nullopt;
}

Prologue::Prologue(const Region& region) {
  if (anchor_index(region) == 0) return;
  dtype_ = region.problem().input(0).dtype;
  const std::size_t count = anchor_index(region), moves = moves_of(region);
  if (begins_with_mean(region)) {
    const Region mean(region.nodes[0].problem);
    mean_ = kernel_without_workspace(mean)->bind(mean);
    mean_shape_ = bind(mean.result_type(0).dims, {});
    inputs_.push_back({region.operand_of(0, 0), Part::whole});
    return;
  }
  if (moves == 0) {
    ProloguePart part(region);
    const Dims rows = rows_of(region);
    launch_ = kernel_without_workspace(part.region)->bind(part.region);
    for (std::size_t i = 0; i < part.operands.size(); ++i)
      inputs_.push_back({part.operands[i], part_of(part.region, i, rows)});
    outputs_ = std::move(part.results);
    copies_ = std::move(part.copies);
    return;
  }
  const RegionInput& read = region.nodes[moves].inputs[0];
  moved_ = PieceMap(region, moves, {read.index, read.output}, region.problem().input(0).dims.back().constant());
  if (moves == count) return;
  const Region norm(region.nodes[moves].problem);
  launch_ = kernel_without_workspace(norm)->bind(norm);
  outputs_ = {ProloguePart::made_rows};
  for (std::size_t i = 0; i < norm.operands.size(); ++i) inputs_.push_back({region.operand_of(moves, i), Part::whole});
  for (std::size_t r = 0; r < region.results.size(); ++r)
    if (region.results[r].node == static_cast<std::int32_t>(moves)) copies_.push_back(r);
}

Prologue::Part Prologue::part_of(const Region& before, std::size_t operand, const Dims& rows) {
  if (!before.has(operand)) return Part::whole;
  const GatheredAs as(before, operand);
  if (as.rows) return Part::whole;
  if (as.index) return Part::values;
  if (is_by_row(before, operand, rows)) return Part::rows;
  return !goes_by_token(before, operand) && repeats_along_rows(before.operand_type(operand).dims, rows) ? Part::repeated
                                                                                                        : Part::whole;
}

std::int64_t Prologue::workspace(const Region& region, std::int64_t rows) {
  if (anchor_index(region) == 0) return 0;
  const Problem& p = region.problem();
  return round_up(rows * p.size(0, -1) * static_cast<std::int64_t>(size_of(p.input(0).dtype)), 64);
}

TensorView Prologue::rows(std::int64_t rows, std::int64_t length, std::byte* memory) const {
  return {memory, dtype_, {rows, length}};
}

void Prologue::make_all(const LaunchArgs& args, const TensorView& made) const {
  const TensorView y(made.data, dtype_, mean_shape_);
  mean_({.inputs = {&args.inputs[*inputs_[0].index], 1}, .outputs = {&y, 1}, .pool = args.pool});
}

void Prologue::launch(const LaunchArgs& args, std::int64_t first, std::int64_t last, const TensorView& made,
                      const TensorView& scales) const {
  static ThreadPool own_thread(1);
  thread_local std::array<TensorView, most_tensors> inputs,
      outputs;  // as large as they are, clearing them costs more than using some
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].index || !args.has(*inputs_[i].index)) {
      inputs[i].present = false;
      continue;
    }
    const TensorView& whole = args.inputs[*inputs_[i].index];
    switch (inputs_[i].part) {
      case Part::whole: inputs[i] = whole; break;
      case Part::rows: inputs[i] = slice_rows(whole, first, last); break;
      case Part::values: inputs[i] = slice_values(whole, first, last); break;
      case Part::repeated: {
        const std::int64_t at = first % Rows(whole).count();
        inputs[i] = slice_rows(whole, at, at + last - first);
      }
    }
  }
  if (moved_) inputs[0] = made;
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const std::size_t to = outputs_[o];
    outputs[o] = to == ProloguePart::made_rows     ? made
                 : to == ProloguePart::made_scales ? scales
                                                   : slice_rows(args.outputs[to], first, last);
  }
  launch_(
      {.inputs = {inputs.data(), inputs_.size()}, .outputs = {outputs.data(), outputs_.size()}, .pool = &own_thread});
}

std::int64_t Prologue::end_of_launch(const LaunchArgs& args, std::int64_t first, std::int64_t last) const {
  for (const Place& place : inputs_) {
    if (place.part != Part::repeated) continue;
    const std::int64_t count = Rows(args.inputs[*place.index]).count();
    last = std::min(last, first + count - first % count);
  }
  return last;
}

void Prologue::run(const LaunchArgs& args, std::int64_t first, std::int64_t last, const TensorView& all,
                   std::int64_t base, const TensorView& scales) const {
  const TensorView made = slice_rows(all, first - base, last - base);
  const std::int64_t length = made.shape.back(), bytes = length * static_cast<std::int64_t>(size_of(dtype_));
  if (moved_) moved_.copy(args, first * length, last * length, made.as<std::byte>());
  const auto lies_apart = [&](const Place& place) {
    if (!place.index || place.part == Part::whole || !args.has(*place.index)) return false;
    return place.part == Part::values ? !is_even(args.inputs[*place.index]) : !is_matrix(args.inputs[*place.index]);
  };
  const bool by_single_rows =
      std::ranges::any_of(inputs_, lies_apart) || std::ranges::any_of(outputs_, [&](std::size_t o) {
        return o < args.outputs.size() && !is_matrix(args.outputs[o]);
      });
  for (std::int64_t row = first; launch_ && row < last;) {
    const std::int64_t end = by_single_rows ? row + 1 : end_of_launch(args, row, last);
    launch(args, row, end, slice_rows(all, row - base, end - base),
           scales.present ? slice_rows(scales, row - base, end - base) : scales);
    row = end;
  }
  for (const std::size_t copy : copies_) {
    const Rows to(args.outputs[copy]);
    for (std::int64_t row = first; row < last; ++row)
      std::memcpy(to.row(row), made.as<std::byte>() + (row - first) * bytes, static_cast<std::size_t>(bytes));
  }
}

}  // namespace cermet::cpu

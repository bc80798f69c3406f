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

/// Whether a node reads those before it as its first operand alone.
bool reads_once(const RegionNode& node) {
  return node.inputs[0].is_inside() && std::ranges::count_if(node.inputs, &RegionInput::is_inside) == 1;
}

/// A reason not to take a region, and whether it applies.
struct Row {
  std::string_view why;
  bool applies;
};
Decline first_of(std::initializer_list<Row> rows) {
  const auto* const row = std::ranges::find(rows, true, &Row::applies);
  return row == rows.end() ? std::nullopt : Decline(row->why);
}

/// Why a product does not take its rows from the nodes before it, of which the first ones only move elements.
class Declines {
 public:
  explicit Declines(const Region& region)
      : region_(region),
        count_(anchor_index(region)),
        moves_(moves_of(region)),
        product_(region.nodes[count_]),
        last_(region.nodes[count_ - 1].problem),
        x_(product_.problem.input(0)),
        quantizes_(quantizes_rows(last_.op->kind)),
        by_rows_(goes_by_rows(last_.op->kind, product_.problem.op->kind)) {}

  Decline reason() const {
    if (Decline reason = of_product()) return reason;
    if (moves_ > 0)
      if (Decline reason = of_moves()) return reason;
    if (moves_ == count_) return std::nullopt;
    return of_nodes();
  }

 private:
  Decline of_product() const {
    if (quantizes_)
      if (Decline reason = declines_quantized(region_)) return reason;
    return first_of({
        {"the product reads it as more than its left operand", !quantizes_ && !reads_once(product_)},
        {"it has no rows", x_.rank() < 2},
        {"float32 is packed as the operand's type",
         product_.inputs[0].rounding != Rounding::strict && x_.dtype != DType::f32},
    });
  }

  Decline of_moves() const {
    const bool computes = moves_ < count_;
    const auto is_moved = [&](const RegionPlace& r) { return r.node < static_cast<std::int32_t>(moves_); };
    const Decline reason = first_of({
        {"the length of rows is open", !x_.dims.back().is_constant()},
        {"one normalization at most comes between what is moved and the product",
         moves_ + 1 < count_ || (computes && !by_rows_)},
        {"it does not replace what was moved",
         computes && (last_.op->kind == OpKind::add_rms_norm || last_.input(0).dtype != last_.outputs[0].dtype ||
                      last_.input(0).dims != x_.dims)},
        {"it reads what was moved as more than x", computes && !reads_once(region_.nodes[moves_])},
        {"what is moved is read elsewhere", std::ranges::any_of(region_.results, is_moved)},
    });
    const RegionInput& read = region_.nodes[moves_].inputs[0];
    return reason ? reason : PieceMap::declines(region_, moves_, {read.index, read.output}, x_.dims.back().constant());
  }

  Decline of_nodes() const {
    const auto is_step = [](const RegionNode& node) { return StepBuilder::knows(node.problem.op->kind); };
    const bool elementwise = std::all_of(region_.nodes.begin(), region_.nodes.begin() + region_.anchor, is_step);
    const bool is_chain = !elementwise && moves_ == 0 && count_ > 1;
    if (const Decline reason = first_of({
            {"only elementwise operators, a normalization, with what is elementwise or gathered before it, or a gate "
             "can precede",
             !elementwise && (is_chain ? !ends_by_rows(region_) : !by_rows_ && !quantizes_)},
            {"its rows have more dimensions than one", elementwise && x_.rank() != 2},
            {"its weight covers several dimensions", by_rows_ && weight_has_dimensions()},
            {"no kernel computes it by rows", moves_ > 0 && !kernel_without_workspace(last_)},
        }))
      return reason;
    return moves_ > 0 ? std::nullopt : of_part(ProloguePart(region_), is_chain);
  }
  bool weight_has_dimensions() const {
    for (std::size_t i = last_.op->kind == OpKind::add_rms_norm ? 2 : 1; i < last_.inputs.size(); ++i)
      if (last_.has(i) && last_.input(i).rank() > 1) return true;
    return false;
  }

  Decline of_part(const ProloguePart& part, bool is_chain) const {
    const Region& own = part.region;
    if (std::max(own.operands.size(), own.results.size()) > most_tensors) return "too many tensors";
    for (std::size_t i = 0; i < own.operands.size(); ++i)
      if (is_by_row_and_column(own, i)) return "an operand goes by row and by column";
    for (std::size_t i = 0; is_chain && i < own.operands.size(); ++i)
      if (Decline reason = declines_part(own, i, rows_of(region_))) return reason;
    for (std::size_t r = 0; r < part.results.size(); ++r) {
      const Dims& dims = own.result_type(r).dims;
      const bool has_rows = dims.size() == x_.dims.size() && std::equal(dims.begin(), dims.end() - 1, x_.dims.begin());
      if (!has_rows && part.results[r] != ProloguePart::made_scales) return "a result has other rows";
    }
    const auto in_order = [&](const RegionPlace& place) {
      return place == RegionPlace{0, static_cast<std::int32_t>(&place - own.results.data())};
    };
    const bool stores_same = own.results.size() == last_.outputs.size() && std::ranges::all_of(own.results, in_order);
    if (count_ == 1 && !stores_same) return "it stores other results than the region does";
    return kernel_without_workspace(own) ? std::nullopt : Decline("no kernel computes it by rows");
  }

  const Region& region_;
  std::size_t count_, moves_;
  const RegionNode& product_;
  const Problem& last_;  ///< of the nodes before it
  const TensorType& x_;
  bool quantizes_, by_rows_;
};

}  // namespace

Decline Prologue::declines(const Region& region) {
  if (begins_with_mean(region)) return declines_mean(region);
  if (region.anchor == 0) return std::nullopt;
  const Decline reason = Declines(region).reason();
  if (!reason) return std::nullopt;
  return fmt::format("{} before {}: {}", region.nodes[anchor_index(region) - 1].problem.op->name,
                     region.problem().op->name, *reason);
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
  return round_up(rows * p.size(0, -1) * byte_size(p.input(0).dtype), 64);
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
  for (const Input& input : inputs_) {
    if (input.part != Part::repeated) continue;
    const std::int64_t count = Rows(args.inputs[*input.index]).count();
    last = std::min(last, first + count - first % count);
  }
  return last;
}

void Prologue::run(const LaunchArgs& args, std::int64_t first, std::int64_t last, const TensorView& all,
                   std::int64_t base, const TensorView& scales) const {
  const TensorView made = slice_rows(all, first - base, last - base);
  const std::int64_t length = made.shape.back(), bytes = length * byte_size(dtype_);
  if (moved_) moved_.copy(args, first * length, last * length, made.as<std::byte>());
  const auto lies_apart = [&](const Input& input) {
    if (!input.index || input.part == Part::whole || !args.has(*input.index)) return false;
    return input.part == Part::values ? !is_even(args.inputs[*input.index]) : !is_matrix(args.inputs[*input.index]);
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

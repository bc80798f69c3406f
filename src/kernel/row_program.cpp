#include "kernel/row_program.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/step_builder.hpp"
#include "op/axes.hpp"

namespace cermet {
namespace {

using Source = TileProgram::Source;
using Kind = RowProgram::Reduction::Kind;

/// Operators that reduce rows, which are their operand 0.
bool reduces(OpKind op) {
  switch (op) {
    case OpKind::rms_norm:
    case OpKind::add_rms_norm:
    case OpKind::layer_norm:
    case OpKind::softmax:
    case OpKind::reduce_sum:
    case OpKind::reduce_mean:
    case OpKind::reduce_max:
    case OpKind::dynamic_quant: return true;
    default: return false;
  }
}

/// Dimensions of the rows that the region's first such operator reduces.
Dims row_dims(const Region& region) {
  for (const RegionNode& node : region.nodes)
    if (reduces(node.problem.op->kind)) return node.problem.input(0).dims;
  return {};
}

/// Dimensions of a row of an operator: those of its weight.
int row_rank(const Problem& p) {
  int rank = 1;
  if (p.op->kind != OpKind::rms_norm && p.op->kind != OpKind::add_rms_norm && p.op->kind != OpKind::layer_norm) return rank;
  for (std::size_t i = p.op->kind == OpKind::add_rms_norm ? 2 : 1; i < p.inputs.size(); ++i)
    if (p.has(i)) rank = p.input(i).rank();
  return rank;
}

class Builder {
 public:
  explicit Builder(const Region& region) : region_(region), steps_(region, [this](const Dims& dims) { return extent(dims); }) {
    made_.dims = row_dims(region);
    if (region.is_single()) made_.trailing = row_rank(region.problem());
  }

  RowProgramOrReason build() {
    if (made_.dims.empty()) return {{}, fmt::format("{}: reduces no rows", region_.operators())};
    for (std::size_t n = 0; n < region_.nodes.size() && !steps_.reason(); ++n) append(n);
    if (!steps_.reason()) add_results();
    TileProgramOrReason tile = steps_.finish();
    made_.tile = std::move(tile.program);
    for (const TileProgram::Step& step : made_.tile.steps)
      made_.row_steps.push_back(made_.goes_by_row(step.a) && (!TileProgram::is_binary(step) || made_.goes_by_row(step.b)));
    if (!tile.reason) tile.reason = fault();
    return {std::move(made_), std::move(tile.reason)};
  }

 private:
  std::optional<TileProgram::Extent> extent(const Dims& dims) const {
    if (made_.trailing == 1) return broadcast_extent_of(dims, made_.dims);
    const bool is_row = std::equal(dims.begin(), dims.end(), made_.dims.end() - made_.trailing, made_.dims.end());
    return is_row && dims != made_.dims ? TileProgram::Extent::column : extent_of(dims, made_.dims);
  }

  const Problem& problem(std::size_t n) const { return region_.nodes[n].problem; }

  void append(std::size_t n) {
    const Problem& p = problem(n);
    const auto is_real = [](const TensorType& t) { return dtypes::real.contains(t.dtype); };
    if (!reduces(p.op->kind)) return StepBuilder::knows(p.op->kind) ? steps_.follow(n) : steps_.fail(n, "neither elementwise nor a reduction of rows");
    if (p.input(0).dims != made_.dims) return steps_.fail(n, "its rows have other dimensions than others of the region");
    if (!is_real(p.input(0))) return steps_.fail(n, "its rows are no real numbers");
    switch (p.op->kind) {
      case OpKind::rms_norm:
      case OpKind::add_rms_norm: return rms_norm(n);
      case OpKind::layer_norm: return layer_norm(n);
      case OpKind::softmax: return softmax(n);
      case OpKind::dynamic_quant: return quantize(n);
      default: return reduce(n);
    }
  }

  Source reduced(Kind kind, Source value, float eps = 0) {
    made_.reductions.push_back({kind, value, eps});
    return steps_.input(DType::f32);
  }
  /// Notes what the first reduction of the region reads.
  Source row(Source value) {
    if (!has_row_) made_.row = value;
    has_row_ = true;
    return value;
  }
  bool has_weights_of_rows(std::size_t n, std::size_t weight) const { return !problem(n).has(weight) || problem(n).input(weight).rank() == made_.trailing; }

  void rms_norm(std::size_t n) {
    const Problem& p = problem(n);
    const bool adds = p.op->kind == OpKind::add_rms_norm;
    const std::size_t weight = adds ? 2 : 1;
    if (!has_weights_of_rows(n, weight)) return steps_.fail(n, "normalizes over several dimensions");
    Source v = steps_.operand(n, 0);
    if (adds) {
      const Source residual = steps_.operand(n, 1);
      if (residual.from == Source::From::extra) made_.overwritten = static_cast<std::size_t>(residual.index);
      v = steps_.add(OpKind::add, v, residual);
      if (p.attributes.flag("round_sum")) v = steps_.rounded(v, p.outputs[1].dtype, Rounding::strict);
      steps_.set(n, 1, v);
    }
    v = row(v);
    Source y = steps_.add(OpKind::mul, v, reduced(Kind::inverse_root, v, static_cast<float>(p.attributes.number("eps"))));
    if (p.has(weight)) {
      const auto offset = static_cast<float>(p.attributes.number("weight_offset"));
      const Source w = steps_.operand(n, weight);
      y = steps_.add(OpKind::mul, y, offset == 0 ? w : steps_.add(OpKind::add, w, StepBuilder::number(offset)));
    }
    steps_.set(n, 0, y);
  }

  void layer_norm(std::size_t n) {
    const Problem& p = problem(n);
    constexpr std::size_t weight = 1, bias = 2;
    if (!has_weights_of_rows(n, weight) || !has_weights_of_rows(n, bias)) return steps_.fail(n, "normalizes over several dimensions");
    const Source v = row(steps_.operand(n, 0));
    const Source centered = steps_.add(OpKind::sub, v, reduced(Kind::mean, v));
    Source y = steps_.add(OpKind::mul, centered, reduced(Kind::inverse_root, centered, static_cast<float>(p.attributes.number("eps"))));
    if (p.has(weight)) y = steps_.add(OpKind::mul, y, steps_.operand(n, weight));
    if (p.has(bias)) {
      y = steps_.add(OpKind::add, y, steps_.operand(n, bias));
      steps_.program().steps.back().fused_multiply = true;
    }
    steps_.set(n, 0, y);
  }

  void softmax(std::size_t n) {
    const Source v = row(steps_.operand(n, 0));
    const Source distance = steps_.add(OpKind::sub, v, reduced(Kind::max, v)), e = steps_.add(OpKind::exp, distance);
    const Source total = reduced(Kind::sum, e);
    const bool logarithm = problem(n).attributes.flag("log");
    steps_.set(
        n, 0,
        logarithm ? steps_.add(OpKind::sub, distance, steps_.add(OpKind::log, total)) : steps_.add(OpKind::mul, e, steps_.add(OpKind::reciprocal, total)));
  }

  void reduce(std::size_t n) {
    const Problem& p = problem(n);
    const std::vector<int> axes = axes_attribute(p, "axes", p.input(0).rank());
    if (axes != std::vector<int>{p.input(0).rank() - 1}) return steps_.fail(n, "reduces other dimensions than the last");
    if (!p.attributes.flag("keepdims")) return steps_.fail(n, "drops the dimension that it reduces");
    const Source v = row(steps_.operand(n, 0));
    steps_.set(n, 0, reduced(p.op->kind == OpKind::reduce_sum ? Kind::sum : p.op->kind == OpKind::reduce_mean ? Kind::mean : Kind::max, v));
  }

  void quantize(std::size_t n) {
    constexpr std::size_t smooth = 1, index = 2;
    const Problem& p = problem(n);
    if (p.attributes.text("granularity") == "tensor") return steps_.fail(n, "one scale for everything takes two passes over all rows");
    if (p.has(index)) return steps_.fail(n, "its smoothing factors go by an index");
    if (made_.quantization) return steps_.fail(n, "a second dynamic quantization");
    for (std::size_t o = 0; o < p.outputs.size(); ++o)
      if (std::ranges::find(region_.results, RegionPlace{static_cast<std::int32_t>(n), static_cast<std::int32_t>(o)}) == region_.results.end())
        return steps_.fail(n, fmt::format("its result {} does not leave the region", o));
    Source v = row(steps_.operand(n, 0));
    if (p.has(smooth)) v = steps_.add(OpKind::mul, v, steps_.operand(n, smooth));
    made_.quantization = {n, v};
  }

  void add_results() {
    Dims by_row = made_.dims;
    by_row.back() = Dim(1);
    for (std::size_t i = 0; i < region_.results.size(); ++i) {
      const auto node = static_cast<std::size_t>(region_.results[i].node);
      if (made_.quantization && node == made_.quantization->node) continue;
      const TensorType& type = region_.result_type(i);
      if (type.dims != made_.dims && type.dims != by_row) return steps_.fail(node, "its result has other dimensions than the rows");
      made_.results_by_row.push_back(type.dims != made_.dims);
      steps_.program().results.push_back({i, *steps_.value(node, static_cast<std::size_t>(region_.results[i].index)), type.dtype});
    }
  }

  std::optional<std::string> fault() const {
    for (const auto& extra : made_.tile.extras)
      if (extra.dtype == DType::i32) return fmt::format("operand {} of the region is i32; rows are float32", extra.operand);
    return std::nullopt;
  }

  const Region& region_;
  RowProgram made_;
  bool has_row_ = false;
  StepBuilder steps_;
};

std::string_view name_of(Kind kind) {
  static constexpr std::string_view names[] = {"sum", "mean", "max", "inverse_root"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace

bool RowProgram::goes_by_row(const Source& source) const {
  const auto at = static_cast<std::size_t>(source.index);
  switch (source.from) {
    case Source::From::input:
    case Source::From::number: return true;
    case Source::From::extra: return tile.extras[at].extent == TileProgram::Extent::scalar || tile.extras[at].extent == TileProgram::Extent::row;
    case Source::From::step: return row_steps[at];
  }
  assertion_failed("a source", __FILE__, __LINE__);
}

std::vector<bool> RowProgram::steps_behind(std::span<const Source> values, std::span<const Source> known) const {
  std::vector<bool> behind(tile.steps.size());
  const auto is_known = [&](const Source& s) { return std::ranges::find(known, s) != known.end(); };
  const auto mark = [&](const auto& self, const Source& s) -> void {
    if (s.from != Source::From::step || is_known(s) || behind[static_cast<std::size_t>(s.index)]) return;
    behind[static_cast<std::size_t>(s.index)] = true;
    const TileProgram::Step& step = tile.steps[static_cast<std::size_t>(s.index)];
    self(self, step.a);
    if (TileProgram::is_binary(step)) self(self, step.b);
  };
  for (const Source& value : values) mark(mark, value);
  return behind;
}

std::string RowProgram::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < reductions.size(); ++i)
    text += fmt::format("in{} = {}({}{}); ", i, name_of(reductions[i].kind), text_of(reductions[i].value),
                        reductions[i].kind == Kind::inverse_root ? fmt::format(", {}", reductions[i].eps) : "");
  if (quantization) text += fmt::format("quantizes {}; ", text_of(quantization->value));
  return text + tile.to_string();
}

RowProgramOrReason row_program(const Region& region) { return Builder(region).build(); }

}  // namespace cermet

#include "kernel/cuda/rowwise/row_region_kernel.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/rowwise/row_params.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/rowwise/row_configs.hpp"
#include "kernel/cuda/rowwise/row_source.hpp"
#include "kernel/row_program.hpp"

namespace cermet::cuda {
namespace {

using Extent = TileProgram::Extent;
constexpr std::size_t most_operands = row_region::most_operands;
static_assert(most_operands <= StridedRows::most_operands);

/// A region as the programs and the launches of its kernel need it.
struct RowRegion {
  RowProgram program;
  RowQuantization quantized;
  std::string quantization;  ///< as device code spells it
  bool factors_out = false;  ///< see leaves_factor_out()
  RowSpec spec;

  RowRegion(const Region& region, const RowSpecOf& spec_of, const Config& config = {})
      : program(row_program(region).program) {
    if (region.is_single() && spec_of) spec = spec_of(region.problem());
    else tune();
    spec.columns = columns();
    spec.target = region.target();
    if (program.quantization) {
      const Problem& p = region.nodes[program.quantization->node].problem;
      quantized = {.format = quantized_format(p.attributes), .exact = p.op->kind == OpKind::dynamic_quant};
      spec.group = quantized.group(spec.columns);
      quantization = quantized.text(spec.columns);
      factors_out = !quantized.exact && spec.group == 0 && !quantized.format.asymmetric && leaves_factor_out(program);
    }
    spec = configured(spread_over_device(spec, rows(region.maximum())), config);
  }
  bool is_along_row(std::size_t extra) const {
    const Extent extent = program.tile.extras[extra].extent;
    return extent == Extent::element || extent == Extent::column;
  }

 private:
  /// Of a row; 0 where they are known at run time only.
  std::int64_t columns() const {
    std::int64_t product = 1;
    for (auto dim = program.dims.end() - program.trailing; dim != program.dims.end(); ++dim)
      product *= dim->is_constant() ? dim->constant() : 0;
    return product;
  }
  std::int64_t rows(const SymbolValues& sizes) const {
    std::int64_t product = 1;
    for (auto dim = program.dims.begin(); dim != program.dims.end() - program.trailing; ++dim)
      product *= dim->value(sizes);
    return product;
  }
  /// Few elements for each thread: what a region computes besides is not known here.
  void tune() {
    std::size_t widest = 1, loaded = 0, along = 0;
    for (std::size_t i = 0; i < program.tile.extras.size(); ++i) {
      if (!is_along_row(i)) continue;
      ++along;
      const std::size_t bytes = size_of(program.tile.extras[i].dtype);
      if (program.tile.extras[i].extent == Extent::element) widest = std::max(widest, bytes);
      loaded += bytes;
    }
    for (std::size_t j = 0; j < program.tile.results.size(); ++j)
      if (!program.results_by_row[j]) widest = std::max(widest, size_of(program.tile.results[j].dtype));
    spec.width = static_cast<int>(16 / widest);
    const int registers = std::min(128, 56 + 8 * static_cast<int>(along + program.tile.results.size()));
    spec.short_rows = spec.long_rows = {.elements = 16, .registers = registers};
    spec.keep = program.row.from == TileProgram::Source::From::step;
    spec.loaded_bytes = static_cast<double>(loaded);
    spec.most_columns = static_cast<std::int64_t>(49152 / std::max<std::size_t>(2, loaded));
  }
};

std::vector<Program> programs(const Region& region, const Config& config, const RowSpecOf& spec_of) {
  const RowRegion made(region, spec_of, config);
  const std::string prelude = row_source(made.program, made.quantization, made.factors_out);
  const RowVariants variants(made.spec);
  std::vector<Program> list;
  for (const RowVariant& variant : variants.list()) {
    Program program = variant_program(
        "kernel/cuda/device/rowwise/region.cuh",
        fmt::format("cermet::row_region::Task<cermet::row_region::Body, {}>", layout_text(variant.layout)), variant);
    program.prelude = prelude;
    list.push_back(std::move(program));
  }
  return list;
}

/// An operand of the launch: an input of the region, or a result.
struct Operand {
  bool is_result = false;
  std::size_t index = 0;
  bool has_rows = true;  ///< one row for each row of the region; others are the same for all, or not there
  bool along = true;     ///< its rows have all columns
  bool by_row = false;   ///< no last dimension: one number for each row
  bool shared = false;   ///< the memory of an earlier one
};

std::vector<Operand> operands_of(const Region& region, const RowRegion& made) {
  std::vector<Operand> list;
  const TileProgram& tile = made.program.tile;
  const Dims leading(made.program.dims.begin(), made.program.dims.end() - made.program.trailing);
  for (std::size_t i = 0; i < tile.extras.size(); ++i) {
    const TileProgram::Extra& extra = tile.extras[i];
    const Extent extent = extra.extent;
    const bool shared = std::ranges::any_of(
        tile.extras.begin(), tile.extras.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const TileProgram::Extra& e) { return e.operand == extra.operand && e.extent == extent; });
    list.push_back({false, extra.operand, extent == Extent::element || extent == Extent::row, made.is_along_row(i),
                    extent == Extent::row && region.operand_type(extra.operand).dims == leading, shared});
  }
  for (std::size_t j = 0; j < tile.results.size(); ++j)
    list.push_back({true, tile.results[j].result, true, !made.program.results_by_row[j]});
  return list;
}

class Bound {
 public:
  Bound(const Region& region, const Config& config, const RowSpecOf& spec_of)
      : made_(region, spec_of, config),
        programs_(made_.spec),
        operands_(operands_of(region, made_)),
        quantized_(made_.program.quantization ? made_.program.quantization->results : std::vector<std::size_t>()),
        rank_(static_cast<int>(made_.program.dims.size())) {}

  void operator()(const LaunchArgs& args) const {
    std::array<TensorView, StridedRows::most_operands> views;
    std::array<RowView, StridedRows::most_operands> rows;
    std::array<std::size_t, StridedRows::most_operands> of_operand{};  // index in `rows`
    std::size_t count = 0;
    row_region::Params params{};
    bool aligned = true;
    const auto add_view = [&](const TensorView& view, int trailing) {
      views[count] = view;
      rows[count] = {&views[count], trailing};
      return count++;
    };
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Operand& o = operands_[i];
      if (o.shared) continue;
      const TensorView& view = o.is_result ? args.outputs[o.index] : args.inputs[o.index];
      if (o.has_rows) {
        of_operand[i] = o.by_row ? add_view(view, 0) : add_view(with_rank(view, rank_), made_.program.trailing);
      } else {
        params.operands[i].data = view.data;
        if (o.along) aligned = aligned && is_aligned(view, programs_.width());
      }
      if (o.along && o.has_rows) params.length = length_of(view);
    }
    const std::size_t first_quantized = count;
    if (!quantized_.empty()) params.length = length_of(args.outputs[quantized_[0]]);
    for (std::size_t i = 0; i < quantized_.size(); ++i)
      add_view(args.outputs[quantized_[i]], i == 0 || made_.quantized.groups() ? 1 : 0);
    const StridedRows strided(std::span(rows.data(), count),
                              count - 1);  // the last is a result, which no leading dimension repeats
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].has_rows && operands_[i].along && !operands_[i].shared)
        aligned = aligned && strided.aligned(of_operand[i], programs_.width());
    if (!quantized_.empty()) aligned = aligned && strided.aligned(first_quantized, programs_.width());
    params.dims = strided.dims();
    params.rows = static_cast<std::uint32_t>(strided.rows());
    const std::size_t program = programs_.choose(strided, aligned, args.queue->target());
    for (std::int64_t launch = 0; launch < strided.launches(); ++launch) {
      for (std::size_t i = 0; i < operands_.size(); ++i)
        if (operands_[i].has_rows && !operands_[i].shared) params.operands[i] = strided.operand(of_operand[i], launch);
      RowOperand* const quantized[] = {&params.out.values, &params.out.scale, &params.out.zero_point};
      for (std::size_t i = 0; i < quantized_.size(); ++i) *quantized[i] = strided.operand(first_quantized + i, launch);
      args.queue->run(program, programs_.items(program, strided.rows()), params);
    }
  }

 private:
  std::int32_t length_of(const TensorView& view) const {
    std::int64_t length = 1;
    for (int axis = view.shape.rank() - made_.program.trailing; axis < view.shape.rank(); ++axis)
      length *= view.shape[axis];
    return narrow(length, "row kernel", "columns");
  }

  RowRegion made_;
  RowVariants programs_;
  std::vector<Operand> operands_;
  std::vector<std::size_t> quantized_;  ///< results of the region
  int rank_;
};

Decline declines(const Region& region) {
  RowProgramOrReason made = row_program(region);
  if (made.reason) return made.reason;
  const RowProgram& program = made.program;
  const std::size_t reductions = program.reductions.size() + (program.quantization ? 1 : 0);
  if (reductions > most_row_reductions)
    return fmt::format("reduces its rows {} times, at most {} in one program", reductions, most_row_reductions);
  const std::size_t quantized = program.quantization ? program.quantization->results.size() : 0;
  const std::size_t count = program.tile.extras.size() + program.tile.results.size() + quantized;
  if (count > most_operands)
    return fmt::format("reads and writes {} tensors, at most {} in one program", count, most_operands);
  const auto is_row = [&](const TileProgram::Result& r) { return r.value == program.row; };
  const bool row_is_all = program.reductions.empty() && std::ranges::all_of(program.tile.results, is_row);
  for (const TileProgram::Extra& extra : program.tile.extras) {
    const bool along = extra.extent == Extent::element || extra.extent == Extent::column;
    if (extra.dtype == DType::i32 && !(row_is_all && along))
      return fmt::format("operand {} of the region is i32; rows are float32", extra.operand);
    if (extra.index) return fmt::format("operand {} of the region is read by index", extra.operand);
    if (extra.takes_part() && !row_is_all)
      return fmt::format("operand {} of the region has two values for each of a row", extra.operand);
  }
  const auto is_element = [](const TileProgram::Extra& extra) { return extra.extent == Extent::element; };
  if (std::ranges::none_of(program.tile.extras, is_element)) return "no operand has all columns of its rows";
  return std::nullopt;
}

}  // namespace

Kernel row_kernel(std::string name, OpKind op, std::string summary, const RowSpecOf& spec_of) {
  return {
      .name = std::move(name),
      .op = op,
      .summary = std::move(summary),
      .fuses = true,
      .declines = declines,
      .bind = [spec_of](const Region& region, const Config& config) -> Launcher {
        return Bound(region, config, spec_of);
      },
      .programs = [spec_of](const Region& region, const Config& config) { return programs(region, config, spec_of); },
      .configs = [spec_of](const Region& region) { return row_configs(RowRegion(region, spec_of).spec); },
      .space = [spec_of](const Region& region) { return row_space(RowRegion(region, spec_of).spec); },
      .cost =
          [spec_of](const Region& region, const Config& config, const DeviceLimits& limits) {
            return row_cost(region, RowRegion(region, spec_of, config).spec, limits);
          }};
}

}  // namespace cermet::cuda

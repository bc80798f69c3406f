#include "kernel/cpu/pointwise/tile_region.hpp"

#include "base/checked.hpp"
#include "kernel/cpu/tile_program.hpp"
#include "kernel/region_views.hpp"
#include "kernel/step_builder.hpp"

namespace cermet::cpu {
namespace {

constexpr std::size_t most_operands = BoundTileProgram::most_extras, most_results = BoundTileProgram::most_results;

/// The tensors of a launch, as one row where all are dense and, whatever the symbols are, of the same dimensions or
/// single values: the program knows which operand is one value for each row, and with a symbol at 1 that may have the
/// dimensions of a result.
class Tensors {
 public:
  Tensors(const LaunchArgs& args, bool is_flat, const std::vector<SeenAxes>& axes) {
    for (std::size_t i = 0; i < args.inputs.size(); ++i)
      views_[i] = args.inputs[i].present ? seen(args.inputs[i], axes[i]) : args.inputs[i];
    for (std::size_t i = 0; i < args.outputs.size(); ++i) views_[most_operands + i] = args.outputs[i];
    inputs_ = args.inputs.size(), outputs_ = args.outputs.size();
    const Shape shape = args.outputs[0].shape;
    const auto flattens = [](const TensorView& view) { return !view.present || view.is_dense(); };
    if (!is_flat || shape.rank() == 1 || !std::ranges::all_of(views_, flattens)) return;
    for (TensorView& view : views_)
      if (view.present) view = TensorView(view.data, view.dtype, {view.elements()});
  }
  LaunchArgs args(const LaunchArgs& from) const {
    return {
        .inputs = {views_.data(), inputs_}, .outputs = {views_.data() + most_operands, outputs_}, .pool = from.pool};
  }

 private:
  std::array<TensorView, most_operands + most_results> views_;
  std::size_t inputs_, outputs_;
};

void run_program(const BoundTileProgram& program, const LaunchArgs& given, bool is_flat,
                 const std::vector<SeenAxes>& axes) {
  if (given.outputs[0].elements() == 0) return;
  const Tensors tensors(given, is_flat, axes);
  const LaunchArgs args = tensors.args(given);
  const TileRun run(program, args);
  constexpr auto most_values = static_cast<std::int64_t>(BoundTileProgram::most_values),
                 least_columns = static_cast<std::int64_t>(BoundTileProgram::least_columns);
  const Rows results(args.outputs[0]);
  const std::int64_t rows = results.count(), columns = std::min(most_values, results.length()),
                     tile_rows = most_values / std::max(columns, least_columns);
  const std::int64_t across = div_up(results.length(), columns), tiles = across * div_up(rows, tile_rows);
  constexpr std::int64_t worth_a_thread = 8;  // tiles
  args.pool->parallel_for(tiles, worth_a_thread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = tile / across * tile_rows, column = tile % across * columns;
      run(nullptr, {row, std::min(tile_rows, rows - row), column, std::min(columns, results.length() - column)});
    }
  });
}

/// Whether every operand has the results' dimensions or is a single value; an index goes by the rows that there are.
bool is_flat(const Region& region) {
  if (std::ranges::any_of(region.nodes, [](const RegionNode& node) { return node.problem.op->kind == OpKind::gather; }))
    return false;
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i) && region.operand_type(i).dims != region.result_type(0).dims &&
        region.operand_type(i).elements() != Dim(1))
      return false;
  return true;
}

Decline declines(const Region& region) {
  const TileProgramOrReason made = pointwise_program(region);
  if (made.reason) return made.reason;
  if (region.operands.size() > most_operands)
    return fmt::format("reads {} tensors, at most {} in one pass", region.operands.size(), most_operands);
  const Dims& result = region.result_type(0).dims;
  if (result.empty()) return "the results are single values";
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i) && goes_by_token(region, i) &&
        region.operand_type(i).dims != Dims(result.begin(), result.end() - 1))
      return "scales go with tokens, and the results have other rows";
  return BoundTileProgram::declines(made.program);
}

Launcher tile_launcher(const Region& region) {
  return [program = BoundTileProgram(pointwise_program(region).program), flat = is_flat(region),
          axes = RegionViews(region).operands](const LaunchArgs& args) { run_program(program, args, flat, axes); };
}

}  // namespace

Launcher by_tile_program(const Region& region) { return declines(region) ? Launcher() : tile_launcher(region); }

Kernel with_regions(Kernel kernel) {
  kernel.fuses = true;
  kernel.declines = [](const Region& region) -> Decline {
    return region.is_single() ? std::nullopt : declines(region);
  };
  kernel.bind = [single = kernel.bind](const Region& region) -> Launcher {
    return region.is_single() ? single(region) : tile_launcher(region);
  };
  return kernel;
}

}  // namespace cermet::cpu

#include "kernel/cpu/conv/store.hpp"

#include "kernel/cpu/gemm/panels.hpp"

namespace cermet::cpu {

ConvStore::ConvStore(const Region& region) {
  const TileProgramOrReason made = product_epilogue(region);
  CERMET_ASSERT(!made.reason);
  program = BoundTileProgram(made.program);
  sum = SumProgram::of(made.program);
  result = made.program.results.front().result;
}

Decline ConvStore::declines(const Region& region) {
  if (region.anchor != 0) return fmt::format("{} comes before the convolution", region.nodes[0].problem.op->name);
  return declines_after(region);
}

Decline ConvStore::declines_after(const Region& region) {
  const TileProgramOrReason made = product_epilogue(region);
  if (made.reason) return made.reason;
  if (made.program.results.size() != region.results.size()) return "a result does not come from the convolution";
  return BoundTileProgram::declines(made.program);
}

ConvStoreRun::ConvStoreRun(const ConvStore& store, const LaunchArgs& args) : store_(store), run_(store.program, args) {
  if (!store.sum) return;
  const TensorView& y = args.outputs[store.result];
  const auto view_of = [&](std::optional<std::size_t> operand) {
    return operand ? args.inputs[*operand] : TensorView();
  };
  const TensorView bias = view_of(store.sum->bias), residual = view_of(store.sum->residual);
  if (!y.is_dense() || (bias.present && !bias.is_dense()) || (residual.present && !residual.is_dense())) return;
  takes_sums_ = true;
  whole_ = {.y = y.as<float>(),
            .y_step = y.shape.back(),
            .bias = bias.as<const float>(),
            .residual = residual.as<const float>(),
            .residual_step = y.shape.back(),
            .low = store.sum->low,
            .high = store.sum->high};
}

TapStore ConvStoreRun::store_at(std::int64_t row, std::int64_t column) const {
  TapStore to = whole_;
  to.y += row * to.y_step + column;
  if (to.bias) to.bias += column;
  if (to.residual) to.residual += row * to.residual_step + column;
  return to;
}

void ConvStoreRun::apply(const TapStore& at, std::int64_t rows, std::int64_t columns) const {
  const auto step = static_cast<std::size_t>(at.y_step);
  const TileOperand operand{at.y, step, 1};
  store_.sum->function(&operand, {at.y, step, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)},
                       store_.sum->parameters.data());
}

void ConvStoreRun::operator()(const float* tile, std::int64_t first_column, const TileRange& range) const {
  const TileOperand input{tile + (range.column - first_column), static_cast<std::size_t>(panel_columns), 1};
  run_(&input, range);
}

}  // namespace cermet::cpu

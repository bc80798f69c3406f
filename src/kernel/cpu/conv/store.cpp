#include "kernel/cpu/conv/store.hpp"

#include <limits>

#include "kernel/cpu/gemm/panels.hpp"

namespace cermet::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

using Source = TileProgram::Source;

bool is_operand(const TileProgram& program, const Source& source, TileProgram::Extent extent) {
  if (source.from != Source::From::extra) return false;
  const TileProgram::Extra& extra = program.extras[static_cast<std::size_t>(source.index)];
  return extra.dtype == DType::f32 && extra.extent == extent;
}

}  // namespace

std::optional<SumProgram> SumProgram::of(const TileProgram& program) {
  if (program.inputs != std::vector<DType>{DType::f32} || program.results.size() != 1 || program.results[0].dtype != DType::f32) return std::nullopt;
  SumProgram sum{.bias = {}, .residual = {}, .low = -infinity, .high = infinity};
  bool ended = false;
  Source value{Source::From::input, 0, 0};
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const TileProgram::Step& step = program.steps[s];
    if (ended || step.integer || step.round != DType::f32 || step.fused_multiply) return std::nullopt;
    if (step.function == OpKind::add) {
      const Source other = step.a == value ? step.b : step.a;
      if (!(step.a == value || step.b == value) || other.from != Source::From::extra) return std::nullopt;
      const std::size_t operand = program.extras[static_cast<std::size_t>(other.index)].operand;
      if (is_operand(program, other, TileProgram::Extent::column) && !sum.bias && !sum.residual) sum.bias = operand;
      else if (is_operand(program, other, TileProgram::Extent::element) && !sum.residual) sum.residual = operand;
      else return std::nullopt;
    } else if (TileProgram::is_binary(step) || step.a != value) {
      return std::nullopt;
    } else if (step.function == OpKind::relu || step.function == OpKind::clip) {
      sum.low = step.function == OpKind::relu ? 0.0f : step.parameters[0];
      if (step.function == OpKind::clip) sum.high = step.parameters[1];
      ended = true;
    } else {
      sum.function = pointwise_functions(step.function).real;
      sum.parameters = step.parameters;
      if (!sum.function) return std::nullopt;
      ended = true;
    }
    value = {Source::From::step, static_cast<std::int32_t>(s), 0};
  }
  if (program.results[0].value != value) return std::nullopt;
  return sum;
}

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
  const auto view_of = [&](std::optional<std::size_t> operand) { return operand ? args.inputs[*operand] : TensorView(); };
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
  store_.sum->function(&operand, {at.y, step, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)}, store_.sum->parameters.data());
}

void ConvStoreRun::operator()(const float* tile, std::int64_t first_column, const TilePlace& place) const {
  const TileOperand input{tile + (place.column - first_column), static_cast<std::size_t>(panel_columns), 1};
  run_(&input, place);
}

}  // namespace cermet::cpu

#include "quant/search_unit.hpp"

#include <algorithm>

namespace cermet {

SplitDistance& SplitDistance::operator+=(const SplitDistance& other) {
  calibration.error += other.calibration.error;
  calibration.reference += other.calibration.reference;
  heldout.error += other.heldout.error;
  heldout.reference += other.heldout.reference;
  return *this;
}

SampledRows::SampledRows(const RowSample& learned, const RowSample& judged, std::int64_t columns)
    : x(DType::f32, {learned.size() + judged.size(), columns}), calibration(learned.size()), heldout(judged.size()) {
  learned.copy_to(x.view.as<float>());
  judged.copy_to(x.view.as<float>() + learned.size() * columns);
}

SearchUnit::SearchUnit(std::vector<const LinearModule*> modules, const Checkpoint& checkpoint, const SampledRows& rows,
                       std::span<const double> importance, ThreadPool& pool)
    : modules_(std::move(modules)), rows_(&rows), importance_(importance), pool_(&pool) {
  for (const LinearModule* module : modules_) {
    weights_.push_back(read_tensor(checkpoint, module->name + ".weight", pool));
    expected_.emplace_back(DType::f32, Shape{rows.count(), module->rows});
    if (rows.count() > 0) RealProduct(weights_.back().view, rows.count(), pool).run(rows.x.view, expected_.back().view);
  }
}

std::vector<float> SearchUnit::importance(const Smoothing& smoothing) const {
  std::vector<float> result(importance_.size());
  for (std::size_t k = 0; k < result.size(); ++k) {
    const double factor = smoothing.factors.empty() ? 1 : static_cast<double>(smoothing.factors[k]);
    result[k] = static_cast<float>(importance_[k] / (factor * factor));
  }
  return result;
}

SplitDistance SearchUnit::distance(std::size_t i, const TensorView& found, std::int64_t first) const {
  const TensorView all = expected_[i].view;
  const std::int64_t columns = all.shape[1], learned = std::max<std::int64_t>(rows_->calibration - first, 0);
  const TensorView expected(all.as<float>() + first * columns, DType::f32, found.shape);
  return {distance_of_rows(expected, found, 0, learned, *pool_),
          distance_of_rows(expected, found, learned, found.shape[0], *pool_)};
}

UnitTrial::UnitTrial(const SearchUnit& unit, const Smoothing& smoothing, const QuantizationGrid& grid, TrialRows rows)
    : unit_(unit),
      grid_(grid),
      first_(rows == TrialRows::judging && unit.rows().heldout > 0 ? unit.rows().calibration : 0) {
  const TensorView& x = unit.rows().x.view;
  const std::int64_t count = x.shape[0] - first_, columns = x.shape[1];
  x_ = OwnedTensor(DType::f32, {count, columns});
  const std::vector<float> inverse = reciprocals(smoothing.factors);
  for (std::int64_t r = 0; r < count; ++r)
    widen_row(x, first_ + r, {inverse, {}}, {x_.view.as<float>() + r * columns, static_cast<std::size_t>(columns)});
  const std::vector<float> importance = unit.importance(smoothing);
  for (std::size_t i = 0; i < unit.modules().size(); ++i)
    weights_.push_back(
        quantize_weight(unit.weight(i), {smoothing.factors, {}}, grid, unit.weight(i).dtype, importance, unit.pool()));
  for (std::size_t i = 0; i < weights_.size() && count > 0; ++i)
    products_.push_back(std::make_unique<QuantizedProduct>(weights_[i], count, unit.pool(), unit.scratch(), i));
}

std::vector<SplitDistance> UnitTrial::with_real_input() {
  std::vector<SplitDistance> distances(weights_.size());
  for (std::size_t i = 0; i < products_.size(); ++i)
    distances[i] = unit_.distance(i, products_[i]->run_real(x_.view), first_);
  return distances;
}

std::vector<SplitDistance> UnitTrial::with_dynamic_input() {
  if (products_.empty()) return std::vector<SplitDistance>(weights_.size());
  return with_scales(dynamic_scales(x_.view, grid_, unit_.pool()));
}

std::vector<SplitDistance> UnitTrial::with_fixed_input(float scale) { return with_scales({&scale, 1}); }

std::vector<SplitDistance> UnitTrial::with_scales(std::span<const float> scales) {
  std::vector<SplitDistance> distances(weights_.size());
  for (std::size_t i = 0; i < products_.size(); ++i)
    distances[i] = unit_.distance(i, products_[i]->run_quantized(x_.view, grid_, scales), first_);
  return distances;
}

}  // namespace cermet

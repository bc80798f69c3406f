// Linear modules that read the same values, with rows of those values to measure errors on.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/linear_modules.hpp"
#include "quant/row_sample.hpp"
#include "quant/sample_product.hpp"
#include "quant/smoothing.hpp"

namespace cermet {

/// Distances on calibration rows and on held-out rows.
struct SplitDistance {
  row_loops::Distance calibration, heldout;
  SplitDistance& operator+=(const SplitDistance& other);
};

/// Sampled rows of an input: calibration rows, then held-out ones.
struct SampledRows {
  OwnedTensor x;  ///< f32 [calibration + heldout, K]
  std::int64_t calibration = 0, heldout = 0;

  SampledRows() = default;
  SampledRows(const RowSample& learned, const RowSample& judged, std::int64_t columns);
  std::int64_t count() const { return calibration + heldout; }
};

/// Siblings of one input, and what they compute from the sampled rows with their stored weights.
class SearchUnit {
 public:
  /// `importance` [K], the mean square of each channel, guides the search for clips; empty: scales come from the
  /// largest values. Everything must outlive the unit.
  SearchUnit(std::vector<const LinearModule*> modules, const Checkpoint& checkpoint, const SampledRows& rows,
             std::span<const double> importance, ThreadPool& pool);

  std::span<const LinearModule* const> modules() const { return modules_; }
  const TensorView& weight(std::size_t i) const { return weights_[i].view; }
  const SampledRows& rows() const { return *rows_; }
  /// Importance of channels after smoothing.
  std::vector<float> importance(const Smoothing& smoothing) const;
  ThreadPool& pool() const { return *pool_; }
  /// Distances of what a module computes from rows [first, rows) of the samples, from what it should.
  SplitDistance distance(std::size_t i, const TensorView& found, std::int64_t first) const;
  /// Memory of results and of unpacked weights, which every trial reuses.
  ProductScratch& scratch() const { return *scratch_; }

 private:
  std::vector<const LinearModule*> modules_;
  std::vector<OwnedTensor> weights_, expected_;
  const SampledRows* rows_;
  std::span<const double> importance_;
  ThreadPool* pool_;
  std::unique_ptr<ProductScratch> scratch_ = std::make_unique<ProductScratch>();
};

/// Rows that a trial computes with.
enum class TrialRows : std::uint8_t {
  all,
  judging,  ///< held-out ones alone, where there are any
};

/// A unit with one smoothing and weights on one quantization grid.
class UnitTrial {
 public:
  UnitTrial(const SearchUnit& unit, const Smoothing& smoothing, const QuantizationGrid& grid,
            TrialRows rows = TrialRows::all);

  const QuantizedWeight& weight(std::size_t i) const { return weights_[i]; }
  /// The smoothed rows.
  const TensorView& x() const { return x_.view; }
  // Distances of each module with an input that is unquantized, per-row quantized or per-tensor quantized.
  std::vector<SplitDistance> with_real_input();
  std::vector<SplitDistance> with_dynamic_input();
  std::vector<SplitDistance> with_fixed_input(float scale);

 private:
  std::vector<SplitDistance> with_scales(std::span<const float> scales);

  const SearchUnit& unit_;
  QuantizationGrid grid_;
  OwnedTensor x_;
  std::vector<QuantizedWeight> weights_;
  std::vector<std::unique_ptr<QuantizedProduct>> products_;
  std::int64_t first_ = 0;  ///< of the unit's rows
};

}  // namespace cermet

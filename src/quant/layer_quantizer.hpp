// One layer: from what the calibration saw to a file of final tensors and the figures about them.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "quant/layer_calibration.hpp"
#include "quant/layer_writer.hpp"
#include "quant/outlier_search.hpp"

namespace cermet {

class LayerQuantizer {
 public:
  /// `modules` are those of the layer, routers among them. Everything must outlive the quantizer.
  LayerQuantizer(const QuantizeOptions& options, const Checkpoint& checkpoint, std::int64_t layer,
                 std::span<const LinearModule> modules, const LayerCalibration& calibration, ThreadPool& pool);

  /// Quantizes and writes the layer's file. The result lacks output_error.
  LayerResult write(const std::filesystem::path& file);

 private:
  /// What produces an input, and so where its smoothing is folded in.
  struct Fold {
    const Norm* norm = nullptr;             ///< null where rows of a module make the input
    std::string producer = {};              ///< module whose rows do
    std::vector<std::int64_t> source = {};  ///< row of the producer for each column; empty: the column itself
    std::vector<std::string> readers = {};  ///< unquantized weights that read the input too
  };
  /// Siblings of one input, with the rows and statistics that they are measured on.
  struct Siblings {
    std::vector<const LinearModule*> modules;
    SampledRows rows;
    std::vector<double> importance;  ///< empty for the fallback
    std::int64_t tokens = 0;
    bool fallback = false;
  };
  struct Factors {
    std::vector<float> columns, rows;
    double offset = 0;  ///< of a normalization: Norm::weight_offset
  };

  std::vector<const LinearModule*> modules_of(LinearModule::Role role, std::int64_t expert = -1) const;
  Siblings siblings_of(LinearModule::Role role, std::int64_t expert, const InputObservation& rows,
                       const InputStatistics& statistics) const;
  void quantize_experts(const Mixture& mixture, const Norm& norm);
  void quantize_group(std::vector<Siblings> group, const InputStatistics& statistics, const Fold& place);
  std::vector<Smoothing> smoothings(const std::vector<Siblings>& group, const SearchUnit* loaded,
                                    const InputStatistics& statistics, const Fold& place,
                                    const LinearScheme& scheme) const;
  void fold(const Smoothing& smoothing, const Fold& place);
  void finish(const Siblings& siblings, const SearchUnit* unit, const LinearScheme& scheme, const OutlierChoice& choice,
              const InputStatistics& statistics);
  void measure(const SearchUnit& unit, const LinearScheme& scheme, const OutlierChoice& choice,
               const InputStatistics& statistics, std::vector<ModuleResult>& results);
  void write_weight(const SearchUnit& unit, std::size_t i, const QuantizedWeight& weight, const OutlierChoice& choice,
                    const QuantizationGrid& grid, ModuleResult& result);
  std::vector<SplitDistance> best_fixed(UnitTrial& trial, const SearchUnit& unit, const OutlierChoice& choice,
                                        const InputStatistics& statistics, const QuantizationGrid& grid) const;
  void write_rest();
  void check_cancelled() const;

  const QuantizeOptions& options_;
  const Checkpoint& checkpoint_;
  std::int64_t layer_;
  std::span<const LinearModule> modules_;
  const LayerCalibration& calibration_;
  ThreadPool& pool_;
  LayerWriter* writer_ = nullptr;
  std::map<std::string, Factors> factors_;  ///< by tensor: what it is multiplied with
  std::map<std::string, ModuleResult> results_;
};

/// Exponents that smoothing is tried with.
inline constexpr std::array smoothing_exponents{0.35, 0.5, 0.65, 0.8};

}  // namespace cermet

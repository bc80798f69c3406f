#include "quant/layer_quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cermet {
namespace {

using Role = LinearModule::Role;
using Input = LinearScheme::Input;
using Weight = LinearScheme::Weight;

double relative(const row_loops::Distance& distance) {
  return distance.reference > 0 ? distance.error / distance.reference : 0;
}

/// The error on held-out rows, or where none reach the modules, on calibration rows.
double error_of(const SplitDistance& distance) {
  return relative(distance.heldout.reference > 0 ? distance.heldout : distance.calibration);
}

std::span<const std::byte> bytes_of(const OwnedTensor& tensor) {
  return {tensor.memory.data(), static_cast<std::size_t>(tensor.memory.size())};
}

std::vector<float> channel_absmax(const InputStatistics& statistics) {
  std::vector<float> absmax(static_cast<std::size_t>(statistics.columns()));
  for (std::size_t k = 0; k < absmax.size(); ++k) absmax[k] = statistics.absmax(static_cast<std::int64_t>(k));
  return absmax;
}

std::vector<double> mean_squares(const InputStatistics& statistics) {
  std::vector<double> squares(static_cast<std::size_t>(statistics.columns()));
  for (std::size_t k = 0; k < squares.size(); ++k) squares[k] = statistics.mean_square(static_cast<std::int64_t>(k));
  return squares;
}

}  // namespace

LayerQuantizer::LayerQuantizer(const QuantizeOptions& options, const Checkpoint& checkpoint, std::int64_t layer,
                               std::span<const LinearModule> modules, const LayerCalibration& calibration,
                               ThreadPool& pool)
    : options_(options),
      checkpoint_(checkpoint),
      layer_(layer),
      modules_(modules),
      calibration_(calibration),
      pool_(pool) {}

void LayerQuantizer::check_cancelled() const {
  if (options_.cancelled && *options_.cancelled) fail(Status::cancelled, "quantize: stopped");
}

LayerResult LayerQuantizer::write(const std::filesystem::path& file) {
  LayerWriter writer(file, checkpoint_, layer_, modules_, options_.policy);
  writer_ = &writer;
  const auto quantize = [&](Role role, const Fold& fold) {
    const InputObservation& input = calibration_.input(role);
    std::vector<Siblings> group;
    group.push_back(siblings_of(role, -1, input, input.statistics));
    quantize_group(std::move(group), input.statistics, fold);
  };
  // A module that reads a result comes before the one that produces it, because smoothing changes the rows of the
  // latter.
  for (const Block& block : checkpoint_.config().decoder.layers[static_cast<std::size_t>(layer_)]) {
    if (const auto* attention = std::get_if<Attention>(&block.body)) {
      Fold values{.producer = attention->v.name};
      const std::int64_t heads_per_value = attention->heads / attention->kv_heads, size = attention->head_dim;
      for (std::int64_t c = 0; c < attention->o.columns; ++c)
        values.source.push_back(c / size / heads_per_value * size + c % size);
      quantize(Role::o, values);
      quantize(Role::qkv, {.norm = &block.norm});
    } else if (const auto* part = std::get_if<FeedForward>(&block.body)) {
      quantize(Role::down, {.producer = part->up.name});
      quantize(Role::gate_up, {.norm = &block.norm});
    } else if (const auto* mixture = std::get_if<Mixture>(&block.body)) {
      quantize_experts(*mixture, block.norm);
    }
  }
  write_rest();
  writer.commit();

  LayerResult result;
  result.layer = layer_;
  result.expert_tokens = calibration_.expert_tokens();
  for (const LinearModule& module : modules_)
    if (module.role != Role::router) result.modules.push_back(results_.at(module.name));
  return result;
}

void LayerQuantizer::quantize_experts(const Mixture& mixture, const Norm& norm) {
  const InputStatistics& shared = calibration_.input(Role::gate_up).statistics;
  std::vector<Siblings> gates;
  for (std::int64_t e = 0; e < mixture.experts(); ++e) {
    const InputObservation& down = calibration_.expert_down(e);
    std::vector<Siblings> group;
    group.push_back(siblings_of(Role::down, e, down, down.statistics));
    quantize_group(std::move(group), down.statistics, {.producer = mixture.expert(e).up.name});
    gates.push_back(siblings_of(Role::gate_up, e, calibration_.expert_input(e), shared));
  }
  quantize_group(std::move(gates), shared, {.norm = &norm, .readers = {mixture.router.name + ".weight"}});
}

std::vector<const LinearModule*> LayerQuantizer::modules_of(Role role, std::int64_t expert) const {
  std::vector<const LinearModule*> found;
  for (const LinearModule& module : modules_)
    if (module.role == role && module.expert == expert) found.push_back(&module);
  return found;
}

LayerQuantizer::Siblings LayerQuantizer::siblings_of(Role role, std::int64_t expert, const InputObservation& rows,
                                                     const InputStatistics& statistics) const {
  Siblings siblings{modules_of(role, expert),
                    SampledRows(rows.learned, rows.judged, statistics.columns()),
                    {},
                    statistics.rows(),
                    false};
  if (expert >= 0) {
    siblings.tokens = calibration_.expert_tokens()[static_cast<std::size_t>(expert)];
    siblings.fallback = siblings.tokens < options_.min_expert_tokens;
  }
  if (!siblings.fallback) siblings.importance = mean_squares(statistics);
  return siblings;
}

/// Decides for a group, whose units share one smoothing, and writes its modules. A group of one unit loads its weights
/// once; experts, of which there may be many, one after the other for the search and again for the result.
void LayerQuantizer::quantize_group(std::vector<Siblings> group, const InputStatistics& statistics, const Fold& place) {
  const LinearScheme scheme = options_.policy.scheme_of(group.front().modules.front()->name);
  const bool measured = scheme.weight != Weight::real || options_.every_scheme;
  std::unique_ptr<SearchUnit> unit;
  const auto load = [&](const Siblings& siblings) {
    check_cancelled();
    unit.reset();  // before the next takes its place
    unit = std::make_unique<SearchUnit>(siblings.modules, checkpoint_, siblings.rows, siblings.importance, pool_);
  };
  OutlierChoice choice;
  if (group.size() == 1 && measured) load(group.front());
  const std::vector<Smoothing> tried = smoothings(group, unit.get(), statistics, place, scheme);
  if (scheme.input == Input::fixed || tried.size() > 1) {
    OutlierSearch search(options_, scheme, statistics, tried);
    for (const Siblings& siblings : group) {
      if (siblings.fallback) continue;
      if (group.size() > 1) load(siblings);
      search.add(*unit);
    }
    choice = search.choose();
    fold(choice.smoothing, place);
  }
  for (const Siblings& siblings : group) {
    if (measured && group.size() > 1) load(siblings);
    finish(siblings, unit.get(), scheme, choice, statistics);
  }
}

/// The smoothings that are worth trying, none first; only that one where inputs stay unquantized, or where the options
/// rule smoothing out.
std::vector<Smoothing> LayerQuantizer::smoothings(const std::vector<Siblings>& group, const SearchUnit* loaded,
                                                  const InputStatistics& statistics, const Fold& place,
                                                  const LinearScheme& scheme) const {
  std::vector<Smoothing> list(1);
  const bool wanted = options_.anti_outlier == AntiOutlier::smooth || options_.anti_outlier == AntiOutlier::both ||
                      options_.anti_outlier == AntiOutlier::automatic;
  const bool known = std::ranges::any_of(group, [](const Siblings& siblings) { return !siblings.fallback; });
  if (!wanted || scheme.input == Input::real || !known) return list;
  std::vector<float> inputs = channel_absmax(statistics), weights(inputs.size());
  const auto take = [&](const TensorView& weight) {
    const std::vector<float> absmax = column_absmax(weight, pool_);
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = std::max(weights[k], absmax[k]);
  };
  for (const Siblings& siblings : group) {
    for (std::size_t i = 0; i < siblings.modules.size(); ++i) {
      if (loaded) take(loaded->weight(i));
      else take(read_tensor(checkpoint_, siblings.modules[i]->name + ".weight", pool_).view);
    }
  }
  if (!place.source.empty()) {
    const std::int64_t sources = *std::ranges::max_element(place.source) + 1;
    inputs = absmax_by_source(inputs, place.source, sources);
    weights = absmax_by_source(weights, place.source, sources);
  }
  OwnedTensor norm;
  if (place.norm) norm = read_tensor(checkpoint_, place.norm->name + ".weight", pool_);
  for (const double alpha : smoothing_exponents) {
    std::vector<float> factors = smoothing_factors(inputs, weights, alpha);
    // Weights that stay in 16 bits are multiplied by powers of two, so that they are not rounded; else factors are
    // those that the norm's rounding leaves.
    if (!place.norm || !place.readers.empty()) round_to_powers_of_two(factors);
    if (place.norm) factors = as_folded(factors, norm.view, place.norm->weight_offset, pool_);
    if (!place.source.empty()) factors = spread(factors, place.source);
    list.push_back({alpha, std::move(factors)});
  }
  return list;
}

void LayerQuantizer::fold(const Smoothing& smoothing, const Fold& place) {
  if (smoothing.factors.empty()) return;
  std::vector<float> factors = smoothing.factors;
  for (const std::string& reader : place.readers) factors_[reader].columns = factors;
  if (place.norm) {
    factors_[place.norm->name + ".weight"] = {reciprocals(factors), {}, place.norm->weight_offset};
    return;
  }
  if (!place.source.empty()) {
    std::vector<float> by_row(static_cast<std::size_t>(*std::ranges::max_element(place.source) + 1));
    for (std::size_t c = 0; c < factors.size(); ++c) by_row[static_cast<std::size_t>(place.source[c])] = factors[c];
    factors = std::move(by_row);
  }
  factors_[place.producer + ".weight"].rows = reciprocals(factors);
  factors_[place.producer + ".bias"].columns = reciprocals(factors);
}

/// Notes what was decided; writes and measures where there is a unit to do it with.
void LayerQuantizer::finish(const Siblings& siblings, const SearchUnit* unit, const LinearScheme& scheme,
                            const OutlierChoice& choice, const InputStatistics& statistics) {
  const QuantizationGrid grid = QuantizationGrid::of(scheme, options_.range);
  std::vector<ModuleResult> results(siblings.modules.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    ModuleResult& result = results[i];
    result.name = siblings.modules[i]->name;
    result.scheme = scheme;
    result.anti_outlier = name_of(choice.method);
    result.alpha = choice.smoothing.alpha;
    result.absmax_before = statistics.absmax();
    result.absmax_after = smoothed_absmax(statistics, choice.smoothing);
    result.percentile = statistics.percentile(options_.clamp_percentile);
    result.tokens = siblings.tokens;
    result.fallback = siblings.fallback;
    if (scheme.input == Input::fixed) {
      const double reach = static_cast<double>(choice.input_scale) * static_cast<double>(grid.high);
      result.input_scale = static_cast<double>(choice.input_scale);
      result.absmax_after = std::min(result.absmax_after, reach);
      if (choice.method == AntiOutlier::clamp || choice.method == AntiOutlier::both) result.threshold = reach;
    }
  }
  if (unit) measure(*unit, scheme, choice, statistics, results);
  for (ModuleResult& result : results) results_[result.name] = std::move(result);
}

/// Quantizes and writes a unit's modules, and measures the errors of their scheme and, where asked for, of all others.
void LayerQuantizer::measure(const SearchUnit& unit, const LinearScheme& scheme, const OutlierChoice& choice,
                             const InputStatistics& statistics, std::vector<ModuleResult>& results) {
  const auto note = [&](const LinearScheme& measured, const std::vector<SplitDistance>& distances) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (measured == scheme) results[i].error = error_of(distances[i]);
      if (distances[i].heldout.reference > 0)
        results[i].errors[std::string(name_of(measured))] = error_of(distances[i]);
    }
  };
  const bool may_be_fixed = unit.modules().front()->expert < 0;
  for (const Weight weight : {Weight::int8, Weight::fp8}) {
    const bool chosen = scheme.weight == weight;
    if (!chosen && !options_.every_scheme) continue;
    const QuantizationGrid grid = QuantizationGrid::of({weight, Input::real}, options_.range);
    UnitTrial trial(unit, choice.smoothing, grid, TrialRows::judging);
    if (chosen)
      for (std::size_t i = 0; i < results.size(); ++i) write_weight(unit, i, trial.weight(i), choice, grid, results[i]);
    const bool all = options_.every_scheme;
    if (all || (chosen && scheme.input == Input::dynamic)) note({weight, Input::dynamic}, trial.with_dynamic_input());
    if (chosen && scheme.input == Input::fixed)
      note({weight, Input::fixed}, trial.with_fixed_input(choice.input_scale));
    else if (all && may_be_fixed) note({weight, Input::fixed}, best_fixed(trial, unit, choice, statistics, grid));
    if (!all && !(chosen && scheme.input == Input::real)) continue;
    if (choice.smoothing.factors.empty()) note({weight, Input::real}, trial.with_real_input());
    else
      note({weight, Input::real}, UnitTrial(unit, {}, grid, TrialRows::judging)
                                      .with_real_input());  // what such a module would be: nothing to smooth
  }
}

void LayerQuantizer::write_weight(const SearchUnit& unit, std::size_t i, const QuantizedWeight& weight,
                                  const OutlierChoice& choice, const QuantizationGrid& grid, ModuleResult& result) {
  const std::string module = unit.modules()[i]->name, tensor = module + ".weight";
  result.clip_ratio = weight.clip_ratio;
  const auto put = [&](const QuantizedWeight& final) {
    writer_->put(tensor, bytes_of(final.quantized), pool_);
    writer_->put_scales(tensor + "_scale", final.scales, pool_);
  };
  const std::vector<float>& rows = factors_[tensor].rows;
  if (rows.empty()) put(weight);
  else
    put(quantize_weight(unit.weight(i), {choice.smoothing.factors, rows}, grid, unit.weight(i).dtype,
                        unit.importance(choice.smoothing), pool_));
  if (result.scheme.input == Input::fixed)
    writer_->put_scales(module + ".input_scale", {&choice.input_scale, 1}, pool_);
}

/// The error with a static scale that was not requested: the best of the largest value, the percentile, and the middle
/// between them.
std::vector<SplitDistance> LayerQuantizer::best_fixed(UnitTrial& trial, const SearchUnit& unit,
                                                      const OutlierChoice& choice, const InputStatistics& statistics,
                                                      const QuantizationGrid& grid) const {
  const double absmax = smoothed_absmax(statistics, choice.smoothing);
  InputStatistics smoothed(trial.x().shape[1]);
  smoothed.add(trial.x().as<float>(), trial.x().shape[0], &pool_);
  const double percentile = smoothed.percentile(options_.clamp_percentile);
  std::vector<SplitDistance> best;
  double least = 0;
  for (const double threshold : {absmax, std::sqrt(absmax * percentile), percentile}) {
    if (!(threshold > 0)) continue;
    std::vector<SplitDistance> distances =
        trial.with_fixed_input(stored_scale(threshold / static_cast<double>(grid.range), unit.weight(0).dtype));
    const double error = std::accumulate(distances.begin(), distances.end(), 0.0,
                                         [](double sum, const SplitDistance& d) { return sum + error_of(d); });
    if (best.empty() || error < least) {
      best = std::move(distances);
      least = error;
    }
  }
  if (best.empty()) best.resize(unit.modules().size());
  return best;
}

/// Tensors that stay unquantized: unchanged, or times their smoothing factors.
void LayerQuantizer::write_rest() {
  for (const std::string& tensor : writer_->unwritten()) {
    const OwnedTensor stored = read_tensor(checkpoint_, tensor, pool_);
    const auto factors = factors_.find(tensor);
    if (factors == factors_.end()) writer_->put(tensor, bytes_of(stored), pool_);
    else if (const double offset = factors->second.offset; offset != 0)
      writer_->put(tensor, bytes_of(scaled_norm(stored.view, offset, factors->second.columns, pool_)), pool_);
    else
      writer_->put(tensor, bytes_of(scaled_tensor(stored.view, {factors->second.columns, factors->second.rows}, pool_)),
                   pool_);
  }
}

}  // namespace cermet

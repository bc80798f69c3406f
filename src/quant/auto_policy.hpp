// A policy that is chosen from measurements instead of written by hand: for every group of modules the scheme that
// costs least time within a budget of error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quant/layer_result.hpp"
#include "quant/policy.hpp"

namespace cermet {

/// A scheme that a group could have.
struct SchemeOption {
  LinearScheme scheme;
  double error = 0;  ///< sum of the relative output errors of the group's modules, an expert counting for the share of
                     ///< tokens that it gets
  double seconds = 0;  ///< predicted, per token (see predicted_seconds)
};

/// Modules that share a scheme, and what each scheme would cost: a row of the sensitivity table.
struct SchemeGroup {
  std::string name;  ///< LinearModule::group
  std::vector<std::string> modules;
  std::vector<SchemeOption> options;  ///< quickest first, each with less error than those before it
  std::size_t chosen = 0;             ///< in options
};

/// What a module takes for a token of a workload that decodes one token for every eight that it prefills, in seconds of
/// a nominal machine: decoding reads the weight at 20 GB/s; prefill GEMMs run at 0.2 T multiply-adds per second in 16
/// bit and twice that with int8 inputs; dynamic per-token quantization costs a pass over the input at 20 GB/s. Only
/// proportions matter to the choice. `active`: the share of tokens that are routed to the module (of an expert
/// experts_per_token / experts).
double predicted_seconds(const LinearModule& module, const LinearScheme& scheme, double active);

/// The sensitivity table, from the errors that calibration measured for every scheme: w8a8_static (not for experts),
/// w8a8_dynamic, w8a16 and 16bit. Routers and the head are left out. Throws Error(invalid_argument) naming a module
/// without measured errors.
std::vector<SchemeGroup> sensitivity_table(const ModelConfig& config, std::span<const LayerResult> layers);

double total_error(std::span<const SchemeGroup> table);
double total_seconds(std::span<const SchemeGroup> table);

/// Chooses for every group: all begin with the quickest scheme, and the step that lowers error most for the time it
/// adds is taken until the sum of errors is within `budget`.
void choose_schemes(std::vector<SchemeGroup>& table, double budget);

/// The choice as rules, one or a few for each group.
Policy policy_of(std::span<const SchemeGroup> table);

}  // namespace cermet

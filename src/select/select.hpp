// WHICH: the choice among an operator's kernels and their configurations: the cheapest by modelled cost, and the first
// where models cannot tell.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/forced.hpp"
#include "kernel/kernel.hpp"
#include "select/tuning.hpp"

namespace cermet {

/// A kernel and how it runs.
struct Choice {
  const Kernel* kernel = nullptr;
  Config config;

  Choice() = default;
  Choice(const Kernel& chosen, Config way = {})
      : kernel(&chosen), config(std::move(way)) {}  // NOLINT(google-explicit-constructor): in its own way
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// A configuration with its modelled seconds; 0 where the kernel has no model.
struct ConfigCost {
  Config config;
  double seconds = 0;
};

struct Candidate {
  const Kernel* kernel;
  Decline decline;                  ///< why it declined; nothing for the chosen one and others that would also fit
  std::vector<ConfigCost> configs;  ///< of one that fits: its own choice first
};

/// What a choice may depend on beside the region.
struct SelectionOptions {
  int threads =
      0;  ///< of the pool that CPU kernels run in; 0: not known, so that none of a CPU's measured choices applies
  bool tuned = true;               ///< whether measured choices come before models
  const Tuning* tuning = nullptr;  ///< where measured choices are; null: the process's
};

/// A measured choice that was not taken: its kernel is gone or declines, or has no such configuration here.
struct IgnoredTuning {
  FoundTuning found;
  std::string reason;
};

struct Selection {
  Choice choice;  ///< without a kernel when every candidate declines
  std::vector<Candidate> candidates;
  std::optional<FoundTuning> tuned;    ///< the measured choice, where `choice` is one
  std::vector<IgnoredTuning> ignored;  ///< the others that were found
};

/// Throws Error for a kernel that does not exist, beside those that do.
void require_known_kernels(const ForcedConfigs& configs);
/// The same of the names in CERMET_DISABLE_KERNELS.
void require_known_disabled();

/// Asks every kernel of the anchor's operator for the region's target (the CPU where it has none), in order, those from
/// outside last: they have no model, so they are chosen where all others decline, or by name. Kernels named in
/// CERMET_DISABLE_KERNELS decline. A kernel that forced_configs() names is chosen wherever it takes the region, with
/// the first by cost of its configurations that have those fields; throws Error where it has none. Then a measured
/// choice is taken, if its kernel takes the region in that configuration.
Selection explain_selection(const Region& region, const SelectionOptions& options = {});
/// The same where some kernel takes the region; throws Error(unsupported) with every reason when none does.
Selection select_taken(const Region& region, const SelectionOptions& options = {});
/// Its kernel and configuration.
Choice select_kernel(const Region& region, const SelectionOptions& options = {});
/// Every kernel's reason, "; " between them; empty where one takes the region.
std::string declines_of(const Region& region);
/// Whether some kernel takes the region and, where it names a cut, no launches for its parts are modelled to be faster;
/// a kernel that CERMET_CONFIG names takes what it does not decline.
bool is_taken(const Region& region);
/// Whether some kernel takes regions of several nodes whose anchor is this operator.
bool fuses(OpKind anchor, const Target* target);

/// The kernel of this name, or where `name` is empty the chosen one, with the first by cost of its configurations that
/// have the fields of this text, or where that is empty the one that selection would give it. Throws Error that says
/// which there are, or why the kernel declines. `given_as`, before "kernel" and "config", names in messages where they
/// were given.
Choice choose_by_name(const Region& region, std::string_view name, std::string_view config,
                      const SelectionOptions& options = {}, std::string_view given_as = "--");

}  // namespace cermet

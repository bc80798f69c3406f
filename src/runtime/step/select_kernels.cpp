#include <map>
#include <set>

#include "jit/walk.hpp"
#include "runtime/step/choose_walks.hpp"
#include "runtime/step/spans_ranks.hpp"
#include "runtime/super_kernel/joinable_choice.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

/// ", 9 as measured; 2 measured choices ignored: gemv.linear declines: ... (2)"; empty where none was found.
std::string measured_text(std::int64_t taken, const std::map<std::string, std::int64_t>& ignored) {
  std::string text = taken > 0 ? fmt::format(", {} as measured", taken) : "";
  std::int64_t count = 0;
  std::string reasons;
  for (const auto& [reason, times] : ignored) {
    count += times;
    reasons += fmt::format("{}{} ({})", reasons.empty() ? "" : "; ", reason, times);
  }
  return count > 0 ? fmt::format("{}; {} measured choice{} ignored: {}", text, count, count == 1 ? "" : "s", reasons)
                   : text;
}

/// Whether a node in a super-kernel exchanges data, which a launch can do there in place of the host.
bool is_launched(const Compilation& c, const Node& node, const Region& region) {
  return node.super_kernel >= 0 && region.is_single() && spans_ranks(region.problem()) && c.device.target() &&
         jit::can_walk(*c.device.target()) && has_peer_memory(c, region.problem());
}

}  // namespace

std::string step::select_kernels(Compilation& c) {
  std::set<std::string_view> names;
  std::int64_t measured = 0;
  std::map<std::string, std::int64_t> ignored;  // by reason
  for (std::size_t step = 0; step < c.groups.size(); ++step) {
    const Node& node = c.node_of(step);
    try {
      Selection selection = select_taken(c.region_of(step), {.threads = c.pool.size(), .tuning = c.options.tuning});
      measured += selection.tuned ? 1 : 0;
      for (const IgnoredTuning& one : selection.ignored) ++ignored[one.reason];
      c.choices.push_back(std::move(selection.choice));
      if (is_launched(c, node, c.region_of(step))) choose_launched(c.region_of(step), c.choices.back());
    } catch (const Error& error) {
      if (node.scope.empty()) throw;
      throw Error(error.status(), fmt::format("{}: {}", node.scope, error.what()));
    }
  }
  choose_walks(c);
  for (std::size_t step = 0; step < c.groups.size(); ++step) {
    if (c.options.fusion.choose) c.options.fusion.choose(c.region_of(step), c.choices[step]);
    names.insert(c.choices[step].kernel->name);
  }
  return fmt::format("{} launches of {} kernels{}", c.choices.size(), names.size(), measured_text(measured, ignored));
}

}  // namespace cermet

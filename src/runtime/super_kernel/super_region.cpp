#include "runtime/super_kernel/super_region.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cermet {
namespace {

std::uint32_t blocks_of(const SuperKernelOptions& options, const SuperLimits& limits) {
  return options.width > 0 ? std::min(limits.blocks, static_cast<std::uint32_t>(options.width)) : limits.blocks;
}

}  // namespace

std::vector<SuperKernelOptions> options_of(const std::vector<SuperKernel>& super_kernels) {
  std::vector<SuperKernelOptions> list;
  for (const SuperKernel& each : super_kernels) list.push_back(SuperKernelOptions::parse(each.options));
  return list;
}

std::string text_of(const SuperBreak& found, std::string_view scope) {
  const SuperReasonInfo& info = info_of(found.reason);
  return fmt::format("{} (launch {}): {}: {}{}; {}", scope.empty() ? "a node without a scope" : scope, found.launch,
                     info.id, info.sentence, found.found.empty() ? "" : " (" + found.found + ")", info.advice);
}

std::optional<SuperBreak> why_apart(const Launch& launch, const SuperStep& step, const SuperLimits& limits) {
  const auto apart = [&](SuperReason reason, std::string found = {}) {
    return SuperBreak{{}, launch.step, 0, reason, std::move(found)};
  };
  // Of kernels that were chosen for launches of their own: the reason is why they were.
  const auto alone = [&](SuperReason reason, std::string found) {
    if (step.loss <= 0) return apart(reason, std::move(found));
    return apart(SuperReason::loss,
                 fmt::format("{:.0f} us a run by forecast, so that kernels were chosen that are faster alone: {}",
                             step.loss * 1e6, found));
  };
  if (step.is_outside || launch.kind == Launch::Kind::function) return apart(SuperReason::outside_code);
  if (limits.calls) return std::nullopt;
  if (launch.kind == Launch::Kind::call) return apart(SuperReason::host_work);
  if (launch.kind == Launch::Kind::product) return apart(SuperReason::vendor_product);
  if (launch.kind == Launch::Kind::fill) return apart(SuperReason::fill);
  if (!limits.links) return apart(SuperReason::architecture);
  if (!launch.is_linkable()) return alone(SuperReason::clusters, fmt::format("clusters of {}", launch.shape.cluster));
  if (launch.program < step.forms.size() && !step.forms[launch.program].empty())
    return alone(SuperReason::form, step.forms[launch.program]);
  if (launch.shape.shared_bytes > limits.shared_bytes)
    return apart(SuperReason::shared_memory,
                 fmt::format("{} bytes, at most {}", launch.shape.shared_bytes, limits.shared_bytes));
  if (launch.items > limits.most_items)
    return apart(SuperReason::many_items, fmt::format("{}, at most {}", launch.items, limits.most_items));
  return std::nullopt;
}

SuperFormation form_regions(const Plan& plan, const std::vector<SuperStep>& steps,
                            const std::vector<SuperKernel>& super_kernels, const SuperLimits& limits) {
  SuperFormation formation;
  form_regions(formation, plan, steps, super_kernels, options_of(super_kernels), limits);
  return formation;
}

void form_regions(SuperFormation& formation, const Plan& plan, const std::vector<SuperStep>& steps,
                  const std::vector<SuperKernel>& super_kernels, std::span<const SuperKernelOptions> options,
                  const SuperLimits& limits) {
  formation.regions.clear();
  formation.breaks.clear();
  std::int32_t open = Node::unmarked;  // the super-kernel of the last region, while nothing has ended it
  for (std::size_t l = 0; l < plan.launches().size(); ++l) {
    const Launch& launch = plan.launches()[l];
    const SuperStep& step = steps.at(launch.step);
    if (step.mark < 0) {
      open = Node::unmarked;
      continue;
    }
    const auto mark = static_cast<std::size_t>(step.mark);
    if (std::optional<SuperBreak> apart = why_apart(launch, step, limits)) {
      apart->name = super_kernels[mark].name;
      apart->launch = l;
      formation.breaks.push_back(std::move(*apart));
      open = Node::unmarked;
      continue;
    }
    if (open != step.mark)
      formation.regions.push_back(
          {super_kernels[mark].name, options[mark], launch.step, launch.step, l, l, blocks_of(options[mark], limits)});
    formation.regions.back().last_step = launch.step;
    formation.regions.back().end_launch = l + 1;
    open = step.mark;
  }
}

void report_breaks(const SuperFormation& formation, const std::vector<SuperKernel>& super_kernels,
                   FunctionRef<std::string_view(std::size_t step)> scope_of) {
  for (const SuperKernel& each : super_kernels) {
    std::string list;
    std::size_t count = 0;
    for (const SuperBreak& found : formation.breaks)
      if (found.name == each.name) list += fmt::format("\n  {}", text_of(found, scope_of(found.step))), ++count;
    if (count == 0) continue;
    if (SuperKernelOptions::parse(each.options).strict_scope_check == StrictScopeCheck::abort)
      fail(Status::unsupported, "super-kernel '{}': expected launches that can all join, found {} that cannot:{}",
           each.name, count, list);
    log().warn("super-kernel '{}': cannot take in {} of its launches, which {} by {}:{}", each.name, count,
               count == 1 ? "runs" : "run", count == 1 ? "itself" : "themselves", list);
  }
}

}  // namespace cermet

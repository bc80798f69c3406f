#include <algorithm>

#include "kernel/cpu/index_list.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

void count_tokens(const LaunchArgs& args) {
  const IndexList ids(args.inputs[0]);
  const std::int64_t experts = args.outputs[0].shape[0];
  auto* counts = args.outputs[0].as<std::int32_t>();
  std::fill_n(counts, experts, 0);
  for (std::int64_t i = 0; i < ids.count(); ++i) {
    if (ids[i] < 0) continue;
    check_index("expert_load", "0 (ids)", ids[i], experts);
    ++counts[ids[i]];
  }
}

}  // namespace

extern const Kernel moe_expert_load{
    .name = "moe.expert_load",
    .op = OpKind::expert_load,
    .summary = "one pass on one thread: there are few ids",
    .bind = [](const Problem&) -> Launcher { return count_tokens; },
};

}  // namespace cermet::cpu

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/kernel.hpp"
#include "op/expert_groups.hpp"
#include "op/operands.hpp"

namespace cermet::cpu {
namespace {

/// Counting sort: offsets of all groups and the row of every pair. `next` has room for a number of each group.
void sort_pairs(const IndexList& ids, const ExpertGroups& groups, std::int32_t* offsets, std::int32_t* next,
                const TensorView& row_of) {
  std::fill_n(offsets, groups.groups + 1, 0);
  for (std::int64_t pair = 0; pair < ids.count(); ++pair) ++offsets[groups.of(ids[pair]) + 1];
  for (std::int64_t e = 0; e < groups.groups; ++e) {
    offsets[e + 1] += offsets[e];
    next[e] = offsets[e];
  }
  const Rows rows(row_of);
  for (std::int64_t t = 0; t < rows.count(); ++t)
    for (std::int64_t j = 0; j < rows.length(); ++j)
      reinterpret_cast<std::int32_t*>(rows.row(t))[j] = next[groups.of(ids[t * rows.length() + j])]++;
}

void permute_tokens(const LaunchArgs& args, const ExpertGroups& groups) {
  const IndexList ids(args.inputs[1]), row_of(args.outputs[2]);
  const Rows from(args.inputs[0]), to(args.outputs[0]);
  sort_pairs(ids, groups, args.outputs[1].as<std::int32_t>(), reinterpret_cast<std::int32_t*>(args.workspace),
             args.outputs[2]);
  const std::int64_t k = args.inputs[1].shape[1];
  if (args.has(op::moe_permute::scales))
    for (std::int64_t pair = 0; pair < ids.count(); ++pair)
      args.outputs[3].as<float>()[row_of[pair]] = args.inputs[op::moe_permute::scales].as<const float>()[pair / k];
  const auto bytes = static_cast<std::size_t>(from.length()) * size_of(args.inputs[0].dtype);
  if (bytes == 0) return;
  constexpr std::size_t worth_thread = 16 << 10;  // bytes that take as long to copy as a loop on several threads costs
  args.pool->parallel_for(ids.count(), static_cast<std::int64_t>(std::max<std::size_t>(1, worth_thread / bytes)),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t pair = begin; pair < end; ++pair)
                              std::memcpy(to.row(row_of[pair]), from.row(pair / k), bytes);
                          });
}

}  // namespace

extern const Kernel moe_permute_counting{
    .name = "moe.permute",
    .op = OpKind::moe_permute,
    .summary = "counting sort of the pairs, then the rows are copied by all threads",
    .bind = [](const Problem& p) -> Launcher {
      return [groups = ExpertGroups(p.attributes)](const LaunchArgs& args) { permute_tokens(args, groups); };
    },
    .workspace = [](const Problem& p, int) -> std::int64_t { return p.attributes.integer("experts") * 4; },
};

}  // namespace cermet::cpu

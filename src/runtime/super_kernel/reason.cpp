#include "runtime/super_kernel/reason.hpp"

#include <array>

namespace cermet {
namespace {

constexpr std::array reasons{
    SuperReasonInfo{SuperReason::vendor_product, "vendor-product",
                    "a matrix product of the vendor's library, which is a launch of its own",
                    "let one of the library's own products take its place: --config or `cermet tune`"},
    SuperReasonInfo{SuperReason::outside_code, "outside-code", "code from outside, which is no task",
                    "remove the kernel (`cermet kernel remove`), or exclude the node"},
    SuperReasonInfo{SuperReason::host_work, "host-work", "work of the host between launches",
                    "exclude the node, or choose a kernel that runs on the device"},
    SuperReasonInfo{SuperReason::fill, "fill", "memory that is filled before a launch",
                    "exclude the node, or choose a kernel that needs no filled memory"},
    SuperReasonInfo{SuperReason::clusters, "clusters",
                    "thread blocks that form clusters, which a launch has of one size only",
                    "choose a configuration without clusters: `cermet explain op` lists them"},
    SuperReasonInfo{SuperReason::shared_memory, "shared-memory",
                    "more shared memory than a thread block of the super-kernel has",
                    "choose a configuration with smaller tiles or fewer stages"},
    SuperReasonInfo{SuperReason::many_items, "many-items", "more items than a super-kernel counts",
                    "mark only passes of few tokens"},
    SuperReasonInfo{SuperReason::form, "form",
                    "a task that divides the threads, registers or shared memory of a block in a way of its own",
                    "choose another kernel or configuration: `cermet explain op` lists them"},
    SuperReasonInfo{SuperReason::architecture, "architecture", "a device for which tasks are not linked",
                    "run it without super-kernels there"},
    SuperReasonInfo{SuperReason::loss, "loss", "a super-kernel that is predicted to be slower than launches one by one",
                    "mark fewer nodes, or none; debug-sync-all, profile and width link it all the same"},
};
static_assert([] {
  for (std::size_t i = 0; i < reasons.size(); ++i)
    if (static_cast<std::size_t>(reasons[i].reason) != i) return false;
  return true;
}());

}  // namespace

std::span<const SuperReasonInfo> super_reasons() { return reasons; }

}  // namespace cermet

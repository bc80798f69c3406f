#include "kernel/part_choice.hpp"

#include "kernel/config_match.hpp"
#include "kernel/decline.hpp"
#include "kernel/forced.hpp"

namespace cermet {

PartChoice choose_part(std::span<const Kernel* const> kernels, const Region& region) {
  PartChoice choice;
  for (const Kernel* kernel : kernels) {
    const auto text = forced_configs().find(kernel->name);
    if ((choice.kernel && !text) || decline_of(*kernel, region)) continue;
    if (text) return {kernel, configs_with(*kernel, kernel->configs(region), *text, forced_configs().source()).front()};
    choice.kernel = kernel;
  }
  return choice;
}

}  // namespace cermet

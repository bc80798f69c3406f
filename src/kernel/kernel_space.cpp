#include "kernel/kernel.hpp"

namespace cermet {

Launcher bind_kernel(const Kernel& kernel, const Region& region, const Config& config) {
  const auto threads = config.find(threads_field);
  if (!threads || region.target()) return kernel.bind(region, config);
  Config own;
  for (const auto& [name, value] : config.fields())
    if (name != threads_field) own.set(name, value);
  return [launch = kernel.bind(region, own), count = static_cast<int>(*threads)](const LaunchArgs& args) {
    ThreadPool few(*args.pool, count);
    LaunchArgs some = args;
    some.pool = &few;
    launch(some);
  };
}

ConfigSpace space_of(const Kernel& kernel, const Region& region, int threads) {
  if (region.target()) return kernel.space ? kernel.space(region) : ConfigSpace::listing(kernel.configs(region));
  ConfigSpace space = kernel.space ? kernel.space(region) : ConfigSpace();
  if (!kernel.space && kernel.configs(region).size() > 1) return ConfigSpace::listing(kernel.configs(region));
  if (threads > 1) space.add(ConfigField::powers(std::string(threads_field), 1, threads - 1).with_usual(threads));
  return space;
}

}  // namespace cermet

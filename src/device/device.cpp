#include "device/device.hpp"

#include <charconv>
#include <optional>

#include "device/cuda/plugin.hpp"

namespace cermet {
namespace {

/// The number after "null:sm_" or "cuda:"; nothing where something else follows.
std::optional<int> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  int value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc() || end != name.data() + name.size() || value < 0) return {};
  return value;
}

}  // namespace

LoadedFunction Device::load(std::span<const std::byte>, const char* function, int, std::int64_t) {
  fail(Status::unsupported, "device {}: expected one that loads '{}'", name(), function);
}

TensorMap Device::tensor_map(const TensorMapShape&) {
  fail(Status::unsupported, "device {}: expected one with bulk tensor copies", name());
}

std::unique_ptr<Device> make_device(std::string_view name) {
  if (name == "cpu") return make_cpu_device();
  if (name == "null") return make_null_device();
  if (const auto sm = number_after(name, "null:sm_"); sm && *sm >= 75 && *sm < 1000) return make_null_device(*sm);
  if (name == "cuda") return cuda::plugin().make_device(0);
  if (const auto index = number_after(name, "cuda:")) return cuda::plugin().make_device(*index);
  fail(Status::invalid_argument, "device '{}': expected cpu, cuda, cuda:INDEX, null or null:sm_CC", name);
}

}  // namespace cermet

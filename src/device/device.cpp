#include "device/device.hpp"

#include "base/error.hpp"

namespace cermet {

std::unique_ptr<Device> make_device(std::string_view name) {
  if (name == "cpu") return make_cpu_device();
  if (name == "null") return make_null_device();
  fail(Status::invalid_argument, "device '{}': expected cpu or null", name);
}

}  // namespace cermet

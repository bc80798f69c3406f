// A device like an H200 that runs PTX on the host: what tests take where there is no GPU.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "tests/emulator/machine.hpp"

namespace cermet::emulator {

/// Launches are complete when they return. `compute_capability` is that of the PTX.
std::unique_ptr<Device> make_emulated_device(const Mode& mode, int compute_capability = 90);

/// What CERMET_EMULATE asks for: nothing, or "1", or a list of "late" and "seed=N".
std::optional<Mode> mode_from_environment();

}  // namespace cermet::emulator

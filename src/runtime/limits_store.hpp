// Measured limits on disk, beside compiled kernels: one small file for each kind of device and driver.
#pragma once

#include <filesystem>
#include <memory>

#include "device/device.hpp"

namespace cermet {

/// Where the limits of devices of this name, size and driver are kept in the cache folder; empty where there is no such
/// folder. The device has a target.
std::filesystem::path limits_file(const Device& device);

/// Writes the file, in place of one that is there. Throws Error(io) naming what cannot be written,
/// Error(invalid_argument) for limits that are not plausible.
void store_limits(const Device& device, const std::filesystem::path& file, const DeviceLimits& limits);

/// Reads it, checked: the device's name, size and driver, and every figure. Null where there is no file. Throws Error
/// naming file and field.
std::shared_ptr<const DeviceLimits> read_limits(const Device& device, const std::filesystem::path& file);

/// What limits_file() holds for a device that computes; null where there is nothing, and with a warning where it cannot
/// be used, so that choices are made by the data sheet.
std::shared_ptr<const DeviceLimits> stored_limits(const Device& device);

}  // namespace cermet

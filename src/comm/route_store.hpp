// Measured times of collectives on disk, beside measured limits: one small file for each kind of device, driver and
// number of ranks.
#pragma once

#include <filesystem>

#include "comm/peer_routes.hpp"
#include "device/device.hpp"

namespace cermet::comm {

/// Where the times of so many ranks on such devices are kept in the cache folder; empty where there is no such folder.
/// `shared`: some ranks are on one device.
std::filesystem::path routes_file(const Device& device, int ranks, bool shared);

/// Writes the file, in place of one that is there. Throws Error(io) naming what cannot be written,
/// Error(invalid_argument) for times that are not plausible.
void store_routes(const Device& device, int ranks, const std::filesystem::path& file, const RouteTimes& times);

/// Reads it, checked: device, driver, number of ranks and every time. Nothing where there is no file. Throws Error
/// naming file and field.
RouteTimes read_routes(const Device& device, int ranks, const std::filesystem::path& file);

/// What routes_file() holds; nothing where it holds nothing, and with a warning where it cannot be used. Ranks with
/// other times would take other ways, so that all must have read the same: every rank calls it.
RouteTimes agreed_routes(Communicator& host, const Device& device, bool shared);

}  // namespace cermet::comm

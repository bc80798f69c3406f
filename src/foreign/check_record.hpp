// What came out when a kernel from outside was checked on a device, on disk beside the kernels.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/target.hpp"

namespace cermet::foreign {

struct CheckRecord {
  std::string kernel, digest;                      ///< its name, and what was checked
  std::string device;                              ///< as device_key() spells it
  std::string driver;                              ///< of a GPU
  std::string library;                             ///< Cermet's version, whose cases it were
  std::string date;                                ///< "2026-03-01 14:05:09", UTC
  std::int64_t taken = 0, declined = 0, runs = 0;  ///< cases, and launches of those taken
  std::string failure;                             ///< empty where it passed: the case with what was expected and found

  bool passed() const { return failure.empty(); }
};

/// "NVIDIA H200, 132 SMs", or for null the processor: devices of one key run the same code alike.
std::string device_key(const Target* target);
/// This library's version.
std::string library_version();

/// Writes the record, in place of an earlier one of the same code and device. Throws Error(io).
void store_check(const CheckRecord& record);
/// Those of a digest by this version of the library; damaged files are ignored with a message.
std::vector<CheckRecord> stored_checks(const std::string& digest);
/// Deletes those of a digest.
void remove_checks(const std::string& digest);

}  // namespace cermet::foreign

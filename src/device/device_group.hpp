// GPUs that move data between each other: what NCCL offers, without its types.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/dtype.hpp"
#include "device/stream.hpp"

namespace cermet {

enum class GroupReduction : int { sum, prod, max, min, avg };  ///< in NCCL's order

/// What one rank makes and all need to join.
using GroupIdentity = std::array<char, 128>;

/// One rank's place. Everything is enqueued, and may be captured in a graph; counts are elements of each rank's part.
/// Throws Error as Stream does.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  virtual void all_reduce(const void* x, void* y, std::int64_t count, DType dtype, GroupReduction reduction,
                          Stream& stream) = 0;
  virtual void reduce(const void* x, void* y, std::int64_t count, DType dtype, GroupReduction reduction, int root,
                      Stream& stream) = 0;
  virtual void reduce_scatter(const void* x, void* y, std::int64_t count, DType dtype, GroupReduction reduction,
                              Stream& stream) = 0;
  virtual void all_gather(const void* x, void* y, std::int64_t bytes, Stream& stream) = 0;
  virtual void broadcast(const void* x, void* y, std::int64_t bytes, int root, Stream& stream) = 0;
  /// sent[r] bytes to rank r and received[r] from it; parts lie one after another. Ranks with 0 are left out.
  virtual void exchange(const void* x, std::span<const std::int64_t> sent, void* y,
                        std::span<const std::int64_t> received, Stream& stream) = 0;
  /// What went wrong since, on this rank or with a link to another; "" where nothing. May be asked by another thread.
  virtual std::string failure() = 0;
  /// Ends what runs on the device, which then is of no use to other ranks either. May be called by another thread.
  virtual void abort() noexcept = 0;
};

}  // namespace cermet

// What DLPack defines beyond the 0.6 of its installed header: versioned tensors (1.0) and the functions that a tensor's
// class exports (1.2). Layouts are those of dlpack.h 1.3, https://dmlc.github.io/dlpack.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

namespace cermet::python {

struct DlpackVersion {
  std::uint32_t major, minor;
};

struct ManagedTensorVersioned {
  DlpackVersion version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor tensor;
};
inline constexpr std::uint64_t dlpack_read_only = 1;

/// What `__dlpack_c_exchange_api__` of a class points to. Functions return 0, or -1 with Python's error set. "no_sync":
/// no stream waits for another.
struct ExchangeApi {
  DlpackVersion version;
  ExchangeApi* previous;
  int (*allocate)(DLTensor* prototype, ManagedTensorVersioned** made, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_from_object)(void* object, ManagedTensorVersioned** made);
  int (*object_from_managed)(ManagedTensorVersioned* tensor, void** object);
  int (*tensor_from_object)(void* object, DLTensor* made);  ///< borrowed: valid as long as the object; may be null
  int (*current_stream)(DLDeviceType type, std::int32_t index, void** stream);
};

// Type codes of DLPack 1.x that 0.6 does not have.
inline constexpr std::uint8_t dl_bool = 6, dl_f8_e4m3 = 10, dl_f8_e4m3fnuz = 11, dl_f8_e5m2 = 12, dl_f8_e5m2fnuz = 13,
                              dl_f8_e8m0 = 14;

}  // namespace cermet::python

// The boundary of the C ABI: exceptions become a status and a message of this thread.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "cermet/cermet.h"

namespace cermet::api {

/// Stores the message that cermet_last_error_message() returns. Allocates nothing, so that it also works when memory is
/// out.
void set_last_error(std::string_view message) noexcept;
/// Stores the message of the exception being handled and returns its status.
cermet_status handle_exception() noexcept;

/// Runs the body of a C function; no exception leaves it.
template <class Body>
cermet_status guarded(Body&& body) noexcept {
  try {
    body();
    return CERMET_OK;
  } catch (...) {
    return handle_exception();
  }
}

/// A pointer argument that must not be null.
inline void require_pointer(const void* pointer, std::string_view name) {
  require(pointer != nullptr, "{}: expected a pointer, found NULL", name);
}

}  // namespace cermet::api

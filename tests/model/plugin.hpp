// Whether code for GPUs can be compiled here: sanitized builds and machines without the toolkit have no plugin.
#pragma once

#include <string>

#include "base/error.hpp"
#include "device/cuda/plugin.hpp"

namespace cermet::test {

/// Why there is no CUDA plugin; empty where there is one.
inline std::string no_plugin() {
  try {
    cuda::plugin();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace cermet::test

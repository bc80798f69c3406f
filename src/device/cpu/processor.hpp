// What this machine's processor is.
#pragma once

#include <cstdint>
#include <string>

namespace cermet {

struct Processor {
  std::string name;  ///< "AMD EPYC 9655"; "" where the operating system does not say
  std::int64_t l1_bytes = 0, l2_bytes = 0,
               l3_bytes = 0;  ///< data caches as the first core sees them; 0 where it does not say
};

/// Read once.
const Processor& processor();

}  // namespace cermet

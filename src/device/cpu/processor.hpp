// The processor that this process runs on.
#pragma once

#include <string>

namespace cermet {

/// "AMD EPYC 9655", from the operating system's description of the first core; "" where it has none.
std::string processor_name();

}  // namespace cermet

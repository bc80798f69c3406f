// What the operating system says about this process and the machine's memory.
#pragma once

#include <cstdint>
#include <string>

namespace cermet::cli {

/// Largest resident memory so far (VmHWM); 0 where the system does not say.
std::int64_t peak_memory_bytes();
/// Resident memory now (VmRSS); 0 where the system does not say.
std::int64_t resident_bytes();
/// Memory that can be taken without swapping (MemAvailable); the largest integer where the system does not say.
std::int64_t available_memory_bytes();
/// Throws Error(out_of_memory) where `bytes` for `what` are not available.
void require_memory(std::int64_t bytes, const std::string& what);
/// Everything on standard input, to its end. Throws Error(io), or Error(cancelled) after Ctrl-C.
std::string read_standard_input();

}  // namespace cermet::cli

// Barriers in shared memory: 8 bytes with the counts of arrivals and of bytes.
#pragma once

#include "tests/emulator/machine.hpp"

namespace cermet::emulator {

/// The barrier at an address of shared memory, of which `arrivals` arrive and `bytes` are announced (or, negative,
/// have come). Faults where none was initialised.
void change_mbarrier(Thread& t, std::byte* barrier, std::uint32_t arrivals, std::int64_t bytes);
/// The same for a barrier that asynchronous work of a thread counts at.
std::byte* mbarrier_memory(Thread& t, std::uint64_t address);

}  // namespace cermet::emulator

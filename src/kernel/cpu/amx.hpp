// AMX: a thread's eight tile registers of 16 rows of 64 bytes, and whether this process may use them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cermet::cpu {

/// Why kernels have no tile registers; nothing where they have. The first call asks the operating system for them, for
/// all threads of the process.
const std::optional<std::string>& amx_missing();

inline constexpr int amx_rows = 16, amx_row_bytes = 64;

/// A thread's tile registers, all of them amx_rows of amx_row_bytes, while this lives. To be short-lived: registers in
/// use make switches of threads slower. Only where amx_missing() says nothing.
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

}  // namespace cermet::cpu

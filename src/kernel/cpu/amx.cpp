#include "kernel/cpu/amx.hpp"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#endif

#include "base/error.hpp"

namespace cermet::cpu {

#if defined(__x86_64__)
namespace {

/// Operand of LDTILECFG.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {amx_row_bytes, amx_row_bytes, amx_row_bytes, amx_row_bytes, amx_row_bytes, amx_row_bytes, amx_row_bytes, amx_row_bytes};
  std::uint8_t rows[16] = {amx_rows, amx_rows, amx_rows, amx_rows, amx_rows, amx_rows, amx_rows, amx_rows};
};
static_assert(sizeof(TileConfig) == 64);

constexpr TileConfig all_tiles;

std::optional<std::string> find_missing() {
  if (!__builtin_cpu_supports("amx-tile") || !__builtin_cpu_supports("amx-bf16") || !__builtin_cpu_supports("amx-int8")) return "this processor has no AMX";
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  if (syscall(SYS_arch_prctl, request_permission, tile_data) == 0) return std::nullopt;
  return fmt::format("the operating system refuses this process AMX tiles: {}", std::generic_category().message(errno));
}

}  // namespace

const std::optional<std::string>& amx_missing() {
  static const std::optional<std::string> missing = find_missing();
  return missing;
}

AmxTiles::AmxTiles() { asm volatile("ldtilecfg %0" : : "m"(all_tiles)); }
AmxTiles::~AmxTiles() { asm volatile("tilerelease" : : : "memory"); }

#else

const std::optional<std::string>& amx_missing() {
  static const std::optional<std::string> missing = "this processor has no AMX";
  return missing;
}

AmxTiles::AmxTiles() { assertion_failed("an x86 processor with AMX", __FILE__, __LINE__); }
AmxTiles::~AmxTiles() = default;

#endif

}  // namespace cermet::cpu

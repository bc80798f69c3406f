#include "kernel/cpu/amx.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
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
  std::uint16_t row_bytes[16] = {amx_row_bytes, amx_row_bytes, amx_row_bytes, amx_row_bytes,
                                 amx_row_bytes, amx_row_bytes, amx_row_bytes, amx_row_bytes};
  std::uint8_t rows[16] = {amx_rows, amx_rows, amx_rows, amx_rows, amx_rows, amx_rows, amx_rows, amx_rows};
};
static_assert(sizeof(TileConfig) == 64);

constexpr TileConfig all_tiles;

std::optional<std::string> find_missing() {
  constexpr unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25;  // of leaf 7 in edx
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || (edx & (bf16 | tile | int8)) != (bf16 | tile | int8))
    return "this processor has no AMX";
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

AmxTiles::AmxTiles() { assertion_failed("an x86 processor with AMX", __FILE_NAME__, __LINE__); }
AmxTiles::~AmxTiles() = default;

#endif

}  // namespace cermet::cpu

#include "kernel/cpu/gemm/amx.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/env.hpp"
#include "base/error.hpp"
#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/amx_instructions.hpp"
#include "kernel/cpu/gemm/amx_sums.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/gemm/row_form.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"

namespace cermet::cpu {

#if defined(__x86_64__)
namespace {

constexpr std::int64_t unit_bytes = 4 * panel_columns,
                       chunk_units = amx_row_bytes / 4;  // a unit of a panel; those of a chunk

/// sums += one chunk of rows times the same steps of a panel. Six tiles of sums leave two for operands: what is loaded
/// twice is in the first-level cache then, and the second-level cache, which sets the pace, gives five tiles for six
/// products where two by two tiles of sums take six.
template <class Products, int row_tiles>
[[gnu::always_inline]] inline void multiply_chunk(const char* rows, const char* panel) {
  constexpr std::int64_t tile_bytes = amx_rows * amx_row_bytes;
  load_tile<6>(rows, amx_row_bytes);
  load_tile<7>(panel, unit_bytes);
  Products::template multiply<0, 6, 7>();
  load_tile<7>(panel + amx_row_bytes, unit_bytes);
  Products::template multiply<1, 6, 7>();
  if constexpr (row_tiles >= 2) {
    load_tile<6>(rows + tile_bytes, amx_row_bytes);
    Products::template multiply<3, 6, 7>();
    load_tile<7>(panel, unit_bytes);
    Products::template multiply<2, 6, 7>();
  }
  if constexpr (row_tiles == 3) {
    load_tile<6>(rows + 2 * tile_bytes, amx_row_bytes);
    Products::template multiply<4, 6, 7>();
    load_tile<7>(panel + amx_row_bytes, unit_bytes);
    Products::template multiply<5, 6, 7>();
  }
}

/// Asks the second-level cache for what the units of one chunk ask for, and of a panel that only these rows take, the
/// first level for the next chunk.
[[gnu::always_inline]] inline void prefetch_chunk(const char* panel, Ahead& ahead) {
  const char* const end = ahead.at + chunk_units * ahead.step;
  for (const char* line = ahead.at; line < end; line += 64) __builtin_prefetch(line, 0, 2);
  ahead.at = end;
  if (ahead.step < unit_bytes) return;
  const char* const next = panel + chunk_units * unit_bytes;
  for (std::int64_t line = 0; line < chunk_units * unit_bytes; line += 64) __builtin_prefetch(next + line, 0, 3);
}

template <class Products, int row_tiles>
void multiply_tiles(const char* rows, std::int64_t row_count, const char* panel, std::int64_t units, Ahead ahead,
                    bool begins, float* sums) {
  if (begins) for_sums<row_tiles>(sums, []<int tile>(float*) { zero_tile<tile>(); });
  else for_sums<row_tiles>(sums, []<int tile>(float* at) { load_tile<tile>(at, sums_step); });
  const std::int64_t step = row_count * amx_row_bytes;
  for (; units >= chunk_units; units -= chunk_units) {
    prefetch_chunk(panel, ahead);
    multiply_chunk<Products, row_tiles>(rows, panel);
    rows += step;
    panel += chunk_units * unit_bytes;
  }
  if (units > 0) {  // what follows the last unit belongs to others
    alignas(64) char tail[chunk_units * unit_bytes] = {};
    std::memcpy(tail, panel, static_cast<std::size_t>(units * unit_bytes));
    multiply_chunk<Products, row_tiles>(rows, tail);
  }
  for_sums<row_tiles>(sums, []<int tile>(float* at) { store_tile<tile>(at, sums_step); });
}

template <class Products, int row_count>
void multiply_block(const void* rows, const void* panel, std::int64_t units, Ahead ahead, bool begins, float* sums) {
  multiply_tiles<Products, (row_count + amx_rows - 1) / amx_rows>(
      static_cast<const char*>(rows), row_count, static_cast<const char*>(panel), units, ahead, begins, sums);
}

template <class Products, std::size_t... R>
constexpr std::array<AmxProduct, sizeof...(R)> amx_table_of(std::index_sequence<R...>) {
  return {multiply_block<Products, static_cast<int>(R) + 1>...};
}

}  // namespace

const AmxProduct* amx_products(DType type) {
  static constexpr auto bf16 = amx_table_of<AmxBf16>(std::make_index_sequence<amx_block_rows>());
  static constexpr auto int8 = amx_table_of<AmxInt8>(std::make_index_sequence<amx_block_rows>());
  return type == DType::i8 ? int8.data() : bf16.data();
}

#else

const AmxProduct* amx_products(DType) { assertion_failed("an x86 processor with AMX", __FILE_NAME__, __LINE__); }

#endif

std::optional<std::string> amx_decline(DType type) {
  constexpr double worth_it = 1.5;  // processors have 6 and more; emulators do not
  const std::string& wanted = env::value(env::Name::CERMET_AMX_PRODUCTS);
  if (wanted != "auto" && wanted != "on" && wanted != "off")
    fail(Status::invalid_argument, "environment variable CERMET_AMX_PRODUCTS: expected auto, on or off, found '{}'",
         wanted);
  if (active_isa() < Isa::amx)
    return amx_missing() ? *amx_missing() : fmt::format("{} has no tiles", name_of(active_isa()));
  if (wanted == "off") return "switched off by CERMET_AMX_PRODUCTS";
  const bool is_int8 = type == DType::i8;
  const double ratio = is_int8 ? amx_int8_ratio() : amx_bf16_ratio() / std::max(1.0, bf16_ratio());
  if (wanted == "on" || ratio >= worth_it) return std::nullopt;
  return fmt::format("this machine's AMX tiles were measured at {:.2f} times {}, less than {}", ratio,
                     is_int8 ? "int8 dot products" : "the faster vectors", worth_it);
}

}  // namespace cermet::cpu

// What the consumers of the Hopper GEMM make of their sums: the epilogue over a warp's 16 rows of a tile. Operands with
// a value for each column wait in shared memory, those with one for each row in registers; the first with a 16-bit
// value for each place where the results will stand on their way out, before the sums are there; others are loaded a
// few columns ahead of their use.
#pragma once

#include "kernel/cuda/device/gemm/epilogue.cuh"
#include "kernel/cuda/device/ptx/cp_async.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

#if CERMET_ARCH >= 900
namespace cermet::gemm {

/// Columns of a tile in shared memory: [block_n] of each extra with a value for each column, then the sums of b's
/// columns. WholeTile: results of 16 bits go out through memory of a whole tile.
template <class E, bool WholeTile = false>
struct ColumnPlan {
  /// The extra that waits where results will stand; -1: none.
  static constexpr int find_placed() {
    for (int i = 0; WholeTile && i < E::extras; ++i)
      if (E::extra[i].extent == epilogue::Extent::element && epilogue::bytes_of(E::extra[i].dtype) == 2) return i;
    return -1;
  }
  static constexpr int placed = find_placed();
  static constexpr bool is_staged(int i) {
    return E::extra[i].extent == epilogue::Extent::column && E::extra[i].columns == 1;
  }
  /// Bytes of a column that come before extra i.
  static constexpr int before(int i) {
    int bytes = 0;
    for (int other = 0; other < i; ++other) bytes += is_staged(other) ? epilogue::bytes_of(E::extra[other].dtype) : 0;
    return bytes;
  }
  static constexpr int bytes = before(E::extras) + (E::column_sums ? 4 : 0);
  static constexpr bool from_memory(int i) { return i != placed && !is_staged(i) && !epilogue::of_rows(E::extra[i]); }
  static constexpr int memory_slots(int i) {
    int count = 0;
    for (int other = 0; other < i; ++other) count += from_memory(other);
    return count;
  }
};

/// Sums: `own` of this thread for each part of b. N: columns of the result. WholeTile: results go out as store_pieces
/// sends them, all pieces at a time.
template <class E, int BlockN, int N, int Parts, class Sum, bool WholeTile>
struct HopperResults {
  using Plan = ColumnPlan<E, WholeTile && sizeof(Element<E::out>) == 2>;
  using Values = epilogue::ValuesOf<E>;
  static constexpr int own = BlockN / 2, slots = Plan::memory_slots(E::extras);

  const epilogue::Operand* extra;
  const char* columns;  // of the warpgroup
  const Sum (&sums)[Parts][own];
  int row, rows_end, n, group;  // first row and column of the tile's part, end of its group's rows
  Values row_values[2] = {};    // of rows row + 8 h + lane / 4
  uint32_t loaded[slots > 0 ? slots : 1][4][2][2] = {};
  uint32_t placed[4] = {};  // fragments of the extra that waits where results will stand

  static CERMET_DEVICE int lane() { return static_cast<int>(lane_index()); }

  /// One value for each column of the tile, from global to shared memory.
  template <class T>
  static CERMET_DEVICE void fetch_columns(char* to, const T* from, int rank, int n) {
    const int i = rank * per_16_bytes<T>;
    if (i >= BlockN) return;
    const int valid = min_of(max_of(N - n - i, 0), per_16_bytes<T>);
    ptx::cp_async<16>(to + i * sizeof(T), valid > 0 ? from + n + i : from, valid * static_cast<int>(sizeof(T)));
  }
  /// By a whole warpgroup; `rank` of this thread in it.
  static CERMET_DEVICE void fetch(const epilogue::Operand* extra, const int32_t* column_sums, char* columns, int rank,
                                  int n, int group) {
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      if constexpr (Plan::is_staged(I))
        fetch_columns(columns + BlockN * Plan::before(I),
                      static_cast<const Element<E::extra[I].dtype>*>(extra[I].data) + group * extra[I].group, rank, n);
    });
    if constexpr (E::column_sums) fetch_columns(columns + BlockN * Plan::before(E::extras), column_sums, rank, n);
  }

  /// Before the sums are there: what rows need, and the lines of what has a value for each place to the L2.
  CERMET_DEVICE void load_rows() {
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      constexpr epilogue::Extra x = E::extra[I];
      if constexpr (epilogue::of_rows(x)) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int r = row + 8 * h + lane() / 4;
          if (x.extent == epilogue::Extent::scalar || r < rows_end)
            row_values[h].bits[I] = epilogue::bits_of(*epilogue::address_of<x>(extra[I], r, 0, group));
        }
      }
      if constexpr (x.extent == epilogue::Extent::element && I != Plan::placed) {
        constexpr int line = 128 / epilogue::bytes_of(x.dtype), lines = BlockN / line > 0 ? BlockN / line : 1;
        for (int i = lane(); i < 16 * lines; i += 32) {
          const int r = row + i / lines, column = n + i % lines * line;
          if (r < rows_end && column < N)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(epilogue::address_of<x>(extra[I], r, column, group)));
        }
      }
    });
  }

  /// Before the sums are there: the placed extra's 16 rows to `staging`, the warp's own, when what went out from there
  /// has left it. Asynchronous.
  CERMET_DEVICE void place(char* staging) const {
    if constexpr (Plan::placed >= 0) {
      constexpr epilogue::Extra x = E::extra[Plan::placed];
      constexpr int units = BlockN / 8, piece_units = 8;
      ptx::bulk_wait_read<0>();
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 16 * units; i += 32) {
        const int at = i + lane(), r = at / units, unit = at % units, column = n + unit * 8;
        const bool exists = row + r < rows_end && column < N;
        const auto* const from =
            epilogue::address_of<x>(extra[Plan::placed], exists ? row + r : row, exists ? column : n, group);
        ptx::cp_async<16>(staging + unit / piece_units * 16 * 128 + swizzled(r, unit % piece_units), from,
                          exists ? 16 : 0);
      }
      ptx::cp_async_commit();
    }
  }
  /// When place() was waited for, the fragments of 16 columns: an address as stmatrix takes it.
  CERMET_DEVICE void take_placed(const char* at) {
    if constexpr (Plan::placed >= 0) ptx::ldmatrix_x4(placed, at);
  }

  /// Operands of the load_columns results from `column` on that come from memory.
  CERMET_DEVICE void load(int column) {
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      constexpr epilogue::Extra x = E::extra[I];
      if constexpr (Plan::from_memory(I)) {
        using Two = Vector<Element<x.dtype>, 2>;
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int r = row + 8 * h + lane() / 4, at = n + column + 8 * j + 2 * (lane() % 4);
            if (r >= rows_end || at >= N) continue;
            uint32_t(&to)[2] = loaded[Plan::memory_slots(I)][j][h];
            const auto* const from = epilogue::address_of<x>(extra[I], r, at, group);
            if constexpr (x.extent == epilogue::Extent::element) {
              const Two two = *reinterpret_cast<const Two*>(from);
              to[0] = epilogue::bits_of(two[0]), to[1] = epilogue::bits_of(two[1]);
            } else {
              to[0] = to[1] = epilogue::bits_of(*from);  // neighbours that share a value come in even numbers
            }
          }
      }
    });
  }

  template <class T>
  CERMET_DEVICE Vector<T, 2> staged(int before, int column) const {
    return *reinterpret_cast<const Vector<T, 2>*>(columns + BlockN * before + column * static_cast<int>(sizeof(T)));
  }

  /// Two 16-bit results, packed.
  CERMET_DEVICE uint32_t packed(int at, int h, int column, int slot) const {
    if constexpr (E::pairs && Parts == 1) {
      epilogue::Pairs<E::extras> x;
      for_constants<E::extras>([&]<int I>(Constant<I>) {
        constexpr DType type = E::extra[I].dtype;
        if constexpr (Plan::is_staged(I)) {
          if constexpr (type == DType::f16) {
            x.halves[I] = *reinterpret_cast<const uint32_t*>(columns + BlockN * Plan::before(I) + column * 2);
          } else {
            const auto two = staged<Element<type>>(Plan::before(I), column);
            x.low.bits[I] = epilogue::bits_of(two[0]), x.high.bits[I] = epilogue::bits_of(two[1]);
          }
        } else if constexpr (I == Plan::placed && type == DType::f16) {
          x.halves[I] = placed[slot % 2 * 2 + h];
        } else {
          uint32_t low = row_values[h].bits[I], high = low;
          if constexpr (I == Plan::placed) {
            using Value = Element<type>;
            const uint32_t two = placed[slot % 2 * 2 + h];
            low = epilogue::bits_of(Value{static_cast<uint16_t>(two)}),
            high = epilogue::bits_of(Value{static_cast<uint16_t>(two >> 16)});
          } else if constexpr (Plan::from_memory(I)) {
            low = loaded[Plan::memory_slots(I)][slot][h][0], high = loaded[Plan::memory_slots(I)][slot][h][1];
          }
          if constexpr (type == DType::f16) x.halves[I] = pack_pair<f16>(__uint_as_float(low), __uint_as_float(high));
          else x.low.bits[I] = low, x.high.bits[I] = high;
        }
      });
      return E::pair(static_cast<float>(sums[0][at]), static_cast<float>(sums[0][at + 1]), x);
    } else {
      const auto v = pair(at, h, column, slot);
      return pack_pair<Element<E::out>>(v.x, v.y);
    }
  }

  CERMET_DEVICE auto pair(int at, int h, int column, int slot) const {
    Values x = row_values[h], y = x;
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      if constexpr (Plan::is_staged(I)) {
        const auto two = staged<Element<E::extra[I].dtype>>(Plan::before(I), column);
        x.bits[I] = epilogue::bits_of(two[0]), y.bits[I] = epilogue::bits_of(two[1]);
      } else if constexpr (I == Plan::placed) {
        using Value = Element<E::extra[I].dtype>;
        const uint32_t two = placed[slot % 2 * 2 + h];
        x.bits[I] = epilogue::bits_of(Value{static_cast<uint16_t>(two)}),
        y.bits[I] = epilogue::bits_of(Value{static_cast<uint16_t>(two >> 16)});
      } else if constexpr (Plan::from_memory(I)) {
        const uint32_t(&two)[2] = loaded[Plan::memory_slots(I)][slot][h];
        x.bits[I] = two[0], y.bits[I] = two[1];
      }
    });
    using Value = decltype(value(at, x, 0));
    if constexpr (E::column_sums) {
      const auto two = staged<int32_t>(Plan::before(E::extras), column);
      return Pair<Value>{value(at, x, two[0]), value(at + 1, y, two[1])};
    } else {
      return Pair<Value>{value(at, x, 0), value(at + 1, y, 0)};
    }
  }

  CERMET_DEVICE auto value(int at, const Values& x, [[maybe_unused]] int32_t column_sum) const {
    if constexpr (Parts == 2) return E::value(sums[0][at], sums[1][at], x);
    else if constexpr (E::column_sums) return E::value(sums[0][at], column_sum, x);
    else return E::value(sums[0][at], x);
  }
};

}  // namespace cermet::gemm
#endif

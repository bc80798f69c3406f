// The epilogue of the Hopper GEMM (hopper.cuh): from a warp's accumulators, 16 rows of a tile, to rows in memory.
//
//   accumulators  registers -> E::value (E::pair: two results of 16 bits) -> staging in shared memory -> y
//
// What E reads beside the sums (its extras) comes
//   with a value for each column   from shared memory, where the warpgroup copied it while the tile was multiplied
//   with a value for each row      from registers, loaded before the products
//   the first of 16 bits with a    from the staging of the results, where it was copied before the products and where
//   value for each element         the results of the same elements replace it (only where staging has the whole tile)
//   others                         from global memory, load_columns columns ahead of their use; prefetched to the L2
// Two results of a wgmma fragment are neighbours: acc[4 * j + 2 * h + i] is row 8 * h + lane / 4 of the warp's 16 and
// column 8 * j + 2 * (lane % 4) + i.
#pragma once

#include "kernel/cuda/device/ptx/cp_async.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

#if CERMET_ARCH >= 900
namespace cermet::gemm {

/// Two numbers of a 16-bit type, rounded, the first in the low half.
template <class Out>
CERMET_DEVICE uint32_t pack_pair(float low, float high);
template <>
CERMET_DEVICE uint32_t pack_pair<bf16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
CERMET_DEVICE uint32_t pack_pair<f16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Where 16 bytes `unit` of a row of 128 bytes lie, so that neither rows nor columns of 16 bytes meet in a bank: what
/// bulk copies call a 128-byte swizzle.
CERMET_DEVICE int swizzled(int row, int unit) { return row * 128 + (unit ^ (row & 7)) * 16; }

/// Columns whose operands are loaded together.
inline constexpr int load_columns = 32;

/// Where the extras of E are. In shared memory: [block_n] of each with a value for each column, then the sums of b's
/// columns. WholeTile: staging has all columns of the tile.
template <class E, bool WholeTile = false>
struct ExtraPlan {
  /// The extra that waits in the staging of the results; -1: none.
  static constexpr int find_in_staging() {
    for (int i = 0; WholeTile && i < E::extras; ++i)
      if (E::extra[i].extent == epilogue::Extent::element && epilogue::bytes_of(E::extra[i].dtype) == 2) return i;
    return -1;
  }
  static constexpr int in_staging = find_in_staging();
  static constexpr bool of_columns(int i) {
    return E::extra[i].extent == epilogue::Extent::column && E::extra[i].columns == 1;
  }
  /// Bytes of a column in shared memory that come before extra i.
  static constexpr int before(int i) {
    int bytes = 0;
    for (int other = 0; other < i; ++other) bytes += of_columns(other) ? epilogue::bytes_of(E::extra[other].dtype) : 0;
    return bytes;
  }
  static constexpr int bytes = before(E::extras) + (E::column_sums ? 4 : 0);
  static constexpr bool from_memory(int i) {
    return i != in_staging && !of_columns(i) && !epilogue::of_rows(E::extra[i]);
  }
  static constexpr int memory_slots(int i) {
    int count = 0;
    for (int other = 0; other < i; ++other) count += from_memory(other);
    return count;
  }
};

/// Results of a warp's 16 rows. N: columns of y; Parts: of b. WholeTile: see ExtraPlan.
template <class E, int BlockN, int N, int Parts, class Sum, bool WholeTile>
struct HopperEpilogue {
  using Plan = ExtraPlan<E, WholeTile && sizeof(Element<E::out>) == 2>;
  using Values = epilogue::ValuesOf<E>;
  static constexpr int slots = Plan::memory_slots(E::extras);

  const epilogue::Operand* extra;
  const char* columns;                                   // (BLK_N, bytes), of the warpgroup
  const Sum (&acc)[Parts][BlockN / 2];                   // (b_parts, BLK_N / 2): a thread's share of 16 rows
  int row, rows_end, n, group;                           // first row and column, end of the group's rows
  Values row_values[2] = {};                             // (h): of rows row + 8 h + lane / 4
  uint32_t loaded[slots > 0 ? slots : 1][4][2][2] = {};  // (slot, j % 4, h, i): fragments of load_columns columns
  uint32_t staged[4] = {};  // fragments of 16 columns of the extra in staging, as ldmatrix gives them

  static CERMET_DEVICE int lane() { return static_cast<int>(lane_index()); }

  // ---- Before the products

  /// One value for each column of the tile, from global to shared memory.
  template <class T>
  static CERMET_DEVICE void copy_column_values(char* to, const T* from, int rank, int n) {
    const int i = rank * per_16_bytes<T>;
    if (i >= BlockN) return;
    const int valid = min_of(max_of(N - n - i, 0), per_16_bytes<T>);
    ptx::cp_async<16>(to + i * sizeof(T), valid > 0 ? from + n + i : from, valid * static_cast<int>(sizeof(T)));
  }
  /// All of them, by a whole warpgroup; `rank` of this thread in it. Asynchronous.
  static CERMET_DEVICE void copy_columns(const epilogue::Operand* extra, const int32_t* column_sums, char* columns,
                                         int rank, int n, int group) {
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      if constexpr (Plan::of_columns(I))
        copy_column_values(columns + BlockN * Plan::before(I),
                           static_cast<const Element<E::extra[I].dtype>*>(extra[I].data) + group * extra[I].group, rank,
                           n);
    });
    if constexpr (E::column_sums) copy_column_values(columns + BlockN * Plan::before(E::extras), column_sums, rank, n);
  }

  /// The rows' values to registers; lines of what has a value for each element to the L2.
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
      if constexpr (x.extent == epilogue::Extent::element && I != Plan::in_staging) {
        constexpr int line = 128 / epilogue::bytes_of(x.dtype), lines = BlockN / line > 0 ? BlockN / line : 1;
        for (int i = lane(); i < 16 * lines; i += 32) {
          const int r = row + i / lines, column = n + i % lines * line;
          if (r < rows_end && column < N)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(epilogue::address_of<x>(extra[I], r, column, group)));
        }
      }
    });
  }

  /// 16 rows of the extra in staging, when what went out from there has left it. Asynchronous.
  CERMET_DEVICE void copy_to_staging(char* staging) const {
    if constexpr (Plan::in_staging >= 0) {
      constexpr epilogue::Extra x = E::extra[Plan::in_staging];
      constexpr int units = BlockN / 8, piece_units = 8;
      ptx::bulk_wait_read<0>();
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 16 * units; i += 32) {
        const int at = i + lane(), r = at / units, unit = at % units, column = n + unit * 8;
        const bool exists = row + r < rows_end && column < N;
        const auto* const from =
            epilogue::address_of<x>(extra[Plan::in_staging], exists ? row + r : row, exists ? column : n, group);
        ptx::cp_async<16>(staging + unit / piece_units * 16 * 128 + swizzled(r, unit % piece_units), from,
                          exists ? 16 : 0);
      }
      ptx::cp_async_commit();
    }
  }

  // ---- After the products

  /// Operands of the load_columns results from `column` on that come from global memory.
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
  /// Fragments of 16 columns of the extra in staging, from an address as stmatrix takes it.
  CERMET_DEVICE void load_staged(const char* at) {
    if constexpr (Plan::in_staging >= 0) ptx::ldmatrix_x4(staged, at);
  }

  /// Extra I at a column and the next, where it varies along them; `j`: which 8 of load_columns columns.
  template <int I>
  CERMET_DEVICE void extra_pair(int h, int column, int j, uint32_t& x, uint32_t& y) const {
    using T = Element<E::extra[I].dtype>;
    if constexpr (Plan::of_columns(I)) {
      const auto two = column_pair<T>(Plan::before(I), column);
      x = epilogue::bits_of(two[0]), y = epilogue::bits_of(two[1]);
    } else if constexpr (I == Plan::in_staging) {
      const uint32_t two = staged[j % 2 * 2 + h];
      x = epilogue::bits_of(T{static_cast<uint16_t>(two)}), y = epilogue::bits_of(T{static_cast<uint16_t>(two >> 16)});
    } else if constexpr (Plan::from_memory(I)) {
      x = loaded[Plan::memory_slots(I)][j][h][0], y = loaded[Plan::memory_slots(I)][j][h][1];
    }
  }
  template <class T>
  CERMET_DEVICE Vector<T, 2> column_pair(int before, int column) const {
    return *reinterpret_cast<const Vector<T, 2>*>(columns + BlockN * before + column * static_cast<int>(sizeof(T)));
  }

  CERMET_DEVICE auto value(int at, const Values& x, [[maybe_unused]] int32_t column_sum) const {
    if constexpr (Parts == 2) return E::value(acc[0][at], acc[1][at], x);
    else if constexpr (E::column_sums) return E::value(acc[0][at], column_sum, x);
    else return E::value(acc[0][at], x);
  }

  /// Results at a column and the next of row 8 * h + lane / 4: at = 4 * j + 2 * h among the accumulators.
  CERMET_DEVICE auto pair(int at, int h, int column, int j) const {
    Values x = row_values[h], y = x;
    for_constants<E::extras>([&]<int I>(Constant<I>) { extra_pair<I>(h, column, j, x.bits[I], y.bits[I]); });
    Vector<int32_t, 2> sums = {};
    if constexpr (E::column_sums) sums = column_pair<int32_t>(Plan::before(E::extras), column);
    using Value = decltype(value(at, x, 0));
    return Vector<Value, 2>{value(at, x, sums[0]), value(at + 1, y, sums[1])};
  }
  /// The same of 16 bits, packed.
  CERMET_DEVICE uint32_t packed_pair(int at, int h, int column, int j) const {
    if constexpr (E::pairs && Parts == 1) {
      epilogue::Pairs<E::extras> x;
      for_constants<E::extras>([&]<int I>(Constant<I>) {
        constexpr bool halves = E::extra[I].dtype == DType::f16;
        if constexpr (halves && Plan::of_columns(I)) {
          x.halves[I] = *reinterpret_cast<const uint32_t*>(columns + BlockN * Plan::before(I) + column * 2);
        } else if constexpr (halves && I == Plan::in_staging) {
          x.halves[I] = staged[j % 2 * 2 + h];
        } else {
          uint32_t low = row_values[h].bits[I], high = low;
          extra_pair<I>(h, column, j, low, high);
          if constexpr (halves) x.halves[I] = pack_pair<f16>(__uint_as_float(low), __uint_as_float(high));
          else x.low.bits[I] = low, x.high.bits[I] = high;
        }
      });
      return E::pair(static_cast<float>(acc[0][at]), static_cast<float>(acc[0][at + 1]), x);
    } else {
      const auto v = pair(at, h, column, j);
      return pack_pair<Element<E::out>>(v[0], v[1]);
    }
  }

  /// `Columns` columns from `First` on to shared memory. address(row, byte): of 16 bytes of the warp's rows there.
  template <int First, int Columns, class Address>
  CERMET_DEVICE void write_fragments(Address&& address) {
    using Out = Element<E::out>;
    constexpr int bytes = sizeof(Out);
    static_assert(Columns % 16 == 0);  // fewer than load_columns: what is loaded past them is not used
    const int lane = static_cast<int>(lane_index()), t = lane % 4;
#pragma unroll
    for (int j = 0; j < Columns / 8; j += 2) {
      if (j % 4 == 0) load(First + 8 * j);
      if constexpr (bytes == 2) {
        char* const to = address(lane % 16, (8 * j + lane / 16 * 8) * bytes);
        load_staged(to);
        uint32_t quad[4];  // 8 x 8 matrices: upper and lower rows of columns 8 j, then of 8 (j + 1)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = First + 8 * (j + i / 2), h = i % 2;
          quad[i] = packed_pair(column / 2 + 2 * h, h, column + 2 * t, (j + i / 2) % 4);
        }
        ptx::stmatrix_x4(to, quad);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int at = j + i / 2, h = i % 2, column = First + 8 * at;
          const auto v = pair(column / 2 + 2 * h, h, column + 2 * t, at % 4);
          Vector<Out, 2> two;
          two[0] = epilogue::rounded<Out>(v[0]), two[1] = epilogue::rounded<Out>(v[1]);
          const int byte = (8 * at + 2 * t) * bytes;
          *reinterpret_cast<Vector<Out, 2>*>(address(8 * h + lane / 4, byte / 16 * 16) + byte % 16) = two;
        }
      }
    }
  }

  /// Sends the rows out with bulk tensor copies, in pieces of [16, 128 bytes], swizzled, 1024-byte aligned, `Pieces` at
  /// a time: staging is (Pieces, 16, 128 bytes), the warp's own. `map` has boxes of a piece; what lies outside its
  /// tensor is left out. wait_for_stores() before the memory is used otherwise.
  template <int Pieces>
  CERMET_DEVICE void store_bulk(char* staging, const TensorMapBytes* map) {
    constexpr int width = 128 / sizeof(Element<E::out>);
    static_assert(BlockN % width == 0);
    for_constants<BlockN / width>([&]<int I>(Constant<I>) {
      char* const base = staging + I % Pieces * 16 * 128;
      if constexpr (I % Pieces == 0) {
        ptx::bulk_wait_read<0>();
        __syncwarp();
      }
      write_fragments<I * width, width>([&](int r, int byte) { return base + swizzled(r, byte / 16); });
      ptx::fence_async_shared();
      __syncwarp();
      if (lane_index() == 0) ptx::tma_store_2d(base, map, n + I * width, row);
      ptx::bulk_commit();
    });
  }

  /// As store_bulk with ordinary stores: rows and columns past the limits are left out; a row has whole 16 bytes.
  /// Staging is (16, Pitch bytes), Chunk columns at a time. `y`: the first result.
  template <int Chunk, int Pitch>
  CERMET_DEVICE void store_rows(char* staging, Element<E::out>* y, int64_t y_stride) {
    constexpr int bytes = sizeof(Element<E::out>), lanes = Chunk * bytes / 16,
                  step = 32 / lanes;  // lanes that write a row, rows that the warp writes at a time
    const int rows = rows_end - row, columns = N - n;
    const int lane = static_cast<int>(lane_index()), first = lane % lanes * (16 / bytes);
    for_constants<BlockN / Chunk>([&]<int I>(Constant<I>) {
      __syncwarp();
      write_fragments<I * Chunk, Chunk>([&](int r, int byte) { return staging + r * Pitch + byte; });
      __syncwarp();
#pragma unroll
      for (int r = 0; r < 16; r += step) {
        const int row = r + lane / lanes, column = I * Chunk + first;
        const auto unit = *reinterpret_cast<const Vector<uint32_t, 4>*>(staging + row * Pitch + first * bytes);
        if ((step <= 16 || row < 16) && row < rows && column < columns)
          *reinterpret_cast<Vector<uint32_t, 4>*>(y + row * y_stride + column) = unit;
      }
    });
  }
  /// Until the rows that this thread sent with store_bulk have left shared memory.
  static CERMET_DEVICE void wait_for_stores() { ptx::bulk_wait_read<0>(); }
};

}  // namespace cermet::gemm
#endif

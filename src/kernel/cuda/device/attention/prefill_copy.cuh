// Rows of queries, keys and values on their way to tiles in shared memory, 16 bytes for each thread at a time.
#pragma once

#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/tile_rows.cuh"
#include "kernel/cuda/device/ptx/cp_async.cuh"

namespace cermet::attention {

/// Copies rows of `Size` elements; address(r) is null for rows that become zeros. `any`: a legal address.
template <class Rows, int Size, int Count, class Team, class Address>
CERMET_DEVICE void copy_rows(char* to, const void* any, Address&& address) {
  constexpr int chunks = Size / 8;
#pragma unroll 4
  for (int i = static_cast<int>(Team::rank()); i < Count * chunks; i += Team::size) {
    const int r = i / chunks, chunk = i % chunks;
    const auto* from = address(r);
    ptx::cp_async<16>(to + Rows::offset(r, chunk), from ? static_cast<const void*>(from + 8 * chunk) : any,
                      from ? 16 : 0);
  }
}

/// Copies queries of type From as elements of T, or, with Split, as the sum of two, the second part of all rows after
/// the first.
template <class T, bool Split, class From, class Rows, int Size, int Count, class Team, class Address>
CERMET_DEVICE void copy_queries(char* to, const void* any, Address&& address) {
  if constexpr (!Split) {
    copy_rows<Rows, Size, Count, Team>(to, any, address);
  } else {
    constexpr int chunks = Size / 8, step = min_of(8, per_16_bytes<From>);
#pragma unroll 2
    for (int i = static_cast<int>(Team::rank()); i < Count * chunks; i += Team::size) {
      const int r = i / chunks, chunk = i % chunks;
      const From* from = address(r);
      Vector<uint32_t, 4> main{}, rest{};
      if (from) {
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; e += step) {
          const auto part = *reinterpret_cast<const Vector<From, step>*>(from + 8 * chunk + e);
#pragma unroll
          for (int j = 0; j < step; ++j) x[e + j] = to_float(part[j]);
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          main[e] = pack(x[2 * e], x[2 * e + 1], T{});
          rest[e] = query_rest<T>(x[2 * e], x[2 * e + 1], main[e]);
        }
      }
      *reinterpret_cast<Vector<uint32_t, 4>*>(to + Rows::offset(r, chunk)) = main;
      *reinterpret_cast<Vector<uint32_t, 4>*>(to + Rows::bytes + Rows::offset(r, chunk)) = rest;
    }
  }
}

/// How a team copies `Count` rows of `Size` elements of a sequence and head. `Block`: tokens of a page, 0 where keys
/// are not paged. `Bytes`: of an element.
template <int Size, int Count, class Team, int Block, int Bytes = 2>
struct KeyCopy {
  static constexpr int chunks = Size * Bytes / 16, passes = static_cast<int>(div_up(Count * chunks, Team::size)),
                       step = Team::size / chunks;
  static constexpr bool even =
      Team::size % chunks == 0 && Count % step == 0;  ///< a thread has the same chunk of rows that are `step` apart
  static CERMET_DEVICE int row(int pass) {
    const int thread = static_cast<int>(Team::rank());
    return even ? thread / chunks + pass * step : (pass * Team::size + thread) / chunks;
  }
  static CERMET_DEVICE int chunk(int pass) {
    const int thread = static_cast<int>(Team::rank());
    return even ? thread % chunks : (pass * Team::size + thread) % chunks;
  }

  /// Pages of this thread's rows in passes `base` on, of keys first .. first + Count (0 where they are not paged); -1
  /// for rows that become zeros: outside `seen`, because a weight of 0 does not silence a NaN, and of a page that does
  /// not exist, which `broken` reports.
  template <int Passes>
  static CERMET_DEVICE void find_pages(const Params& p, const Sequence& s, int first, Visible seen,
                                       int (&pages)[Passes], bool& broken, int base = 0) {
    const auto wanted = [&](int i) {
      const int key = first + row(base + i);
      return key >= seen.first && key < seen.last && (is_whole<Passes> || row(base + i) < Count);
    };
#pragma unroll
    for (int i = 0; i < Passes; ++i) {
      pages[i] = wanted(i) ? 0 : -1;
      if constexpr (Block != 0) {
        if (wanted(i)) pages[i] = p.block_tables[s.index * p.table_stride + (first + row(base + i)) / Block];
      }
    }
    if constexpr (Block != 0) {
#pragma unroll
      for (int i = 0; i < Passes; ++i) {
        const bool exists = pages[i] >= 0 && pages[i] < p.blocks;
        broken |= wanted(i) && !exists;
        if (!exists) pages[i] = -1;
      }
    }
  }

  template <class Rows, int Passes>
  static CERMET_DEVICE void copy(const KeyList& list, const Sequence& s, int head, int first,
                                 const int (&pages)[Passes], char* to, int base = 0) {
    const char* data = static_cast<const char*>(list.data) +
                       Bytes * (head * list.head_stride + (Block == 0 ? s.key_begin * list.row_stride : 0));
#pragma unroll
    for (int i = 0; i < Passes; ++i) {
      const int r = row(base + i), key = first + r;
      if (!is_whole<Passes> && r >= Count) continue;
      const int64_t offset = Block != 0 ? pages[i] * list.page_stride + key % (Block != 0 ? Block : 1) * list.row_stride
                                        : key * list.row_stride;
      ptx::cp_async<16>(to + Rows::offset(r, chunk(base + i)),
                        pages[i] >= 0 ? data + Bytes * offset + 16 * chunk(base + i) : data, pages[i] >= 0 ? 16 : 0);
    }
  }

 private:
  /// Whether all rows of so many passes at a time are rows of the tile.
  template <int Passes>
  static constexpr bool is_whole = even&& passes % Passes == 0;
};

/// Copies them, pages and all.
template <class Rows, int Size, int Count, class Team, int Block>
CERMET_DEVICE void copy_keys(const Params& p, const KeyList& list, const Sequence& s, int head, int first, Visible seen,
                             char* to, bool& broken) {
  using Copy = KeyCopy<Size, Count, Team, Block>;
  int pages[Copy::passes];
  Copy::find_pages(p, s, first, seen, pages, broken);
  Copy::template copy<Rows>(list, s, head, first, pages, to);
}

}  // namespace cermet::attention

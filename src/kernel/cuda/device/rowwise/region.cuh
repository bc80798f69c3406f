// Row kernels: sums and maxima of rows with the elementwise operators before and after them, in one pass over memory.
//
// Problem        y[row, c] = f(x[row, c], w[c], s[row], r0, r1, r2) for every row and column c, where each r is a sum,
//                a mean, a maximum or an inverse root of a mean over c of g(x[row, c], ..), in float32.
//                rms_norm: r0 = 1 / sqrt(mean of x[row, c]^2 + eps), y[row, c] = x[row, c] * r0 * w[c].
//                x, y: [.., columns], whose leading dimensions are walked together as rows (RowOperand).
// Work item      lanes <= 32: threads / lanes rows. Otherwise one row, or one block's part of a cluster's row.
// Layout         RowLayout: `lanes` threads in each of `cluster` blocks share a row. Lane l has its vectors l,
//                l + lanes * cluster, .. of `width` elements: RowPartition, [vectors][width] of a thread.
//                  many short rows   1 to 32 lanes, several rows in a block of 128 threads
//                  many long rows    a block for each row, several vectors for each thread
//                  few long rows     two vectors for each thread, or a cluster for each row
//                  any rows          one element at a time; the row is read again for each pass
// Registers      RawRow: [vectors] as they are in memory, all loaded before the first use. 16-bit elements stay so,
//                and each pass converts them again (LazyRow); others become float32 (MaterializedRow).
// Shared memory  row_shared_bytes, of which RowReducer uses 1560:
//                     0  slots[3 reductions][64 warps] of two float32
//                  1536  mbarriers[3], of clusters, whose blocks store their results in each other's slots
// Warps          All do the same.
// Phases         1. RowCoord, RowPartition: which row, and which of its elements
//                2. load: RawRow of the row's source, ColumnParameter of w, number_of of s
//                3. for each reduction: the thread's elements into RowPartials; RowReducer combines the lanes of a warp
//                   by shuffles and the warps through slots, with one barrier; every lane has the result
//                4. store the results, or their scale and quantized values (quantized_row.cuh)
// The body that goes through the phases is generated for each region: kernel/cuda/rowwise/row_source.cpp prints it, and
// tests/kernel_cuda/golden/rms_norm.cu shows that of rms_norm.
#pragma once

#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/cache_policy.cuh"
#include "kernel/cuda/device/rowwise/quantized_row.cuh"

namespace cermet {

// ---- Phase 1: which row, which of its elements ----

/// The row of a work item and of this thread. Threads beyond the last row take part in the reductions of their warp and
/// store nothing.
template <class Partition>
struct RowCoord {
  uint32_t number;
  bool active;
  RowIndex index;

  CERMET_DEVICE RowCoord(uint32_t item, const RowDims& dims, uint32_t rows) {
    constexpr uint32_t rows_per_block = Partition::rows_per_block;
    number = rows_per_block == 1 ? item / Partition::cluster
                                 : item * rows_per_block + Partition::Team::rank() / Partition::lanes;
    active = (rows_per_block == 1 && !Partition::uniform) || number < rows;
    number = active ? number : rows - 1;
    index = Partition::uniform ? RowIndex{{number, 0, 0}} : row_index(dims, number);
  }
  /// Element 0 of this thread's row.
  template <class T>
  CERMET_DEVICE T* of(const RowOperand& operand) const {
    return row_of<T, Partition::uniform>(operand, index);
  }
};

/// Which elements of a row a thread of a team has: one of every lanes * cluster vectors.
template <RowLayout L, class Team_>
struct RowPartition {
  using Team = Team_;
  static constexpr bool in_registers = L.columns > 0, preloads_columns = in_registers && L.preload_columns,
                        keeps_float32 = L.keep_float32, uniform = L.uniform;
  static constexpr int lanes = L.lanes, width = L.width, cluster = L.cluster, fold = L.fold,
                       rows_per_block = L.threads / L.lanes, step = L.lanes * L.cluster * L.width;
  static constexpr int vectors = in_registers ? static_cast<int>(div_up(L.columns, step)) : 1;  ///< of a thread
  static_assert(fold == 1 || (in_registers && lanes % 32 == 0 && cluster == 1));

  int lane, length;

  CERMET_DEVICE RowPartition(int run_time_length)
      : lane(static_cast<int>(Team::rank() % static_cast<uint32_t>(lanes))),
        length(in_registers ? L.columns : run_time_length) {
    if constexpr (cluster > 1) lane += static_cast<int>(Team::cluster_rank()) * lanes;
  }
  /// First column of the thread's vector i. In 64 bits, so that its vectors are constants away from its first.
  CERMET_DEVICE int64_t column(int i) const { return int64_t{lane} * width + i * step; }
  /// Whether vector i lies in the row; known to the compiler for all but the last.
  CERMET_DEVICE bool inside(int i) const { return (i + 1) * step <= L.columns || column(i) < L.columns; }
};

// ---- Phase 2: load ----

/// Keeps the compiler from knowing where words come from.
template <int Count>
CERMET_DEVICE void hide(Words<Count>& words) {
#pragma unroll
  for (uint32_t& word : words.at) asm volatile("" : "+r"(word));
}

/// The vectors that load(i) loads of those inside the row. Where rows are few, loads are under a condition that always
/// holds, and their words hidden: the assembler moves others to their uses, after reductions, to save registers that
/// are not needed, and each then waits for memory on its own.
template <class Partition, class Raw, class Load>
CERMET_DEVICE void load_now(const Partition& partition, [[maybe_unused]] bool active, Raw (&raw)[Partition::vectors],
                            Load load) {
  if constexpr (Partition::uniform && sizeof(Raw) % 4 == 0) {
    Words<sizeof(Raw) / 4> words[Partition::vectors]{};
#pragma unroll
    for (int i = 0; i < Partition::vectors; ++i)
      if (active && partition.inside(i)) words[i] = __builtin_bit_cast(Words<sizeof(Raw) / 4>, load(i));
#pragma unroll
    for (int i = 0; i < Partition::vectors; ++i) {
      hide(words[i]);
      raw[i] = __builtin_bit_cast(Raw, words[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < Partition::vectors; ++i)
      if (partition.inside(i)) raw[i] = load(i);
  }
}

/// What a thread loads of a row that registers hold: every load is issued before the first use.
/// Source: `Raw fetch(column)` loads, `values(raw, column, v)` converts.
template <class Partition, class Source>
struct RawRow {
  using Raw = typename Source::Raw;
  /// Whether the elements take fewer registers than their values, so that they are converted again rather than kept.
  static constexpr bool narrow =
      Partition::in_registers && !Partition::keeps_float32 && sizeof(Raw) < Partition::width * sizeof(float);
  Raw raw[Partition::vectors];  // [vectors], each of width elements
  /// Active: whether there is a row.
  CERMET_DEVICE RawRow(const Partition& partition, const Source& source, [[maybe_unused]] bool active) {
    if constexpr (Partition::in_registers)
      load_now(partition, active, raw, [&](int i) { return source.fetch(partition.column(i)); });
  }
  /// The largest magnitude of the thread's elements, which are of a type that pairs up; NaN where one is.
  CERMET_DEVICE float magnitude(const Partition& partition) const {
    using T = typename Source::Plain;
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < Partition::vectors; ++i) {
      if (!partition.inside(i)) continue;
      const auto words = __builtin_bit_cast(Words<sizeof(Raw) / 4>, raw[i]);
#pragma unroll
      for (const uint32_t word : words.at) most = raise_to_magnitudes<T>(most, word);
    }
    struct Pair {
      T low, high;
    };
    const auto pair = __builtin_bit_cast(Pair, most);
    return __uint_as_float(max_of(__float_as_uint(to_float(pair.low)), __float_as_uint(to_float(pair.high))));
  }
  /// Between two passes: hides from the compiler that the second converts the same elements as the first, or it would
  /// keep the values of all.
  CERMET_DEVICE void forget_values() {
    if constexpr (narrow && Partition::vectors > 1 && sizeof(Raw) % 4 == 0) {
#pragma unroll
      for (int i = 0; i < Partition::vectors; ++i) {
        auto words = __builtin_bit_cast(Words<sizeof(Raw) / 4>, raw[i]);
        hide(words);
        raw[i] = __builtin_bit_cast(Raw, words);
      }
    }
  }
};

/// A parameter with a value for each column, w[columns]. RowLayout::preload_columns: loaded together with the row.
template <class T, class Partition>
struct ColumnParameter {
  const T* data;
  Vector<T, Partition::width> raw[Partition::preloads_columns ? Partition::vectors : 1];  // [vectors][width]

  CERMET_DEVICE ColumnParameter(const Partition& partition, const void* memory, [[maybe_unused]] bool active)
      : data(static_cast<const T*>(memory)) {
    if constexpr (Partition::preloads_columns)
      load_now(partition, active, raw,
               [&](int i) { return load_vector<Partition::width>(data + partition.column(i)); });
  }
  /// Elements [column, column + width), which are vector i of this thread.
  CERMET_DEVICE void get(int i, int64_t column, float (&v)[Partition::width]) const {
    if constexpr (Partition::preloads_columns) to_floats(raw[i], v);
    else to_floats(load_vector<Partition::width>(data + column), v);
  }
};

/// The elements of a row as they are.
template <class T, int Width>
struct PlainSource {
  using Raw = Vector<T, Width>;
  using Plain = T;  ///< type of the elements, which are the values
  const T* x;       // [length]

  CERMET_DEVICE Raw fetch(int64_t column) const { return load_vector<Width>(x + column); }
  CERMET_DEVICE void values(const Raw& raw, int, float (&v)[Width]) const { to_floats(raw, v); }
};

// ---- Phase 3: the row as each pass sees it ----

/// A row as float32 in registers.
template <class Partition_>
struct MaterializedRow {
  using Partition = Partition_;
  static constexpr int width = Partition::width;
  static constexpr bool plain = false;
  Partition partition;
  float value[Partition::vectors][Partition::width];  // [vectors][width]

  CERMET_DEVICE void forget_values() {}
  CERMET_DEVICE void load(int i, int, float (&v)[width]) const {
#pragma unroll
    for (int k = 0; k < width; ++k) v[k] = value[i][k];
  }
  /// Calls body(vector number, column, values) for each of the thread's vectors.
  template <class Body>
  CERMET_DEVICE void each(Body&& body) {
#pragma unroll
    for (int i = 0; i < Partition::vectors; ++i)
      if (partition.inside(i)) body(i, partition.column(i), value[i]);
  }
  /// The row with its values changed by body(vector number, column, values).
  template <class Body>
  CERMET_DEVICE MaterializedRow& then(Body body) {
    each(body);
    return *this;
  }
};

/// A row that is converted again for each pass, from registers that hold its narrow elements, or from memory. Load:
/// load(vector number, column, v).
template <class Partition_, class Load, class Raw, bool Plain = false>
struct LazyRow {
  using Partition = Partition_;
  static constexpr int width = Partition::width;
  static constexpr bool plain = Plain;  ///< its values are the elements that `raw` holds
  Partition partition;
  Load load;
  Raw* raw = nullptr;

  /// Between two passes over the row; see RawRow.
  CERMET_DEVICE void forget_values() {
    if constexpr (Partition::in_registers) raw->forget_values();
  }
  template <class Body>
  CERMET_DEVICE void each(Body&& body) {
    if constexpr (Partition::in_registers) {
#pragma unroll
      for (int i = 0; i < Partition::vectors; ++i) {
        if (!partition.inside(i)) continue;
        float v[width];
        load(i, partition.column(i), v);
        body(i, partition.column(i), v);
      }
    } else {
      const auto vector = [&](int64_t column) {
        float v[width];
        load(0, column, v);
        body(0, column, v);
      };
      if constexpr (Partition::cluster == 1) {
        for (int64_t column = partition.lane * width; column < partition.length; column += Partition::lanes * width)
          vector(column);
      } else {
#pragma unroll 4
        for (int64_t column = partition.lane * width; column < partition.length;
             column += Partition::lanes * Partition::cluster * width)
          vector(column);
      }
    }
  }
  template <class Body>
  CERMET_DEVICE auto then(Body body) {
    const auto composed = [load = load, body](int i, int64_t column, float(&v)[width]) {
      load(i, column, v);
      body(i, column, v);
    };
    return LazyRow<Partition, decltype(composed), Raw>{partition, composed, raw};
  }
};

/// The row of a source; `raw` outlives it.
template <class Partition, class Source>
CERMET_DEVICE auto make_row(const Partition& partition, const Source& source, RawRow<Partition, Source>& raw) {
  if constexpr (!Partition::in_registers) {
    const auto load = [source](int, int64_t column, float(&v)[Partition::width]) {
      source.values(source.fetch(column), column, v);
    };
    return LazyRow<Partition, decltype(load), RawRow<Partition, Source>>{partition, load, &raw};
  } else if constexpr (RawRow<Partition, Source>::narrow) {
    const auto load = [source, &raw](int i, int64_t column, float(&v)[Partition::width]) {
      source.values(raw.raw[i], column, v);
    };
    constexpr bool plain = [] {
      if constexpr (requires { typename Source::Plain; }) return pairs_up<typename Source::Plain>;
      else return false;
    }();
    return LazyRow<Partition, decltype(load), RawRow<Partition, Source>, plain>{partition, load, &raw};
  } else {
    MaterializedRow<Partition> row{partition};
    row.each([&](int i, int64_t column, float(&v)[Partition::width]) { source.values(raw.raw[i], column, v); });
    return row;
  }
}

}  // namespace cermet

namespace cermet::row_region {

// ---- What generated bodies call besides ----

/// A vector of an operand whose memory is overwritten by the same thread: of many rows, the L2 should keep it until
/// then (after that it is like any other).
template <RowLayout L, class T>
CERMET_DEVICE Vector<T, L.width> load_overwritten(const T* from) {
  if constexpr (L.columns > 0 && !L.uniform && sizeof(Vector<T, L.width>) == 16) {
    Words<4> words;
    ptx::load_16(from, ptx::evict_last_policy(), words.at);
    return __builtin_bit_cast(Vector<T, L.width>, words);
  } else {
    return load_vector<L.width>(from);
  }
}

/// Neighbouring pairs of elements, of which each is one of a row.
template <class T, int Width>
struct PairsOfElements {
  Vector<T, Width> first, second;
  CERMET_DEVICE T at(int i) const { return i < Width ? first[i % Width] : second[i % Width]; }
};
template <int Width, class T>
CERMET_DEVICE PairsOfElements<T, Width> load_pairs(const T* from) {
  return {load_vector<Width>(from), load_vector<Width>(from + Width)};
}

/// One number for all columns of a row, or for all rows: `T` at the start of the row.
template <class T, class Coord>
CERMET_DEVICE float number_of(const RowOperand& operand, const Coord& coord) {
  return to_float(*coord.template of<const T>(operand));
}

/// Body, generated: `template <RowLayout, class Team> run(params, item, smem)`; of the parameters it reads what Params
/// has, which others may give, too.
template <class Body, RowLayout L>
struct Task {
  using Params = row_region::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    Body::template run<L, Team>(p, item, smem);
  }
};

}  // namespace cermet::row_region

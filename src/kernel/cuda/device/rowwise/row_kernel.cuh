// The engine of row kernels: a row of float32 values spread over the lanes that share it, held in registers or read
// again for each pass.
#pragma once

#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/cache_policy.cuh"
#include "kernel/cuda/device/rowwise/quantized_row.cuh"

namespace cermet {

/// How rows lie over threads. At most 32 lanes: several rows in a block. More: all threads of a block, or of a cluster
/// of blocks.
struct RowShape {
  int columns = 0;  ///< held in registers; 0: known at run time only, and read again for each pass
  int lanes = 256;  ///< of one block
  int threads = 256;
  int width = 1;  ///< neighbouring elements of a vector; divides columns and the length
  int cluster = 1;
  int fold = 1;  ///< lanes that each stands for: what is added up has the order, and the bits, of `fold` times as many
  bool early =
      true;  ///< parameters along the rows are loaded together with the row: available sooner, in more registers
  bool keep = false;  ///< float32 values are kept between passes, where narrow elements could be converted again: fewer
                      ///< instructions, more registers
  bool uniform = false;  ///< there is one leading dimension, so that rows lie uniformly apart
};

/// Which elements of a row a thread of a team has: one of every lanes * cluster vectors.
template <RowShape S, class Team_>
struct RowMap {
  using Team = Team_;
  static constexpr bool held = S.columns > 0;
  static constexpr bool early = held && S.early, keep = S.keep, uniform = S.uniform;
  static constexpr int lanes = S.lanes, width = S.width, cluster = S.cluster, fold = S.fold,
                       rows_per_block = S.threads / S.lanes;
  static_assert(fold == 1 || (held && lanes % 32 == 0 && cluster == 1));
  static constexpr int vectors = held ? static_cast<int>(div_up(S.columns, S.lanes* S.cluster* S.width)) : 1;

  int lane, length;

  CERMET_DEVICE RowMap(int run_time_length)
      : lane(static_cast<int>(Team::rank() % static_cast<uint32_t>(S.lanes))),
        length(held ? S.columns : run_time_length) {
    if constexpr (cluster > 1) lane += static_cast<int>(Team::cluster_rank()) * S.lanes;
  }
  /// In 64 bits, so that the vectors of a thread are constants away from its first.
  CERMET_DEVICE int64_t column(int i) const { return int64_t{lane} * S.width + i * S.lanes * S.cluster * S.width; }
  /// Whether vector i lies in the row; known to the compiler for all but the last.
  CERMET_DEVICE bool inside(int i) const {
    return (i + 1) * S.lanes * S.cluster * S.width <= S.columns || column(i) < S.columns;
  }
};

/// The row of a work item and of this thread. Threads beyond the last row take part in the reductions of their warp and
/// store nothing.
template <class Map>
struct RowPlace {
  uint32_t number;
  bool active;
  RowIndex index;

  CERMET_DEVICE RowPlace(uint32_t item, const RowDims& dims, uint32_t rows) {
    number =
        Map::rows_per_block == 1 ? item / Map::cluster : item * Map::rows_per_block + Map::Team::rank() / Map::lanes;
    active = (Map::rows_per_block == 1 && !Map::uniform) || number < rows;
    number = active ? number : rows - 1;
    index = Map::uniform ? RowIndex{{number, 0, 0}} : row_index(dims, number);
  }
  /// Element 0 of this thread's row.
  template <class T>
  CERMET_DEVICE T* of(const RowOperand& operand) const {
    return row_of<T, Map::uniform>(operand, index);
  }
};

/// What this thread holds of the row of a work item.
template <class Map>
struct RowPart : RowPlace<Map> {
  Map map;

  template <class Params>
  CERMET_DEVICE RowPart(uint32_t item, const Params& p) : RowPlace<Map>(item, p.dims, p.rows), map(p.length) {}
};

/// A row as float32 in registers.
template <class Map_>
struct HeldRow {
  using Map = Map_;
  static constexpr int width = Map::width;
  static constexpr bool plain = false;
  Map map;
  float value[Map::vectors][Map::width];

  CERMET_DEVICE void forget_values() {}
  CERMET_DEVICE void load(int i, int, float (&v)[width]) const {
#pragma unroll
    for (int k = 0; k < width; ++k) v[k] = value[i][k];
  }
  /// Calls body(vector number, column, values) for each of the thread's vectors.
  template <class Body>
  CERMET_DEVICE void each(Body&& body) {
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i)
      if (map.inside(i)) body(i, map.column(i), value[i]);
  }
  /// The row with its values changed by body(vector number, column, values).
  template <class Body>
  CERMET_DEVICE HeldRow& then(Body body) {
    each(body);
    return *this;
  }
};

/// A row that is converted again for each pass, from registers that hold its narrow elements, or from memory. Load:
/// load(vector number, column, v).
template <class Map_, class Load, class Raw, bool Plain = false>
struct LazyRow {
  using Map = Map_;
  static constexpr int width = Map::width;
  static constexpr bool plain = Plain;  ///< its values are the elements that `raw` holds
  Map map;
  Load load;
  Raw* raw = nullptr;

  /// Between two passes over the row; see RawRow.
  CERMET_DEVICE void forget_values() {
    if constexpr (Map::held) raw->forget_values();
  }
  template <class Body>
  CERMET_DEVICE void each(Body&& body) {
    if constexpr (Map::held) {
#pragma unroll
      for (int i = 0; i < Map::vectors; ++i) {
        if (!map.inside(i)) continue;
        float v[width];
        load(i, map.column(i), v);
        body(i, map.column(i), v);
      }
    } else {
      const auto vector = [&](int64_t column) {
        float v[width];
        load(0, column, v);
        body(0, column, v);
      };
      if constexpr (Map::cluster == 1) {
        for (int64_t column = map.lane * width; column < map.length; column += Map::lanes * width) vector(column);
      } else {
#pragma unroll 4
        for (int64_t column = map.lane * width; column < map.length; column += Map::lanes * Map::cluster * width)
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
    return LazyRow<Map, decltype(composed), Raw>{map, composed, raw};
  }
};

/// Keeps the compiler from knowing where words come from.
template <int Count>
CERMET_DEVICE void hide(Words<Count>& words) {
#pragma unroll
  for (uint32_t& word : words.at) asm volatile("" : "+r"(word));
}

/// The vectors that load(i) loads of those inside the row. Where rows are few, loads are under a condition that always
/// holds, and their words hidden: the assembler moves others to their uses, behind reductions, to save registers that
/// are not needed, and each then waits for memory on its own.
template <class Map, class Raw, class Load>
CERMET_DEVICE void load_now(const Map& map, [[maybe_unused]] bool active, Raw (&raw)[Map::vectors], Load load) {
  if constexpr (Map::uniform && sizeof(Raw) % 4 == 0) {
    Words<sizeof(Raw) / 4> words[Map::vectors]{};
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i)
      if (active && map.inside(i)) words[i] = __builtin_bit_cast(Words<sizeof(Raw) / 4>, load(i));
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i) {
      hide(words[i]);
      raw[i] = __builtin_bit_cast(Raw, words[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i)
      if (map.inside(i)) raw[i] = load(i);
  }
}

/// What a thread loads of a row that is held: every load is issued before the first use.
/// Source: `Raw fetch(column)` loads, `values(raw, column, v)` converts.
template <class Map, class Source>
struct RawRow {
  using Raw = typename Source::Raw;
  /// Whether the elements take fewer registers than their values, so that they are converted again rather than kept.
  static constexpr bool narrow = Map::held && !Map::keep && sizeof(Raw) < Map::width * sizeof(float);
  Raw raw[Map::vectors];
  /// Active: whether there is a row.
  CERMET_DEVICE RawRow(const Map& map, const Source& source, [[maybe_unused]] bool active) {
    if constexpr (Map::held) load_now(map, active, raw, [&](int i) { return source.fetch(map.column(i)); });
  }
  /// The largest magnitude of the thread's elements, which are of a type that pairs up; NaN where one is.
  CERMET_DEVICE float magnitude(const Map& map) const {
    using T = typename Source::Plain;
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < Map::vectors; ++i) {
      if (!map.inside(i)) continue;
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
    if constexpr (narrow && Map::vectors > 1 && sizeof(Raw) % 4 == 0) {
#pragma unroll
      for (int i = 0; i < Map::vectors; ++i) {
        auto words = __builtin_bit_cast(Words<sizeof(Raw) / 4>, raw[i]);
        hide(words);
        raw[i] = __builtin_bit_cast(Raw, words);
      }
    }
  }
};

/// The row of a source; `raw` outlives it.
template <class Map, class Source>
CERMET_DEVICE auto make_row(const Map& map, const Source& source, RawRow<Map, Source>& raw) {
  if constexpr (!Map::held) {
    const auto load = [source](int, int64_t column, float(&v)[Map::width]) {
      source.values(source.fetch(column), column, v);
    };
    return LazyRow<Map, decltype(load), RawRow<Map, Source>>{map, load, &raw};
  } else if constexpr (RawRow<Map, Source>::narrow) {
    const auto load = [source, &raw](int i, int64_t column, float(&v)[Map::width]) {
      source.values(raw.raw[i], column, v);
    };
    constexpr bool plain = [] {
      if constexpr (requires { typename Source::Plain; }) return pairs_up<typename Source::Plain>;
      else return false;
    }();
    return LazyRow<Map, decltype(load), RawRow<Map, Source>, plain>{map, load, &raw};
  } else {
    HeldRow<Map> row{map};
    row.each([&](int i, int64_t column, float(&v)[Map::width]) { source.values(raw.raw[i], column, v); });
    return row;
  }
}

/// A parameter along the rows. For rows that are held it is loaded early, together with the row itself.
template <class T, class Map>
struct AlongRow {
  const T* data;
  Vector<T, Map::width> raw[Map::early ? Map::vectors : 1];

  CERMET_DEVICE AlongRow(const Map& map, const void* memory, [[maybe_unused]] bool active)
      : data(static_cast<const T*>(memory)) {
    if constexpr (Map::early)
      load_now(map, active, raw, [&](int i) { return load_vector<Map::width>(data + map.column(i)); });
  }
  /// Elements [column, column + width), which are vector i of this thread.
  CERMET_DEVICE void get(int i, int64_t column, float (&v)[Map::width]) const {
    if constexpr (Map::early) to_floats(raw[i], v);
    else to_floats(load_vector<Map::width>(data + column), v);
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

}  // namespace cermet

namespace cermet::row_region {

/// Body, generated: `template <RowShape, class Team> run(params, item, smem)`; of the parameters it reads what Params
/// has, which others may give, too.
template <class Body, RowShape S>
struct Task {
  using Params = row_region::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    Body::template run<S, Team>(p, item, smem);
  }
};

/// A vector of an operand whose memory is overwritten by the same thread: of many rows, the L2 should keep it until
/// then (after that it is like any other).
template <RowShape S, class T>
CERMET_DEVICE Vector<T, S.width> load_overwritten(const T* from) {
  if constexpr (S.columns > 0 && !S.uniform && sizeof(Vector<T, S.width>) == 16) {
    Words<4> words;
    ptx::load_16(from, ptx::evict_last_policy(), words.at);
    return __builtin_bit_cast(Vector<T, S.width>, words);
  } else {
    return load_vector<S.width>(from);
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
template <class T, class Place>
CERMET_DEVICE float number_of(const RowOperand& operand, const Place& place) {
  return to_float(*place.template of<const T>(operand));
}

}  // namespace cermet::row_region

// Rows in pieces that stay in L1: any element type in, float32 in between, any element type out. Kernels whose
// arithmetic outweighs a copy in L1 use this instead of one instantiation per combination of types. Include after
// <hwy/foreach_target.h>.
#if defined(CERMET_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_TILE_INL
#undef CERMET_TILE_INL
#else
#define CERMET_TILE_INL
#endif

#include <cstring>

#include "base/error.hpp"
#include "base/tensor.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Elements of a tile; a power of two. A few tiles of float32 fit L1 together.
inline constexpr std::size_t tile_size = 512;

/// Memory for one tile.
struct TileBuffer {
  HWY_ALIGN float data[tile_size];
};

template <class T>
HWY_INLINE void convert_from(const T* from, float* to, std::size_t n) {
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR { store_n(load_n(from + i, count), to + i, count); });
}

template <class T>
HWY_INLINE void convert_to(const float* from, T* to, std::size_t n) {
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR { store_n(load_n(from + i, count), to + i, count); });
}

/// One row to read: elements of a real type.
struct RowIn {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;

  explicit operator bool() const { return data != nullptr; }
  /// Elements [first, first + n) as float32, n <= tile_size: the row's own memory where it is float32, else converted
  /// into `buffer`.
  const float* read(std::size_t first, std::size_t n, TileBuffer& buffer) const {
    switch (dtype) {
      case DType::f32: return reinterpret_cast<const float*>(data) + first;
      case DType::bf16: convert_from(reinterpret_cast<const format::bf16*>(data) + first, buffer.data, n); break;
      case DType::f16: convert_from(reinterpret_cast<const format::f16*>(data) + first, buffer.data, n); break;
      default: assertion_failed("a real element type", __FILE_NAME__, __LINE__);
    }
    return buffer.data;
  }
};

/// One row to write. A tile is filled at tile() and made final by commit(): float32 rows are written in place, without
/// a copy.
struct RowOut {
  std::byte* data = nullptr;
  DType dtype = DType::f32;

  float* tile(std::size_t first, TileBuffer& buffer) const {
    return dtype == DType::f32 ? reinterpret_cast<float*>(data) + first : buffer.data;
  }
  void commit(std::size_t first, std::size_t n, const TileBuffer& buffer) const {
    switch (dtype) {
      case DType::f32: return;
      case DType::bf16: return convert_to(buffer.data, reinterpret_cast<format::bf16*>(data) + first, n);
      case DType::f16: return convert_to(buffer.data, reinterpret_cast<format::f16*>(data) + first, n);
      default: assertion_failed("a real element type", __FILE_NAME__, __LINE__);
    }
  }
};

/// Calls body(first, n) for the tiles of [0, length).
template <class Body>
HWY_INLINE void for_tiles(std::size_t length, Body&& body) {
  for (std::size_t first = 0; first < length; first += tile_size) body(first, HWY_MIN(tile_size, length - first));
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

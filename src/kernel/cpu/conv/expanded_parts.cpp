#include "kernel/cpu/conv/expanded_parts.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/gemm/parts.hpp"

namespace cermet::cpu {
namespace {

/// Pixels as the rows of products: blocks of two tiles, or of three at the end.
struct PixelBlocks {
  std::int64_t pixels;
  std::int64_t tiles() const { return div_up(pixels, std::int64_t{amx_rows}); }
  std::int64_t count() const { return std::max<std::int64_t>(1, tiles() / 2); }
  std::int64_t begin(std::int64_t block) const { return std::min(pixels, tiles() * block / count() * amx_rows); }
};

}  // namespace

std::int64_t packed_pixel_bytes(std::int64_t channels) { return div_up(channels, parts_steps) * parts_row_bytes; }
std::int64_t packed_panel_bytes(std::int64_t channels) { return div_up(channels, parts_steps) * parts_panel_bytes; }

void pack_pixels(const PixelRun& pixels, std::byte* packed) {
  auto* const from = const_cast<float*>(pixels.from);  // Rows are of any tensor
  const Rows rows(TensorView(from, DType::f32, {pixels.count, pixels.channels}, {pixels.step, 1}));
  const PixelBlocks blocks{pixels.count};
  for (std::int64_t b = 0; b < blocks.count(); ++b)
    pack_parts(rows, blocks.begin(b), blocks.begin(b + 1),
               packed + blocks.begin(b) * packed_pixel_bytes(pixels.channels));
}

void PackedPixels::multiply(const std::byte* panels, std::int64_t columns, const TapProducts& products,
                            const SumProgram& sum, const TapStore& to) const {
  alignas(64) float sums[3 * amx_rows * panel_columns];
  const std::int64_t chunks = div_up(channels, parts_steps), pixel_bytes = packed_pixel_bytes(channels);
  const PixelBlocks blocks{count};
  const AmxTiles registers;
  PanelParts none;
  for (std::int64_t column = 0; column < columns; column += panel_columns, panels += packed_panel_bytes(channels)) {
    const std::int64_t width = std::min(panel_columns, columns - column);
    TapStore store = to;
    store.y += column;
    if (store.bias) store.bias += column;
    for (std::int64_t b = 0; b < blocks.count(); ++b) {
      const std::int64_t first = blocks.begin(b), rows = blocks.begin(b + 1) - first;
      parts_product(div_up(rows, std::int64_t{amx_rows}))(packed + first * pixel_bytes, rows, panels, chunks, true,
                                                          none, 0, sums);
      products.store(sums, static_cast<int>(rows), store, width);
      if (sum.function) {
        const auto step = static_cast<std::size_t>(store.y_step);
        const TileOperand operand{store.y, step, 1};
        sum.function(&operand, {store.y, step, static_cast<std::size_t>(rows), static_cast<std::size_t>(width)},
                     sum.parameters.data());
      }
      store.y += rows * store.y_step;
    }
  }
}

}  // namespace cermet::cpu

// Images: rearrangements of blocks, other sizes by scales, and cut or padded around their centres.
#include <algorithm>

#include "onnx/lowering.hpp"

namespace cermet::onnx {

/// [N, blocks * C, H, W] as [N, C, H * b, W * b]; DCR has the blocks' rows and columns before the channels, CRD after
/// them.
void lower_depth_to_space(Lowering& l) {
  const Operand x = l.in(0);
  l.expect(l.rank(x) == 4, "expected 4 dimensions, found {}", l.type(x).to_string());
  const std::int64_t block = l.integer("blocksize", 0);
  const Dims d = l.dims(x);
  const auto channels = block > 0 ? exact_quotient(d[1], block * block) : std::nullopt;
  l.expect(channels.has_value(), "attribute blocksize: expected a number whose square divides {} channels, found {}",
           d[1].to_string(), block);
  const bool blocks_first = l.text("mode", "DCR") == "DCR";
  const Operand y = blocks_first
                        ? l.transpose(l.reshape(x, {d[0], block, block, *channels, d[2], d[3]}), {0, 3, 4, 1, 5, 2})
                        : l.transpose(l.reshape(x, {d[0], *channels, block, block, d[2], d[3]}), {0, 1, 4, 2, 5, 3});
  l.set(0, l.reshape(y, {d[0], *channels, d[2] * block, d[3] * block}));
}

void lower_space_to_depth(Lowering& l) {
  const Operand x = l.in(0);
  l.expect(l.rank(x) == 4, "expected 4 dimensions, found {}", l.type(x).to_string());
  const std::int64_t block = l.integer("blocksize", 0);
  const Dims d = l.dims(x);
  const auto height = block > 0 ? exact_quotient(d[2], block) : std::nullopt,
             width = block > 0 ? exact_quotient(d[3], block) : std::nullopt;
  l.expect(height && width, "attribute blocksize: expected a divisor of {} and {}, found {}", d[2].to_string(),
           d[3].to_string(), block);
  const bool blocks_first = l.text("mode", "DCR") == "DCR";
  const Operand y = l.transpose(l.reshape(x, {d[0], d[1], *height, block, *width, block}),
                                blocks_first ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  l.set(0, l.reshape(y, {d[0], d[1] * block * block, *height, *width}));
}

void lower_upsample(Lowering& l) {
  const Operand x = l.in(0);
  const Floats scales = l.version() < 9 ? l.numbers("scales") : l.numbers_in(l.in(1));
  l.expect(scales.size() == static_cast<std::size_t>(l.rank(x)), "scales: expected {}, found {}", l.rank(x),
           scales.size());
  l.set(0, l.op(OpKind::resize, {x},
                {{"mode", l.text("mode", "nearest")},
                 {"scales", scales},
                 {"coordinate_transformation_mode", "asymmetric"},
                 {"nearest_mode", "floor"}}));
}

void lower_center_crop_pad(Lowering& l) {
  Operand x = l.in(0);
  const Ints shape = l.ints_in(l.in(1));
  Ints axes = l.integers("axes");
  if (axes.empty())
    for (int a = 0; a < l.rank(x); ++a) axes.push_back(a);
  l.expect(axes.size() == shape.size(), "shape: expected {} sizes, found {}", axes.size(), shape.size());
  Ints pads(2 * static_cast<std::size_t>(l.rank(x)));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = l.axis(axes[i], l.rank(x));
    const std::int64_t more = shape[i] - l.size(x, axis);
    if (more < 0) x = l.slice(x, axis, -more / 2, -more / 2 + shape[i]);
    if (more <= 0) continue;
    pads[static_cast<std::size_t>(axis)] = more / 2;
    pads[static_cast<std::size_t>(axis + l.rank(x))] = more - more / 2;
  }
  if (std::ranges::any_of(pads, [](std::int64_t p) { return p > 0; })) x = l.op(OpKind::pad, {x}, {{"pads", pads}});
  l.set(0, x);
}

}  // namespace cermet::onnx

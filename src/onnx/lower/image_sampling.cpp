// Images sampled at points of a grid.
#include <algorithm>

#include "onnx/lowering.hpp"

namespace cermet::onnx {

/// Points of a grid over [-1, 1] as (x, y, 1) or (x, y, z, 1), times theta.
void lower_affine_grid(Lowering& l) {
  const Operand theta = l.in(0);
  const Ints size = l.ints_in(l.in(1));
  const int axes = static_cast<int>(size.size()) - 2;
  l.expect((axes == 2 || axes == 3) && l.rank(theta) == 3 && l.size(theta, 1) == axes && l.size(theta, 2) == axes + 1,
           "expected theta [N, 2, 3] and 4 sizes, or [N, 3, 4] and 5, found {} and {}", l.type(theta).to_string(),
           size.size());
  const bool align = l.integer("align_corners", 0) != 0;
  const Ints places(size.begin() + 2, size.end());
  std::int64_t count = 1;
  for (const std::int64_t n : places) count *= n;
  Floats points(static_cast<std::size_t>(count * (axes + 1)), 1);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t a = axes - 1, remaining = i; a >= 0; --a) {
      const std::int64_t n = places[static_cast<std::size_t>(a)];
      const double step = 2 / static_cast<double>(align ? std::max<std::int64_t>(n - 1, 1) : n);
      points[static_cast<std::size_t>(i * (axes + 1) + axes - 1 - a)] =
          -1 + (align ? 0 : step / 2) + static_cast<double>(remaining % n) * step;
      remaining /= n;
    }
  if (count == 0) points.assign(1, 0);
  const Operand base =
      count == 0 ? l.filled({0, axes + 1}, DType::f32, 0) : l.reshape(l.vector(DType::f32, points), {count, axes + 1});
  const Operand grid =
      l.op(OpKind::matmul, {base, theta},
           {{"transpose_b", true}, {"out_dtype", std::string(name_of(l.dtype(theta)))}});  // [N, points, axes]
  Dims dims{l.dim(theta, 0)};
  dims.insert(dims.end(), places.begin(), places.end());
  dims.push_back(axes);
  l.set(0, l.reshape(grid, dims));
}

void lower_grid_sample(Lowering& l) {
  std::string mode = l.text("mode", "linear");
  if (mode == "bilinear") mode = "linear";  // names before opset 20
  if (mode == "bicubic") mode = "cubic";
  l.set(0, l.op(OpKind::grid_sample, {l.in(0), l.in(1)},
                {{"mode", mode},
                 {"padding_mode", l.text("padding_mode", "zeros")},
                 {"align_corners", l.integer("align_corners", 0) != 0}}));
}

}  // namespace cermet::onnx

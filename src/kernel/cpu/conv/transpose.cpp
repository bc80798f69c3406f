// conv_transpose: places of y that lie a stride apart meet the same taps, at neighbouring pixels of x, so each such
// phase is a convolution of stride 1. x is copied with its channels last and the padding that windows reach.
#include <algorithm>
#include <array>

#include "base/checked.hpp"
#include "kernel/cpu/conv/taps.hpp"
#include "kernel/cpu/conv/weights.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "op/conv.hpp"
#include "op/operands.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

using Axes = ConvGeometry::Axes;

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

std::int64_t floored(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// x with zeros around it, [N][depth][height][width][C].
struct PaddedX {
  std::int64_t samples, channels;
  Axes size, before, padded;

  PaddedX(const ConvGeometry& g, const Shape& x, const Shape& y) : samples(x[0]), channels(x[1]) {
    size.fill(1);
    Axes places{1, 1, 1};
    for (int axis = 2; axis < x.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis + 3 - x.rank());
      size[a] = x[axis], places[a] = y[axis];
    }
    for (std::size_t a = 0; a < 3; ++a) {
      before[a] = std::max<std::int64_t>(0, -floored(g.before[a] - (g.extent(a) - 1), g.stride[a]));
      const std::int64_t last = floored(places[a] - 1 + g.before[a], g.stride[a]);
      padded[a] = before[a] + std::max(size[a], last + 1);
    }
  }
  std::int64_t floats() const { return samples * padded[0] * padded[1] * padded[2] * channels; }
  /// Of a pixel, by its place in x.
  std::int64_t offset(std::int64_t n, const Axes& at) const {
    return (((n * padded[0] + at[0] + before[0]) * padded[1] + at[1] + before[1]) * padded[2] + at[2] + before[2]) *
           channels;
  }
};

void copy_padded(const TensorView& x, const PaddedX& to, float* memory, ThreadPool& pool) {
  constexpr std::int64_t chunk = 64;
  const ConvTensor from = conv_tensor(x, false);
  const RunConverter convert = real_converter(x.dtype, DType::f32);
  const auto bytes = byte_size(x.dtype);
  pool.parallel_for(to.samples * to.padded[0] * to.padded[1], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      float* const row = memory + line * to.padded[2] * to.channels;
      std::fill_n(row, to.padded[2] * to.channels, 0.0f);
      const std::int64_t h = line % to.padded[1] - to.before[1], d = line / to.padded[1] % to.padded[0] - to.before[0];
      if (h < 0 || h >= to.size[1] || d < 0 || d >= to.size[0]) continue;
      const std::int64_t n = line / to.padded[1] / to.padded[0];
      for (std::int64_t w = 0; w < to.size[2]; w += chunk)
        for (std::int64_t c = 0; c < to.channels; ++c) {
          std::array<float, chunk> wide;
          const std::int64_t count = std::min(chunk, to.size[2] - w);
          const std::int64_t offset = n * from.strides[0] + c * from.strides[1] + d * from.strides[2] +
                                      h * from.strides[3] + w * from.strides[4];
          convert(x.as<const std::byte>() + offset * bytes, reinterpret_cast<std::byte*>(wide.data()), count);
          for (std::int64_t i = 0; i < count; ++i)
            row[(to.before[2] + w + i) * to.channels + c] = wide[static_cast<std::size_t>(i)];
        }
    }
  });
}

struct Plan {
  ConvGeometry geometry;
  bool prepacked;
};

/// All of one launch.
struct Launch {
  const ConvGeometry& g;
  const PaddedX& x;
  const float* pixels;
  const float* weight;  ///< [panel][tap][C][32]
  const TensorView& bias;
  const TensorView& y;
  ConvTensor out;
  std::int64_t outputs;  ///< of a group
  TapProducts products;
  RunConverter narrow;

  /// Places column, column + stride, .. of a row of y, for columns [0, count) of a panel of a group.
  void run_block(std::int64_t n, const Axes& place, std::int64_t rows, std::int64_t group, std::int64_t panel) const {
    alignas(64) float tile[most_tap_rows * panel_columns];
    std::fill_n(tile, rows * panel_columns, 0.0f);
    const std::int64_t inputs = x.channels / g.group;
    const TapRun run{0, inputs};
    for (std::int64_t t = 0; t < g.taps(); ++t) {
      const Axes tap{t / (g.kernel[1] * g.kernel[2]), t / g.kernel[2] % g.kernel[1], t % g.kernel[2]};
      Axes at;
      bool meets = true;
      for (std::size_t a = 0; a < 3; ++a) {
        const std::int64_t steps = place[a] + g.before[a] - tap[a] * g.dilation[a];
        at[a] = floored(steps, g.stride[a]);
        meets = meets && steps == at[a] * g.stride[a];
      }
      if (!meets) continue;
      const TapRows windows{pixels + x.offset(n, at) + group * inputs, x.channels, &run, 1};
      products.multiply[rows - 1](
          windows, weight + ((panel * g.taps() + t) * x.channels + group * inputs) * panel_columns, tile, nullptr);
    }
    store(tile, n, place, rows, group * outputs + panel * panel_columns,
          std::min(panel_columns, outputs - panel * panel_columns));
  }

  void store(const float* tile, std::int64_t n, const Axes& place, std::int64_t rows, std::int64_t channel,
             std::int64_t columns) const {
    const auto bytes = byte_size(y.dtype);
    const std::int64_t base =
        n * out.strides[0] + place[0] * out.strides[2] + place[1] * out.strides[3] + place[2] * out.strides[4];
    for (std::int64_t c = 0; c < columns; ++c) {
      const float added = bias.present ? static_cast<float>(load(bias, channel + c)) : 0;
      std::byte* const to = y.as<std::byte>() + (base + (channel + c) * out.strides[1]) * bytes;
      for (std::int64_t r = 0; r < rows; ++r) {
        const float value = tile[r * panel_columns + c] + added;
        narrow(reinterpret_cast<const std::byte*>(&value), to + r * g.stride[2] * bytes, 1);
      }
    }
  }

  /// A row of y for a panel of a group.
  void run_row(std::int64_t row, std::int64_t group, std::int64_t panel) const {
    const std::int64_t h = row % out.dims[3], d = row / out.dims[3] % out.dims[2], n = row / out.dims[3] / out.dims[2];
    for (std::int64_t phase = 0; phase < std::min(g.stride[2], out.dims[4]); ++phase)
      for (std::int64_t column = phase; column < out.dims[4]; column += g.stride[2] * products.block_rows)
        run_block(n, {d, h, column},
                  std::min<std::int64_t>(products.block_rows, div_up(out.dims[4] - column, g.stride[2])), group, panel);
  }
};

std::int64_t weight_bytes(const TensorType& weight, bool prepacked) {
  return prepacked ? 0 : transposed_panels.bytes(weight);
}

void conv_transpose(const LaunchArgs& args, const Plan& plan) {
  const TensorView &x = args.inputs[0], &weight = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const ConvGeometry& g = plan.geometry;
  const std::int64_t packed_bytes = weight_bytes(weight.type(), plan.prepacked);
  auto* const packed = reinterpret_cast<float*>(args.workspace);
  auto* const pixels = reinterpret_cast<float*>(args.workspace + packed_bytes);
  if (!plan.prepacked) transposed_panels.pack(weight, args.workspace, *args.pool);
  const PaddedX padded(g, x.shape, y.shape);
  copy_padded(x, padded, pixels, *args.pool);
  const TensorView bias = args.has(op::conv_transpose::bias) ? args.inputs[op::conv_transpose::bias] : TensorView();
  const std::int64_t outputs = weight.shape[1], panels = panel_count(outputs);
  const Launch launch{.g = g,
                      .x = padded,
                      .pixels = pixels,
                      .weight = plan.prepacked ? weight.as<const float>() : packed,
                      .bias = bias,
                      .y = y,
                      .out = conv_tensor(y, false),
                      .outputs = outputs,
                      .products = tap_products(),
                      .narrow = real_converter(DType::f32, y.dtype)};
  const std::int64_t parts = g.group * panels;
  args.pool->dynamic_for(launch.out.batch() * launch.out.dims[2] * launch.out.dims[3] * parts, [&](std::int64_t item) {
    launch.run_row(item / parts, item % parts / panels, item % panels);
  });
}

bool is_prepacked(const Problem& p) { return p.is_constant(1) && p.input(1).rank() > 3; }

std::int64_t workspace(const Problem& p, int) {
  const PaddedX padded(conv_geometry(p), bind(p.input(0).dims, p.maximum), bind(p.outputs[0].dims, p.maximum));
  return weight_bytes(p.input(1), is_prepacked(p)) + padded.floats() * float_bytes;
}

}  // namespace

extern const Kernel conv_transpose_phases{
    .name = "conv.transpose",
    .op = OpKind::conv_transpose,
    .summary = "a convolution of stride 1 for each phase of the stride, over packed panels",
    .bind = [](const Problem& p) -> Launcher {
      return [plan = Plan{conv_geometry(p), is_prepacked(p)}](const LaunchArgs& args) { conv_transpose(args, plan); };
    },
    .weight_layout = [](const Problem& p, std::size_t operand) -> const WeightLayout* {
      return operand == 1 && p.input(1).rank() > 3 ? &transposed_panels : nullptr;
    },
    .workspace = workspace,
};

}  // namespace cermet::cpu

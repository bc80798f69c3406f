// Host half of pad.
#include <algorithm>

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/cuda/device/movement/pad.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/pad.hpp"

namespace cermet::cuda::movement_pad_file {
namespace {

struct Padding {
  pad::Mode mode;
  Ints pads;
  double value;
};

Padding padding_of(const Problem& p) {
  const std::string& mode = p.attributes.text("mode");
  Padding padding{mode == "constant"  ? pad::Mode::constant
                  : mode == "reflect" ? pad::Mode::reflect
                                      : pad::Mode::edge,
                  p.attributes.integers("pads"), p.attributes.number("value")};
  return padding;
}

/// Symbolic dimensions are known only now.
void check_sizes(const Padding& padding, const TensorView& x, const TensorView& y) {
  for (int a = 0; a < x.shape.rank(); ++a) {
    const auto [before, after] = pads_of(padding.pads, a, x.shape, y.shape);
    if (padding.mode == pad::Mode::constant) continue;
    const std::int64_t most = std::max(before, after);
    const std::int64_t needed = most == 0 ? 0 : padding.mode == pad::Mode::reflect ? most + 1 : 1;
    if (x.shape[a] < needed)
      fail(Status::invalid_argument,
           "pad: operand 0 (x): expected dimension {} of at least {} for these pads, found {}", a, needed,
           x.shape.to_string());
  }
}

void pad(const LaunchArgs& args, const Padding& padding) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  check_sizes(padding, x, y);
  if (y.elements() == 0) return;
  AxesBuilder<2> builder;
  const int rank = y.shape.rank();
  for (int a = 0; a < rank; ++a) builder.append_alone(y.shape[a], {x.strides[a], y.strides[a]});
  const auto bytes = byte_size(x.dtype);
  std::int64_t run = rank > 0 && x.shape.back() == y.shape.back() ? builder.run_length({true, true}, 16 / bytes) : 1;
  while (run > 1 && !(is_aligned(x.data, run * bytes) && is_aligned(y.data, run * bytes))) run /= 2;
  pad::Params params{.x = x.data,
                     .y = y.data,
                     .word_bytes = static_cast<std::uint32_t>(run * bytes),
                     .mode = padding.mode,
                     .constant = {},
                     .before = {},
                     .source = {1},
                     .axes = builder.make(run, {true, true})};
  for (int a = 0; a < rank; ++a) {
    params.before[a] = pads_of(padding.pads, a, x.shape, y.shape).first;
    params.source[a] = x.shape[a] / (a + 1 == rank ? run : 1);
  }
  for (std::int64_t i = 0; i < 16 / bytes; ++i) format::store_element(params.constant, x.dtype, i, padding.value);
  const std::int64_t items = div_up(params.axes.count, pad::threads);
  args.queue->run(0, items, params);
}

}  // namespace

extern const Kernel movement_pad;
const Kernel movement_pad{.name = "movement.pad",
                          .op = OpKind::pad,
                          .summary = "words of 16 bytes where the last axis is not padded",
                          .bind = [](const Problem& p) -> Launcher {
                            return [padding = padding_of(p)](const LaunchArgs& args) { pad(args, padding); };
                          },
                          .programs = [](const Problem&) -> std::vector<Program> {
                            return {{.header = "kernel/cuda/device/movement/pad.cuh",
                                     .task = "cermet::pad::Task",
                                     .threads = pad::threads,
                                     .min_blocks = 4}};
                          }};

}  // namespace cermet::cuda::movement_pad_file

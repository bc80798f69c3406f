// Host half of bitcast.
#include "kernel/cuda/movement/copy.hpp"

namespace cermet::cuda::movement_bitcast_file {

extern const Kernel movement_bitcast;
const Kernel movement_bitcast{
    .name = "movement.bitcast",
    .op = OpKind::bitcast,
    .summary = "a strided copy, for results that do not share their operand's memory",
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        const TensorView &x = args.inputs[0], &y = args.outputs[0];
        if (x.data == y.data) return;
        enqueue_copy(*args.queue, 0, {x.shape, x.data, x.strides, y.data, y.strides, byte_size(x.dtype)});
      };
    },
    .programs = [](const Problem&) -> std::vector<Program> { return {copy_program()}; }};

}  // namespace cermet::cuda::movement_bitcast_file

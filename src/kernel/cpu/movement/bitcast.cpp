#include "kernel/cpu/movement/copy.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {

extern const Kernel movement_bitcast{
    .name = "movement.bitcast",
    .op = OpKind::bitcast,
    .summary = "a copy, for results that do not share their operand's memory",
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        const TensorView &x = args.inputs[0], &y = args.outputs[0];
        if (x.data != y.data) strided_copy(x.shape, x.data, x.strides, y.data, y.strides, size_of(x.dtype), *args.pool);
      };
    },
};

}  // namespace cermet::cpu

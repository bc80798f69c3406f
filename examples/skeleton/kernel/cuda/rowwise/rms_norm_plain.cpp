// Skeleton of a CUDA kernel, host half. Copy to src/kernel/cuda/FAMILY/NAME.cpp, with its device half, call its
// namespace FAMILY_NAME_file, and add the row X(FAMILY_NAME_file, VARIABLE) to src/kernel/cuda/kernels.inc: where
// models of cost cannot tell kernels of an operator apart, earlier rows win. The tests compile its programs for every
// architecture and launch them on a null device, and conformance runs it on a GPU: for the operator's cases, of which
// it must take some (`cases` in src/op/NAME.cpp). Add those that it was made for.
#include "kernel/cuda/device/rowwise/rms_norm_plain.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"

namespace cermet::cuda::rowwise_rms_norm_plain_file {
namespace {

/// Why the kernel declines a problem, as shown by `cermet explain op rms_norm --device cuda`. Sizes that are symbols
/// count at their maximum (p.size); p.target is the device.
Decline declines(const Problem& p) {
  if (p.has(1)) return "a weight is given; this kernel takes rows without one";
  if (p.input(0).dtype != DType::f32 || p.outputs[0].dtype != DType::f32) return "x or y is not f32";
  return {};
}

/// What to compile: a header below src/, and a task in it. A list has more than one where launches differ. Where types
/// or sizes are compiled in, the task is a template of a Config, which config_text() (kernel/cuda/config_text.hpp)
/// prints. Shared memory is what `shared_bytes` asks for.
std::vector<Program> programs(const Problem&) {
  return {{.header = "kernel/cuda/device/rowwise/rms_norm_plain.cuh",
           .task = "cermet::rms_norm_plain::Task",
           .threads = rms_norm_plain::threads}};
}

/// A launch: no allocation, no strings. StridedRows merges strided leading dimensions, AxesBuilder
/// (kernel/cuda/movement/axes.hpp) any axes; 0 is the program's place in the list above. Sizes are those of the call,
/// and may be 0.
void launch(const LaunchArgs& args, float eps) {
  const RowView operands[] = {{&args.inputs[0]}, {&args.outputs[0]}};
  const StridedRows strided(operands);
  for (std::int64_t l = 0; l < strided.launches(); ++l) {
    const rms_norm_plain::Params params{strided.operand(0, l), strided.operand(1, l),       strided.dims(),
                                        strided.rows(),        args.inputs[0].shape.back(), eps};
    args.queue->run(0, div_up(strided.rows(), std::int64_t{rms_norm_plain::rows_per_item}), params);
  }
}

}  // namespace

// Besides these fields a kernel may run in several ways (`configs`), model what each costs (`cost`), and request
// scratch memory (`workspace`).
extern const Kernel rowwise_rms_norm_plain;
const Kernel rowwise_rms_norm_plain{
    .name = "rowwise.rms_norm.plain",  // what users force and disable: a family, which need not be the folder, and more
    .op = OpKind::rms_norm,
    .summary = "float32 rows without a weight; a warp for each",
    .declines = declines,
    // Attributes are read here, once; the launcher holds their values.
    .bind = [](const Problem& p) -> Launcher {
      return [eps = static_cast<float>(p.attributes.number("eps"))](const LaunchArgs& args) { launch(args, eps); };
    },
    .programs = programs,
};

}  // namespace cermet::cuda::rowwise_rms_norm_plain_file

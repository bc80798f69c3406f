// conv of tensors with their channels first: x and residual are transposed, convolved with their channels last, and y
// is transposed back.
#include <array>

#include "base/checked.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/decline.hpp"
#include "op/conv.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"

namespace cermet::cpu {
namespace {

constexpr std::size_t inputs = op::conv::residual + 1;

Dims channels_last(const Dims& dims) {
  Dims result = dims;
  result.erase(result.begin() + 1);
  result.push_back(dims[1]);
  return result;
}

/// The same convolution of transposed operands.
Region transposed(const Problem& p) {
  std::vector<std::optional<TensorType>> types = p.inputs;
  for (const std::size_t i : {op::conv::x, op::conv::residual})
    if (p.has(i)) types[i]->dims = channels_last(types[i]->dims);
  Attributes attributes = p.attributes;
  attributes.set("layout", "nhwc");
  Problem inner = make_problem(definition(OpKind::conv), std::move(types), attributes);
  inner.constant_inputs = p.constant_inputs;
  inner.maximum = p.maximum;
  inner.target = p.target;
  return inner;
}

/// The first that takes it; null where CERMET_DISABLE_KERNELS leaves none.
const Kernel* find_kernel(const Region& inner) {
  for (const Kernel* kernel : kernels_of(OpKind::conv))
    if (!decline_of(*kernel, inner)) return kernel;
  return nullptr;
}

const Kernel& kernel_of(const Region& inner) {
  const Kernel* const kernel = find_kernel(inner);
  CERMET_ASSERT(kernel != nullptr);
  return *kernel;
}

/// A dense view of [N, C, spatial..] with its channels last.
TensorView view_of(const TensorView& first, std::byte* memory) {
  Shape shape{first.shape[0]};
  for (int axis = 2; axis < first.shape.rank(); ++axis) shape.push_back(first.shape[axis]);
  shape.push_back(first.shape[1]);
  return {memory, first.dtype, shape};
}

/// Strides of a view of channels-last memory in the order of [N, C, spatial..].
Shape strides_of(const TensorView& last) {
  Shape strides{last.strides[0], last.strides.back()};
  for (int axis = 1; axis + 1 < last.shape.rank(); ++axis) strides.push_back(last.strides[axis]);
  return strides;
}

std::int64_t bytes_at_most(const TensorType& type, const SymbolValues& maximum) {
  return round_up(type.bytes().value(maximum), 64);
}

struct Plan {
  Launcher launch;

  explicit Plan(const Problem& p) {
    const Region inner = transposed(p);
    launch = kernel_of(inner).bind(inner);
  }
};

void conv_nchw(const LaunchArgs& args, const Plan& plan) {
  std::byte* memory = args.workspace;
  const auto take = [&](const TensorView& view) {
    const TensorView last = view_of(view, memory);
    memory += round_up(dense_bytes(last.dtype, last.shape), 64);
    return last;
  };
  std::array<TensorView, inputs> operands;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!args.has(i)) continue;
    operands[i] = args.inputs[i];
    if (i != op::conv::x && i != op::conv::residual) continue;
    const TensorView& first = args.inputs[i];
    operands[i] = take(first);
    strided_copy(first.shape, first.data, first.strides, operands[i].data, strides_of(operands[i]),
                 size_of(first.dtype), *args.pool);
  }
  const TensorView& y = args.outputs[0];
  const TensorView last = take(y);
  plan.launch({.inputs = operands, .outputs = {&last, 1}, .workspace = memory, .pool = args.pool});
  strided_copy(y.shape, last.data, strides_of(last), y.data, y.strides, size_of(y.dtype), *args.pool);
}

Decline declines(const Problem& p) {
  if (p.attributes.text("layout") != "nchw") return "the layout is nhwc";
  if (!find_kernel(transposed(p))) return "no kernel takes it with its channels last";
  return std::nullopt;
}

const WeightLayout* weight_layout(const Problem& p, std::size_t operand) {
  const Region inner = transposed(p);
  return kernel_of(inner).weight_layout(inner, operand);
}

std::int64_t workspace(const Problem& p, int threads) {
  std::int64_t bytes = bytes_at_most(p.outputs[0], p.maximum);
  for (const std::size_t i : {op::conv::x, op::conv::residual})
    if (p.has(i)) bytes += bytes_at_most(p.input(i), p.maximum);
  const Region inner = transposed(p);
  return bytes + kernel_of(inner).workspace(inner, threads);
}

}  // namespace

extern const Kernel conv_transposing{
    .name = "conv.transposing",
    .op = OpKind::conv,
    .summary = "transposes to channels last and back around the kernel for that",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [plan = Plan(p)](const LaunchArgs& args) { conv_nchw(args, plan); };
    },
    .weight_layout = weight_layout,
    .workspace = workspace,
};

}  // namespace cermet::cpu

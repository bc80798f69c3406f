#include "kernel/cpu/gemm/window_rows.hpp"

#include <algorithm>

namespace cermet::cpu {
namespace {

/// Whether a value has one element for each channel of samples with dimensions `x`, channels last.
bool goes_by_channel(const Dims& dims, const Dims& x) {
  return dims.size() == x.size() && (dims[0] == x[0] || dims[0] == Dim(1)) && dims.back() == x.back() &&
         std::all_of(dims.begin() + 1, dims.end() - 1, [](const Dim& dim) { return dim == Dim(1); });
}

struct Product {
  std::size_t x, factors;
};

/// The product that a convolution reads, where it is the only node before it.
std::optional<Product> product_before(const Region& region) {
  const RegionNode &first = region.nodes[0], &anchor = region.nodes[1];
  if (region.anchor != 1 || first.problem.op->kind != OpKind::mul) return {};
  if (!anchor.inputs[0].is_inside() || std::ranges::count_if(anchor.inputs, &RegionInput::is_inside) != 1) return {};
  if (std::ranges::any_of(region.results, [](const RegionPlace& result) { return result.node == 0; })) return {};
  const Dims& x = anchor.problem.input(0).dims;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const auto whole = region.operand_of(0, i), factors = region.operand_of(0, 1 - i);
    if (!whole || !factors || first.problem.input(i).dtype != DType::f32 ||
        first.problem.input(1 - i).dtype != DType::f32)
      continue;
    if (first.problem.input(i).dims == x && goes_by_channel(first.problem.input(1 - i).dims, x))
      return Product{*whole, *factors};
  }
  return {};
}

}  // namespace

WindowPlan::WindowPlan(const Region& region) : geometry(conv_geometry(region.problem())) {
  if (region.anchor == 0) {
    x = *region.operand_of(0);
    return;
  }
  const Product product = *product_before(region);
  x = product.x, factors = product.factors;
}

Decline WindowPlan::declines(const Region& region) {
  if (region.anchor == 0) return std::nullopt;
  if (!product_before(region)) return fmt::format("{} comes before the product", region.nodes[0].problem.op->name);
  return conv_geometry(region.problem()).taps() == 1
             ? std::nullopt
             : Decline("windows of several pixels would be multiplied for each");
}

WindowRows::WindowRows(const WindowPlan& plan, const LaunchArgs& args, const TensorView& y)
    : g_(plan.geometry),
      x_(conv_tensor(args.inputs[plan.x], true)),
      y_(conv_tensor(y, true)),
      data_(args.inputs[plan.x].as<const float>()) {
  if (!plan.factors) return;
  const TensorView& factors = args.inputs[*plan.factors];
  factors_ = factors.as<const float>();
  if (factors.shape[0] != 1) factor_step_ = factors.strides[0];
}

WindowRows::Window WindowRows::window(std::int64_t row) const {
  Window window{};
  for (std::size_t axis = 3; axis-- > 0;) {
    window.corner[axis] = row % y_.dims[axis + 2] * g_.stride[axis] - g_.before[axis];
    row /= y_.dims[axis + 2];
  }
  window.sample = row;
  return window;
}

const float* WindowRows::at(const Window& window, std::int64_t tap) const {
  std::int64_t offset = window.sample * x_.strides[0];
  for (std::size_t axis = 3; axis-- > 0;) {
    const std::int64_t place = window.corner[axis] + tap % g_.kernel[axis] * g_.dilation[axis];
    if (place < 0 || place >= x_.dims[axis + 2]) return nullptr;
    offset += place * x_.strides[axis + 2];
    tap /= g_.kernel[axis];
  }
  return data_ + offset;
}

}  // namespace cermet::cpu

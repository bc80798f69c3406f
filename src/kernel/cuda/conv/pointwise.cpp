// conv with windows of one pixel over nhwc is linear: the kernels of linear compute it, with its residual and activation as nodes that follow.
#include <algorithm>
#include <array>

#include "kernel/cuda/conv/general.hpp"
#include "op/operator.hpp"

namespace cermet::cuda {
namespace {

/// Most operands of a region, so that a launch can hand on views of them without memory of its own.
constexpr std::size_t most_operands = 16;

Decline declines_windows(const Region& region) {
  const Problem& p = region.problem();
  if (p.attributes.text("layout") != "nhwc") return "the layout is nchw";
  if (region.anchor != 0) return "computes nothing before the convolution";
  const ConvGeometry g = conv_geometry(p);
  const auto all = [](const ConvGeometry::Axes& axes, std::int64_t value) { return std::ranges::all_of(axes, [&](std::int64_t a) { return a == value; }); };
  if (g.taps() != 1 || !all(g.stride, 1) || !all(g.before, 0) || !all(g.after, 0)) return "windows are not single pixels, one beside the other";
  if (g.group != 1) return "channels are in groups";
  if (p.input(1).dims[1] == Dim(0)) return "there are no channels";
  if (region.operands.size() > most_operands) return fmt::format("{} operands, and {} can be", region.operands.size(), most_operands);
  return std::nullopt;
}

/// Turns a region around conv into one around linear with the same operands and results.
class AsLinear {
 public:
  explicit AsLinear(const Region& from) : from_(from), conv_(from.problem()) {}

  Region make() {
    linear();
    if (conv_.has(3)) residual();
    if (const std::string& name = conv_.attributes.text("activation"); name != "identity") append(find_operator(name)->kind, {conv_.outputs[0]});
    const auto more = static_cast<std::int32_t>(to_.nodes.size()) - 1;  // nodes in the place of the convolution
    for (std::size_t n = 1; n < from_.nodes.size(); ++n) {
      RegionNode node = from_.nodes[n];
      for (RegionInput& input : node.inputs)
        if (input.is_inside()) input.index += more;
      to_.nodes.push_back(std::move(node));
    }
    for (RegionPlace place : from_.operands) {
      if (place.node > 0) place.node += more;
      else if (place.index == 3 && conv_.has(3)) place = {1, 1};
      to_.operands.push_back(place);
    }
    for (RegionPlace place : from_.results) to_.results.push_back({place.node + more, place.index});
    return std::move(to_);
  }

 private:
  RegionInput operand(std::size_t input) const {
    const auto place = conv_.has(input) ? from_.operand_of(input) : std::nullopt;
    return place ? RegionInput::outside(*place) : RegionInput{};
  }
  void add(Problem problem, std::vector<RegionInput> inputs) {
    problem.maximum = conv_.maximum;
    problem.target = conv_.target;
    to_.nodes.push_back({std::move(problem), std::move(inputs)});
  }

  void linear() {
    const TensorType& weight = conv_.input(1);
    std::vector<std::optional<TensorType>> types{conv_.input(0), TensorType{weight.dtype, {weight.dims[0], weight.dims[1]}}};
    types.push_back(conv_.has(2) ? std::optional(conv_.input(2)) : std::nullopt);
    Problem problem = make_problem(definition(OpKind::linear), std::move(types), {});
    problem.constant_inputs = conv_.constant_inputs & 7u;
    add(std::move(problem), {operand(0), operand(1), operand(2)});
  }
  void residual() {
    append(OpKind::add, {conv_.outputs[0], conv_.input(3)});
    to_.nodes.back().inputs.push_back(operand(3));
  }
  /// An elementwise node whose first operand is the result so far, as float32.
  void append(OpKind op, std::vector<std::optional<TensorType>> types) {
    const RegionInput before = RegionInput::inside(to_.nodes.size() - 1, 0, Rounding::fast);
    add(make_problem(definition(op), std::move(types), {}), {before});
  }

  const Region& from_;
  const Problem& conv_;
  Region to_;
};

Region as_linear(const Region& region) { return AsLinear(region).make(); }

/// Runs a kernel of linear; weights whose channels are not neighbours in memory take the general convolution.
Launcher bind(const Kernel& linear, const Region& region, const Config& config) {
  const Region product = as_linear(region);
  return [launch = linear.bind(product, config), general = GeneralConv(region), weight = *region.operand_of(1),
          last = linear.programs(product, config).size()](const LaunchArgs& args) {
    std::array<TensorView, most_operands> views;
    std::ranges::copy(args.inputs, views.begin());
    TensorView& w = views[weight];
    if (w.shape[1] > 1 && w.strides[1] != 1) return general.launch(args, last);
    w.shape = {w.shape[0], w.shape[1]};
    w.strides = {w.strides[0], 1};
    LaunchArgs own = args;
    own.inputs = std::span(views).first(args.inputs.size());
    launch(own);
  };
}

std::vector<Program> programs(const Kernel& linear, const Region& region, const Config& config) {
  std::vector<Program> list = linear.programs(as_linear(region), config);
  list.push_back(as_fallbacks({GeneralConv(region).program()}).front());
  return list;
}

/// conv by a kernel of linear, which need not be there yet when this is called.
Kernel pointwise(const char* name, const char* summary, const Kernel& linear) {
  return {.name = name,
          .op = OpKind::conv,
          .summary = summary,
          .fuses = true,
          .declines = [&linear](const Region& r) -> Decline {
            if (Decline reason = declines_windows(r)) return reason;
            if (Decline reason = GeneralConv::declines(r)) return reason;
            return linear.declines(as_linear(r));
          },
          .bind = [&linear](const Region& r, const Config& config) { return bind(linear, r, config); },
          .workspace = [&linear](const Region& r, const Config& config, int n) { return linear.workspace(as_linear(r), config, n); },
          .programs = [&linear](const Region& r, const Config& config) { return programs(linear, r, config); },
          .configs = [&linear](const Region& r) { return linear.configs(as_linear(r)); },
          .cost = [&linear](const Region& r, const Config& config, const DeviceLimits& limits) { return linear.cost(as_linear(r), config, limits); }};
}

}  // namespace

extern const Kernel gemv_linear, gemm_linear_hopper, gemm_linear_tensor, gemm_linear_general;
extern const Kernel conv_pointwise_gemv, conv_pointwise_hopper, conv_pointwise_tensor, conv_pointwise_general;
const Kernel conv_pointwise_gemv = pointwise("conv.pointwise.gemv", "windows of one pixel, few of them: gemv.linear", gemv_linear);
const Kernel conv_pointwise_hopper = pointwise("conv.pointwise.hopper", "windows of one pixel: gemm.linear.hopper", gemm_linear_hopper);
const Kernel conv_pointwise_tensor = pointwise("conv.pointwise.tensor", "windows of one pixel: gemm.linear.tensor", gemm_linear_tensor);
const Kernel conv_pointwise_general = pointwise("conv.pointwise.general", "windows of one pixel: gemm.linear.general", gemm_linear_general);

}  // namespace cermet::cuda

#include "kernel/cuda/conv/as_linear.hpp"

#include "op/conv.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"

namespace cermet::cuda {
namespace {

class AsLinear {
 public:
  explicit AsLinear(const Region& from) : from_(from), conv_(from.problem()) {}

  Region make() {
    linear();
    if (conv_.has(op::conv::residual)) residual();
    if (const std::string& name = conv_.attributes.text("activation"); name != "identity")
      append(find_operator(name)->kind, {conv_.outputs[0]});
    const auto more = static_cast<std::int32_t>(to_.nodes.size()) - 1;  // nodes in the place of the convolution
    for (std::size_t n = 1; n < from_.nodes.size(); ++n) {
      RegionNode node = from_.nodes[n];
      for (RegionInput& input : node.inputs)
        if (input.is_inside()) input.index += more;
      to_.nodes.push_back(std::move(node));
    }
    for (RegionPlace place : from_.operands) {
      if (place.node > 0) place.node += more;
      else if (place.index == 3 && conv_.has(op::conv::residual)) place = {1, 1};
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
    const std::int64_t length = weight.dims[1].constant() * conv_geometry(conv_).taps();
    TensorType windows{conv_.input(0).dtype, conv_.outputs[0].dims};
    windows.dims.back() = length;
    std::vector<std::optional<TensorType>> types{std::move(windows),
                                                 TensorType{weight.dtype, {weight.dims[0], length}}};
    types.push_back(conv_.has(op::conv::bias) ? std::optional(conv_.input(op::conv::bias)) : std::nullopt);
    Problem problem = make_problem(definition(OpKind::linear), std::move(types), {});
    problem.constant_inputs = conv_.constant_inputs & 7u;
    add(std::move(problem), {operand(0), operand(1), operand(2)});
  }
  void residual() {
    append(OpKind::add, {conv_.outputs[0], conv_.input(op::conv::residual)});
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

}  // namespace

Region conv_as_linear(const Region& region) { return AsLinear(region).make(); }

}  // namespace cermet::cuda

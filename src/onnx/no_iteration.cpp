// Loops of no iteration: results that stack what iterations give are empty, with the dimensions that one iteration would have given.
#include <algorithm>

#include "onnx/frames.hpp"

namespace cermet::onnx {
namespace {

/// As the file declares it; sizes that it leaves open are 0, as ONNX Runtime has it.
TensorType declared_type(const Node& node, const ValueInfo& value) {
  if (!value.dtype || !value.dims)
    fail(Status::unsupported, "node '{}' ({}): no iteration: expected declared dimensions of the body's result '{}', found none", node.name, node.op,
         value.name);
  TensorType type{*value.dtype, {}};
  for (const DeclaredDim& d : *value.dims) type.dims.emplace_back(d.value.value_or(0));
  return type;
}

}  // namespace

/// Types of what an iteration would stack, from one on operands whose elements are not known; none where it needs them. The number of the iteration is known on
/// a second try, because slices may begin there; what is folded by it is not used.
std::optional<std::vector<TensorType>> Importer::types_of_trial(const Frame& frame, const std::vector<Operand>& carried, bool is_number_known) {
  state_.spent += static_cast<std::int64_t>(state_.slots.size() / 64);  // for the copy
  Importer trial(model_, weights_, ranges_, state_);
  std::optional<std::vector<TensorType>> types;
  try {
    const Frame::Loop& loop = *frame.loop;
    const std::vector<ValueInfo>& inputs = loop.body->inputs;
    trial.enter(frame);
    const auto unknown = [&](TensorType type) { return trial.add({.name = "trial", .type = std::move(type), .data = {}, .symbolic = {}}); };
    std::size_t next = 0;
    if (!loop.is_scan) {
      trial.bind(inputs[next++].name,
                 is_number_known ? trial.add_constant(TensorData::of({DType::i64, {}}, std::vector<std::int64_t>{0})) : unknown({DType::i64, {}}));
      trial.bind(inputs[next++].name, trial.add_constant(TensorData::of({DType::boolean, {}}, std::vector<std::uint8_t>{1})));
    }
    for (const Operand x : carried) trial.bind(inputs[next++].name, x);
    for (std::size_t i = 0; i < loop.scan_inputs.size(); ++i) {
      TensorType type = slot(loop.scan_inputs[i]).type;
      type.dims.erase(type.dims.begin() + loop.input_axes[i]);
      trial.bind(inputs[next++].name, unknown(std::move(type)));
    }
    const std::size_t depth = trial.state_.frames.size();
    while (trial.state_.frames.size() > depth || trial.state_.frames.back().next < trial.state_.frames.back().nodes->size()) trial.step();
    types.emplace();
    for (std::size_t i = 0; i < loop.stacked.size(); ++i) types->push_back(trial.slot(trial.frame_result((loop.is_scan ? 0 : 1) + carried.size() + i)).type);
  } catch (const NeedsElements&) {
    types.reset();
  } catch (const NeedsSizes&) {
    types.reset();
  } catch (const Error&) {
    types.reset();
  }
  state_.spent = trial.state_.spent;
  state_.made_bytes = trial.state_.made_bytes;
  state_.evaluated = trial.state_.evaluated;
  return types;
}

void Importer::bind_without_iteration(const Node& node, const Frame& frame, const std::vector<Operand>& carried) {
  const Frame::Loop& loop = *frame.loop;
  std::optional<std::vector<TensorType>> types;
  if (!loop.stacked.empty()) types = types_of_trial(frame, carried, false);
  if (!loop.stacked.empty() && !types && !loop.is_scan) types = types_of_trial(frame, carried, true);
  Lowering make(*this, node, 0);
  std::vector<Operand> results = carried;
  for (std::size_t i = 0; i < loop.stacked.size(); ++i) {
    TensorType type = types ? (*types)[i] : declared_type(node, loop.body->outputs[(loop.is_scan ? 0 : 1) + carried.size() + i]);
    const int axis = loop.is_scan ? make.axis(loop.output_axes[i], type.rank() + 1) : 0;
    type.dims.insert(type.dims.begin() + axis, 0);
    results.push_back(make.filled(type.dims, type.dtype, 0));
  }
  ++state_.frames.back().next;
  for (std::size_t o = 0; o < results.size(); ++o)
    if (!node.outputs[o].empty()) bind(node.outputs[o], results[o]);
}

}  // namespace cermet::onnx

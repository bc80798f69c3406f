#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::load_weights(Compilation& c) {
  const std::int64_t before = c.weights.bytes();
  for (std::size_t step = 0; step < c.choices.size(); ++step) {
    const std::vector<ValueId>& inputs = c.groups[step].operands;
    std::vector<TensorView>& views = c.loaded.emplace_back(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || c.graph().value(inputs[i]).kind != ValueKind::constant) continue;
      const Value& value = c.graph().value(inputs[i]);
      const WeightLayout* layout = c.layout_of(step, i);
      views[i] = c.device.computes() ? c.weights.get(c.graph(), inputs[i], layout)
                                     : TensorView(nullptr, value.type.dtype, cermet::bind(value.type.dims, {}));
    }
  }
  return size_text(c.weights.bytes() - before);
}

}  // namespace cermet

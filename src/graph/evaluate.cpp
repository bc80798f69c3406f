#include "graph/evaluate.hpp"

#include "base/buffer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

double work_of_definition(const Problem& problem) {
  double work = cost_of(problem).operations;
  for (const auto& input : problem.inputs)
    if (input) work += static_cast<double>(input->elements().constant());
  for (const TensorType& output : problem.outputs) {
    const auto elements = static_cast<double>(output.elements().constant());
    work += elements;
    if (problem.op->kind == OpKind::dft)
      work += 4 * elements * static_cast<double>(problem.input(0).elements().constant());  // sums, no fast transform
  }
  return work;
}

std::vector<TensorData> evaluate(const Problem& problem, const std::vector<const TensorData*>& inputs) {
  std::vector<TensorView> from, to;
  std::vector<OwnedTensor> memory;
  for (const TensorData* data : inputs)
    from.push_back(data ? TensorView(const_cast<std::byte*>(data->bytes().data()), data->type().dtype,
                                     cermet::bind(data->type().dims, {}))
                        : TensorView());
  from.resize(problem.inputs.size());
  for (const TensorType& type : problem.outputs)
    to.push_back(memory.emplace_back(type.dtype, cermet::bind(type.dims, {})).view);
  definition(problem).reference({from, to, problem.attributes});
  std::vector<TensorData> results;
  for (std::size_t o = 0; o < to.size(); ++o)
    results.emplace_back(
        problem.outputs[o],
        std::span(to[o].as<const std::byte>(), static_cast<std::size_t>(dense_bytes(to[o].dtype, to[o].shape))));
  return results;
}

}  // namespace cermet

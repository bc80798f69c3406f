#include "kernel/cuda/gemv/chosen.hpp"

#include "kernel/cuda/gemv/front.hpp"
#include "kernel/cuda/mixture/gating.hpp"

namespace cermet::cuda {

ChosenExperts::ChosenExperts(const Region& region, std::size_t node)
    : weights_(result_of(region, node, 0)), ids_(result_of(region, node, 1)) {
  const Problem& p = region.nodes[node].problem;
  logits_ = static_cast<int>(*region.operand_of(node, 0));
  bias_ = p.has(1) ? static_cast<int>(*region.operand_of(node, 1)) : -1;
  choices_ = p.attributes.integer("k");
  scale_ = static_cast<float>(p.attributes.number("scale"));
}

gating::Params ChosenExperts::params(const LaunchArgs& args) const {
  const auto view = [](std::span<const TensorView> views, int place) {
    return place < 0 ? nullptr : &views[static_cast<std::size_t>(place)];
  };
  return gating_params(*view(args.inputs, logits_), view(args.inputs, bias_), *view(args.outputs, weights_),
                       view(args.outputs, ids_), scale_);
}

}  // namespace cermet::cuda

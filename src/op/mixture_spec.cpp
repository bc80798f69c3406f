// What mixtures of experts cost.
#include <algorithm>
#include <utility>

#include "op/mixture.hpp"
#include "op/operator.hpp"
#include "op/products.hpp"

namespace cermet {
namespace {

double mixture_operations(const Problem& p) {
  const auto tokens = static_cast<double>(max_rows(p, mixture_x)), hidden = static_cast<double>(p.size(mixture_x, -1));
  const auto features = static_cast<double>(p.size(mixture_down, 2)), experts = static_cast<double>(p.size(mixture_router, 0));
  return 2 * tokens * hidden * (experts + 3 * features * static_cast<double>(p.attributes.integer("k")));
}

double mixture_bytes(const Problem& p) {
  const std::int64_t pairs = max_rows(p, mixture_x) * p.attributes.integer("k"), experts = p.size(mixture_router, 0);
  const double read = static_cast<double>(std::min(pairs, experts)) / static_cast<double>(experts);  // experts that can have tokens
  double bytes = 0;
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    if (p.has(i)) bytes += static_cast<double>(p.input(i).bytes().value(p.maximum)) * (i == mixture_gate_up || i == mixture_down ? read : 1);
  for (const TensorType& output : p.outputs) bytes += static_cast<double>(output.bytes().value(p.maximum));
  return bytes;
}

double mixture_rounding_depth(const Problem& p) {
  return static_cast<double>(p.size(mixture_x, -1) + p.size(mixture_down, 2) + 2 * p.size(mixture_router, 0) + 2 * p.attributes.integer("k")) + 32;
}

}  // namespace

OpSpec mixture_spec(OpSpec own) {
  own.category = "Mixture of experts";
  own.operations = mixture_operations;
  own.bytes = mixture_bytes;
  own.rounding_depth = mixture_rounding_depth;
  return own;
}

}  // namespace cermet

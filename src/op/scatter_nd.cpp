#include "op/infer.hpp"
#include "op/operator.hpp"

namespace cermet {
namespace {

std::vector<TensorType> infer(const Problem& p) { return {p.input(0)}; }

}  // namespace

OpSpec define_scatter_nd() {
  return {.category = "Data movement",
          .summary = "A tensor with slices replaced or reduced at rows of coordinates",
          .semantics = "",
          .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::many_to_many}},
          .outputs = {{"y", dtypes::any, "[..]", "result"}},
          .infer = infer,
          .reference = nullptr,
          .cases = nullptr};
}

}  // namespace cermet

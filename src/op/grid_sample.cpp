#include "op/infer.hpp"
#include "op/operator.hpp"

namespace cermet {
namespace {

std::vector<TensorType> infer(const Problem& p) { return {p.input(0)}; }

}  // namespace

OpSpec define_grid_sample() {
  return {.category = "Images",
          .summary = "Samples an image at the positions of a grid",
          .semantics = "",
          .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::many_to_many}},
          .outputs = {{"y", dtypes::any, "[..]", "result"}},
          .infer = infer,
          .reference = nullptr,
          .cases = nullptr};
}

}  // namespace cermet

#include "op/infer.hpp"
#include "op/operator.hpp"

namespace cermet {
namespace {

std::vector<TensorType> infer(const Problem& p) { return {p.input(0)}; }

}  // namespace

OpSpec define_rnn() {
  return {.category = "Recurrent",
          .summary = "Plain recurrent network over a sequence",
          .semantics = "",
          .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::many_to_many}},
          .outputs = {{"y", dtypes::any, "[..]", "result"}},
          .infer = infer,
          .reference = nullptr,
          .cases = nullptr};
}

}  // namespace cermet

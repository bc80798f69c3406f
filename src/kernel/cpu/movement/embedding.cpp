#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

void embedding(const LaunchArgs& args) {
  const TensorView &table = args.inputs[1], &y = args.outputs[0];
  const IndexList ids(args.inputs[0]);
  const Rows from(table), to(y);
  const RunConverter convert = real_converter(table.dtype, y.dtype);
  args.pool->parallel_for(ids.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      check_index("embedding", "0 (ids)", ids[i], from.count());
      convert(from.row(ids[i]), to.row(i), to.length());
    }
  });
}

}  // namespace

extern const Kernel movement_embedding{
    .name = "movement.embedding",
    .op = OpKind::embedding,
    .summary = "copies or converts the rows, spread over threads",
    .bind = [](const Problem&) -> Launcher { return embedding; },
};

}  // namespace cermet::cpu

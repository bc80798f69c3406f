// Host half of topk.
#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/reduce/topk.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/sampling/rows.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::reduce_topk_file {
namespace {

int threads_of(const Problem& p, const Config& config) {
  return row_shares(config, {p.size(0, -1) > 4096 ? 1024 : 256, 1}).threads;
}

/// A pass for each digit of the k-th, one to keep what is above it.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const double element = static_cast<double>(size_of(p.input(0).dtype)),
               row = static_cast<double>(p.size(0, -1)) * element;
  return row_seconds(*p.target, limits, {threads_of(p, config), 1},
                     bytes_of(p.input(0), p.maximum) / std::max(1.0, row), row, element + 1);
}

/// Places of the sort in shared memory; 0 where k is too large.
std::int64_t sorted_of(const Problem& p) {
  const std::int64_t k = p.attributes.integer("k");
  return k > topk::most_sorted
             ? 0
             : std::max<std::int64_t>(256, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(k))));
}

void launch(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &values = args.outputs[0], &ids = args.outputs[1];
  if (values.elements() == 0) return;
  const std::int64_t k = values.shape.back();
  require(x.shape.back() >= k, "topk: operand 0 (x): expected at least k = {} elements in a row, found {}", k,
          x.shape.back());
  AxesBuilder<3> rows;
  for (int a = 0; a + 1 < x.shape.rank(); ++a)
    rows.append(x.shape[a], {x.strides[a], values.strides[a], ids.strides[a]});
  const topk::Params params{x.data, values.data, ids.data, x.shape.back(), ids.dtype == DType::i64, rows.make()};
  args.queue->run(0, rows.count(), params);
}

}  // namespace

extern const Kernel reduce_topk;
const Kernel reduce_topk{
    .name = "reduce.topk",
    .op = OpKind::topk,
    .summary = "a block for each row: the rank of the k-th from counts of digits, then a sort of what is kept",
    .declines = [](const Problem& p) -> Decline {
      if (p.size(0, -1) >= std::int64_t{1} << 31) return "rows of 2^31 or more elements";
      return std::nullopt;
    },
    .bind = [](const Problem&) -> Launcher { return launch; },
    .programs = [](const Problem& p, const Config& config) -> std::vector<Program> {
      const std::int64_t sorted = sorted_of(p), rank_bytes = size_of(p.input(0).dtype) == 8 ? 16 : 8;
      const topk::Config device{.type = p.input(0).dtype,
                                .k = static_cast<int>(p.attributes.integer("k")),
                                .sorted = static_cast<int>(sorted),
                                .largest = p.attributes.flag("largest"),
                                .threads = threads_of(p, config)};
      return {{.header = "kernel/cuda/device/reduce/topk.cuh",
               .task = fmt::format("cermet::topk::Task<cermet::topk::Config{}>", config_text(device)),
               .threads = threads_of(p, config),
               .shared_bytes = (std::max<std::int64_t>(sorted, 1) + 32) * rank_bytes + 257 * 8}};
    },
    .configs = [](const Problem& p) { return row_configs(*p.target, false); },
    .cost = cost};

}  // namespace cermet::cuda::reduce_topk_file

// Host half of argmax.
#include "kernel/cuda/device/sampling/argmax.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/sampling/rows.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::sampling_argmax_file {
namespace {

/// Blocks of a walk that share a long row, which form no clusters there; 1 where there are none, and by default.
int pieces_of(const Config& config) { return static_cast<int>(config.find("pieces").value_or(1)); }

/// As many as run at once, and find work.
int most_pieces(const Problem& p) {
  const std::int64_t length = p.size(0, -1), rows = p.outputs[0].elements().value(p.maximum);
  if (length < 4096 || p.target->compute_capability < 90 || size_of(p.input(0).dtype) > 4) return 1;
  int pieces = 128;
  while (pieces > 1 && (rows * pieces > p.target->multiprocessors || length < pieces * 1024)) pieces /= 2;
  return pieces;
}

std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list = row_configs(*p.target, true);
  if (const int pieces = most_pieces(p); pieces > 1)
    list.insert(list.begin() + 1, Config{{"threads", 256}, {"cluster", 1}, {"pieces", pieces}});
  return list;
}

/// Rows as long as a vocabulary are shared by a cluster, where there are clusters: of fewer blocks where there are so
/// many rows that not all would run at once.
RowShares shares_of(const Problem& p, const Config& config) {
  const std::int64_t length = p.size(0, -1), rows = p.outputs[0].elements().value(p.maximum);
  if (length >= 16384 && p.target->compute_capability >= 90) {
    int cluster = 8;
    while (cluster > 1 && rows * cluster > p.target->multiprocessors) cluster /= 2;
    return row_shares(config, {cluster == 8 ? 512 : 1024, cluster});
  }
  return row_shares(config, {length > 4096 ? 1024 : 256, 1});
}

double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const double bytes = bytes_of(p.input(0), p.maximum),
               row = static_cast<double>(p.size(0, -1) * byte_size(p.input(0).dtype));
  return row_seconds(*p.target, limits, shares_of(p, config), bytes / std::max(1.0, row), row, 1);
}

void launch(const LaunchArgs& args, int cluster, int pieces) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  if (x.shape.back() == 0)
    fail(Status::invalid_argument, "argmax: operand 0 (x): expected at least one element in a row, found {}",
         x.shape.to_string());
  AxesBuilder<2> rows;
  bool vectors = is_aligned(x.data, 16);
  for (int a = 0; a < y.shape.rank(); ++a) {
    rows.append(y.shape[a], {x.strides[a], y.strides[a]});
    vectors = vectors && x.strides[a] * byte_size(x.dtype) % 16 == 0;
  }
  const argmax::Params params{x.data, y.data, x.shape.back(), y.dtype == DType::i64, vectors, rows.make()};
  const int shares = cluster * pieces;
  args.queue->run(0, rows.count() * shares, params);
}

}  // namespace

extern const Kernel sampling_argmax;
const Kernel sampling_argmax{
    .name = "sampling.argmax",
    .op = OpKind::argmax,
    .summary = "a block for each row, a cluster of 8 where rows are long, in a walk as many blocks as there are",
    .declines = [](const Problem& p) -> Decline {
      if (p.size(0, -1) >= std::int64_t{1} << 31) return "rows of 2^31 or more elements";
      return std::nullopt;
    },
    .bind = [](const Problem& p, const Config& config) -> Launcher {
      return [cluster = shares_of(p, config).cluster, pieces = pieces_of(config)](const LaunchArgs& args) {
        launch(args, cluster, pieces);
      };
    },
    .programs = [](const Problem& p, const Config& config) -> std::vector<Program> {
      const RowShares shares = shares_of(p, config);
      const int pieces = pieces_of(config);
      const argmax::Config device{.x = p.input(0).dtype,
                                  .smallest = p.attributes.flag("smallest"),
                                  .last = p.attributes.flag("select_last_index"),
                                  .threads = shares.threads,
                                  .cluster = shares.cluster,
                                  .pieces = pieces};
      return {{.header = "kernel/cuda/device/sampling/argmax.cuh",
               .task = fmt::format("cermet::argmax::Task<cermet::argmax::Config{}>", config_text(device)),
               .threads = shares.threads,
               .shared_bytes = 512,
               .cluster = shares.cluster,
               .walk = pieces > 1 ? std::optional(Walk{.meeting_bytes = 16}) : std::nullopt}};
    },
    .configs = configs,
    .cost = cost};

}  // namespace cermet::cuda::sampling_argmax_file

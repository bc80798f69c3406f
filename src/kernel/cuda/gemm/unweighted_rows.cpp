#include "kernel/cuda/gemm/unweighted_rows.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/gemm/unweighted_rows.hpp"
#include "kernel/cuda/gemm/stored_rows.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "op/grouped_work.hpp"
#include "op/operands.hpp"

namespace cermet::cuda {
namespace {

/// As many as any family takes.
constexpr ProductLoops loops{.gated = true, .results = 2, .unweighted = true};

class UnweightedRows {
 public:
  explicit UnweightedRows(const Region& region)
      : product_(region, loops), offsets_(region.problem().input(op::grouped_linear::offsets).dtype) {}
  Program program() const {
    const GeneratedType epilogue = product_.epilogue();
    return {.header = "kernel/cuda/device/gemm/unweighted_rows.cuh",
            .task = fmt::format("cermet::gemm::UnweightedRows<{}, {}>", device_name(offsets_), epilogue.name),
            .prelude = epilogue.source,
            .threads = gemm::unweighted_threads,
            .divides_warps = true};
  }
  void launch(const LaunchArgs& args, std::size_t program) const;

 private:
  Product product_;
  DType offsets_;
};

void UnweightedRows::launch(const LaunchArgs& args, std::size_t program) const {
  const TensorView &y = args.outputs[product_.y], &offsets = *product_.given(args, product_.at.offsets);
  if (y.elements() == 0) return;
  const std::optional<StoredRows> rows = StoredRows::of(product_, args, gemm::unweighted_run);
  CERMET_ASSERT(rows);  // of a matrix
  gemm::UnweightedParams p{};
  p.offsets = offsets.data;
  p.to = rows->to;
  std::ranges::copy(rows->extra, p.extra);
  p.groups = narrow(offsets.shape[0] - 2, "product", "groups");
  p.rows = narrow(rows->count, "product", "rows");
  p.columns = narrow(y.shape.back(), "product", "columns");
  p.vectors = rows->vectors;
  const std::int64_t items = div_up(rows->count * div_up(std::int64_t{p.columns}, std::int64_t{gemm::unweighted_run}),
                                    std::int64_t{gemm::unweighted_threads});
  args.queue->run(program, items, p);
  std::array<ByteRange, 1 + epilogue::most_extras> reads{byte_range(offsets)};
  const std::size_t extras = product_.extras().size();
  for (std::size_t i = 0; i < extras; ++i) reads[1 + i] = byte_range(product_.extra(args, i));
  const std::array written{byte_range(y), product_.second ? byte_range(args.outputs[product_.second->y]) : ByteRange{}};
  args.queue->declare(std::span(reads).first(1 + extras), written);
}

}  // namespace

Kernel with_unweighted_rows(const Kernel& product,
                            const std::function<MakesUnweighted(const Region&, const Config&)>& inside) {
  Kernel kernel = product;
  kernel.declines = [product](const Region& region) -> Decline {
    if (has_unweighted_group(region.problem()) && !region.operand_of(2))
      return "rows are sorted inside, and those of the last group have no weight";
    return product.declines(region);
  };
  kernel.programs = [product, inside](const Region& region, const Config& config) {
    std::vector<Program> list = product.programs(region, config);
    if (!has_unweighted_group(region.problem())) return list;
    list.push_back(UnweightedRows(region).program());
    list.back().fallback = inside && inside(region, config);
    return list;
  };
  kernel.bind = [product, inside](const Region& region, const Config& config) -> Launcher {
    Launcher launch = product.bind(region, config);
    if (!has_unweighted_group(region.problem())) return launch;
    return [launch = std::move(launch), unweighted = UnweightedRows(region),
            last = product.programs(region, config).size(),
            makes = inside ? inside(region, config) : MakesUnweighted()](const LaunchArgs& args) {
      launch(args);
      if (!makes || !makes(args)) unweighted.launch(args, last);
    };
  };
  return kernel;
}

}  // namespace cermet::cuda

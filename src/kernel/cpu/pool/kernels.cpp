// Pooling kernels: the engine for values, and a plain loop where the places of the largest elements are asked for.
#include <cmath>
#include <cstring>
#include <limits>

#include "format/element.hpp"
#include "kernel/cpu/pool/pool.hpp"
#include "op/schema/attributes.hpp"

namespace cermet::cpu {
namespace {

Launcher bind(const Problem& p, PoolKind kind) {
  Pooling pooling{kind, pool_window(p.attributes, p.input(0).rank())};
  if (kind == PoolKind::average) pooling.count_padding = p.attributes.flag("count_include_pad");
  if (kind == PoolKind::norm) pooling.power = static_cast<int>(p.attributes.integer("p"));
  return [pooling](const LaunchArgs& args) { pool(args, pooling); };
}

/// A run of results of max_pool with their places.
void max_with_indices(const LaunchArgs& args, const PoolWindow& all, bool columns, std::int64_t begin,
                      std::int64_t end) {
  const TensorView &values = args.inputs[0], &results = args.outputs[0];
  const SpatialView x = spatial_view(values, all.channels_last), y = spatial_view(results, all.channels_last);
  const SpatialView places = spatial_view(args.outputs[1], all.channels_last);
  const PoolWindow window = all.over(x.size);
  const std::size_t bytes = size_of(values.dtype);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t plane = i / y.positions(), n = plane / y.channels, c = plane % y.channels;
    const Spatial at = position_of(y.size, i % y.positions());
    std::int64_t best = -1, place = -1;
    double most = 0;
    for_window(window, x.size, at, [&](const Spatial& from) {
      const std::int64_t offset = x.offset(n, c, from);
      const double value = format::load_element(values.data, values.dtype, offset);
      if (best >= 0 && (std::isnan(most) || !(value > most || std::isnan(value)))) return;
      best = offset;
      most = value;
      place = columns ? (from[2] * x.size[1] + from[1]) * x.size[0] + from[0]
                      : (from[0] * x.size[1] + from[1]) * x.size[2] + from[2];
    });
    const std::int64_t to = y.offset(n, c, at);
    if (best < 0) format::store_element(results.data, results.dtype, to, -std::numeric_limits<double>::infinity());
    else
      std::memcpy(results.as<std::byte>() + to * static_cast<std::int64_t>(bytes),
                  values.as<std::byte>() + best * static_cast<std::int64_t>(bytes), bytes);
    args.outputs[1].as<std::int64_t>()[places.offset(n, c, at)] = best < 0 ? -1 : plane * x.positions() + place;
  }
}

Launcher bind_indices(const Problem& p) {
  return [window = pool_window(p.attributes, p.input(0).rank()),
          columns = p.attributes.integer("storage_order") == 1](const LaunchArgs& args) {
    args.pool->parallel_for(args.outputs[0].elements(), 256, [&](std::int64_t begin, std::int64_t end) {
      max_with_indices(args, window, columns, begin, end);
    });
  };
}

constexpr const char* const summary =
    "rows of x combined in vectors, along channels or, taken apart by stride, along the last axis; rows spread over "
    "threads";

}  // namespace

extern const Kernel pool_max;
const Kernel pool_max{.name = "pool.max",
                      .op = OpKind::max_pool,
                      .summary = summary,
                      .declines = [](const Problem& p) -> Decline {
                        if (p.attributes.flag("with_indices"))
                          return "the places of the largest elements are asked for";
                        return {};
                      },
                      .bind = [](const Problem& p) { return bind(p, PoolKind::max); },
                      .workspace = pool_workspace};
extern const Kernel pool_max_indices;
const Kernel pool_max_indices{.name = "pool.max_indices",
                              .op = OpKind::max_pool,
                              .summary = "one result after another, with its place; results spread over threads",
                              .declines = [](const Problem& p) -> Decline {
                                if (!p.attributes.flag("with_indices")) return "no places are asked for";
                                return {};
                              },
                              .bind = bind_indices};
extern const Kernel pool_average;
const Kernel pool_average{.name = "pool.average",
                          .op = OpKind::average_pool,
                          .summary = summary,
                          .bind = [](const Problem& p) { return bind(p, PoolKind::average); },
                          .workspace = pool_workspace};
extern const Kernel pool_norm;
const Kernel pool_norm{.name = "pool.norm",
                       .op = OpKind::lp_pool,
                       .summary = summary,
                       .bind = [](const Problem& p) { return bind(p, PoolKind::norm); },
                       .workspace = pool_workspace};

}  // namespace cermet::cpu

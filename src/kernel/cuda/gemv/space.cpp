// Configurations of gemv.hpp.
#include "kernel/cuda/gemv/gemv.hpp"

namespace cermet::cuda {

/// Two of three stages: what is on its way beyond that only makes other accesses of the SM wait longer. All for types
/// that nobody measured.
int FewRows::usual_in_flight(const Region& region) { return size_of(region.problem().input(1).dtype) <= 2 ? 2 : 0; }

std::vector<Config> FewRows::configs(const Region& region, bool compact) {
  if (compact) return {{}, {{"stream", 1}}, {{"stream", 1}, {"ring_kib", 48}}};
  std::vector<Config> list{{}, {{"stream", 0}}};
  if (FewRows(region).stream_) list.push_back({{"stream", 1}});
  // Smaller stages, for a kernel that shares them among tasks: last, so that nobody else takes it.
  if (FewRows(region).stream_) list.push_back({{"stream", 1}, {"ring_kib", 48}});
  return list;
}

/// A rotation behind the product pairs the rows of a stage: beside the usual sizes it has those of a kernel that shares
/// stages among tasks.
ConfigSpace FewRows::space(const Region& region, bool compact) {
  static constexpr int usual_ring = gemv::usual_ring_bytes >> 10, most_held = 128;
  const FewRows own(region, {}, compact);
  const int in_flight = usual_in_flight(region);
  ConfigSpace space;
  space.add(ConfigField::set("stream", compact       ? std::vector<std::int64_t>{1}
                                       : own.stream_ ? std::vector<std::int64_t>{0, 1}
                                                     : std::vector<std::int64_t>{0}));
  space.add(ConfigField::set("in_flight", {0, 1, 2}).with_usual(in_flight));
  space.constrain("weights that do not stream have no stages",
                  [in_flight](const Config& c) { return c.at("stream") == 1 || c.at("in_flight") == in_flight; });
  const auto add_ring = [&](std::vector<std::int64_t> kib) {
    space.add(ConfigField::set("ring_kib", std::move(kib)).with_usual(usual_ring));
    space.constrain("weights that do not stream have no ring",
                    [](const Config& c) { return c.at("stream") == 1 || c.at("ring_kib") == usual_ring; });
  };
  if (own.heads_) {
    add_ring({48});
    return space;
  }
  const int usual = gemv::usual_warps(static_cast<int>(region.problem().size(1, -1)));
  space.add(ConfigField::powers("warps", 4, 16).with_usual(usual));
  add_ring({48, 64, 128, 192});
  space.constrain(fmt::format("a thread's part of a row takes at most {} registers", most_held),
                  [region, compact](const Config& c) { return FewRows(region, c, compact).held(region) <= most_held; });
  space.constrain("the stages fit shared memory", [region, compact](const Config& c) {
    return FewRows(region, c, compact).shape(region).shared_bytes() <= region.target()->shared_bytes;
  });
  return space;
}

}  // namespace cermet::cuda

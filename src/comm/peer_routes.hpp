// Which way a call takes between GPUs: the one with the least expected time, by times that were measured on this host,
// or by assumed constants.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "comm/call.hpp"

namespace cermet::comm {

enum class Route : std::uint8_t {
  nccl,
  stamped,   ///< peer memory: every part goes to all that need it, at once, in words that say by themselves that they
             ///< have come
  one_shot,  ///< the same with a flag behind the data, which is half as many bytes
  two_shot,  ///< all_reduce over peer memory in two exchanges: each rank reduces a share and gives it to all
};
inline constexpr Route all_routes[] = {Route::nccl, Route::stamped, Route::one_shot, Route::two_shot};
std::string_view name_of(Route route);  ///< "nccl", "stamped", "one-shot", "two-shot"

/// Whether calls of this kind have this way at all.
bool has_route(Collective kind, Route route);

/// A call takes `seconds` and what its bytes take at `bytes_per_second`.
struct RouteModel {
  double seconds = 0, bytes_per_second = 0;
  double time(double bytes) const { return seconds + bytes / bytes_per_second; }
};

/// A measured call; `bytes`: of the larger of operand and result.
struct RoutePoint {
  double bytes = 0, seconds = 0;
};
/// Of each operator and route by growing bytes.
using RouteTimes = std::map<std::pair<Collective, Route>, std::vector<RoutePoint>>;

/// Both constants such that the sum of squared relative errors is least; neither is negative. Infinite bytes a second
/// where times do not grow.
RouteModel fitted(std::span<const RoutePoint> points);

class Routes {
 public:
  /// `forced`: calls over peer memory that have this way take it whatever it costs.
  explicit Routes(RouteTimes measured = {}, std::optional<Route> forced = {})
      : measured_(std::move(measured)), forced_(forced) {}
  bool are_measured() const { return !measured_.empty(); }
  /// Between measured sizes as the straight line between both; by assumed constants where the operator was not measured
  /// by every way that it has.
  double seconds(Route route, const DenseCall& call) const;
  /// The way over peer memory that takes the least time.
  Route over_peer_memory(const DenseCall& call) const;
  /// Whether a call is sooner done through peer memory than by NCCL, where both are there.
  bool takes_peer_memory(const DenseCall& call) const;

 private:
  bool is_measured(Collective kind, bool with_nccl) const;
  RouteTimes measured_;
  std::optional<Route> forced_;
};

}  // namespace cermet::comm

#include "comm/peer_routes.hpp"

#include <algorithm>
#include <limits>

namespace cermet::comm {
namespace {

// Peer memory: assumed, not measured over NVLink (docs/notes/collectives.md). An exchange is a flag's way and the launch; bytes are those that a rank sends, at
// a third of what a direction of an H200's 18 links has.
constexpr RouteModel exchange{.seconds = 3.5e-6, .bytes_per_second = 150e9};
// No fence between data and flag, and twice the bytes.
constexpr RouteModel stamped_exchange{.seconds = 2.5e-6, .bytes_per_second = 75e9};
// NCCL between two H200s, of the record bench/results/h200/compare/collectives.txt: 7.9 us at 8 KiB, 14.3 us at 1 MiB. Its larger messages are faster a byte,
// and take it anyway.
constexpr RouteModel nccl_of_two{.seconds = 7.8e-6, .bytes_per_second = 160e9};

double sent_at_once(const DenseCall& call) { return static_cast<double>(call.x_bytes()) * (call.size - 1); }
double sent_in_shares(const DenseCall& call) { return 2.0 * sent_at_once(call) / call.size; }

double assumed(Route route, const DenseCall& call) {
  switch (route) {
    case Route::nccl: return nccl_of_two.time(sent_in_shares(call));
    case Route::stamped: return stamped_exchange.time(sent_at_once(call));
    case Route::one_shot: return exchange.time(sent_at_once(call));
    case Route::two_shot: break;
  }
  return exchange.seconds + exchange.time(sent_in_shares(call));
}

/// On the line through the neighbours; as long as the smallest below it, and along the last line above the largest.
double between(std::span<const RoutePoint> points, double bytes) {
  if (points.size() == 1 || bytes <= points.front().bytes) return points.front().seconds;
  auto right = std::ranges::lower_bound(points, bytes, {}, &RoutePoint::bytes);
  if (right == points.end()) --right;
  const RoutePoint &a = *(right - 1), &b = *right;
  return std::max(a.seconds + (b.seconds - a.seconds) * (bytes - a.bytes) / (b.bytes - a.bytes), bytes > b.bytes ? b.seconds : 0);
}

}  // namespace

std::string_view name_of(Route route) {
  switch (route) {
    case Route::nccl: return "nccl";
    case Route::stamped: return "stamped";
    case Route::one_shot: return "one-shot";
    case Route::two_shot: break;
  }
  return "two-shot";
}

bool has_route(Collective kind, Route route) {
  if (route == Route::two_shot) return kind == Collective::all_reduce;
  return route != Route::stamped || !has_root(kind);
}

RouteModel fitted(std::span<const RoutePoint> points) {
  // Of a + b x = t, divided by t.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const RoutePoint& point : points) {
    const double a = 1 / point.seconds, b = point.bytes / point.seconds;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  double alpha = a1 / aa, beta = 0;
  if (points.size() > 1 && determinant > 1e-9 * aa * bb) {
    alpha = (a1 * bb - b1 * ab) / determinant;
    beta = (aa * b1 - ab * a1) / determinant;
    if (alpha < 0) {
      alpha = 0;
      beta = b1 / bb;
    } else if (beta < 0) {
      alpha = a1 / aa;
      beta = 0;
    }
  }
  return {alpha, beta > 0 ? 1 / beta : std::numeric_limits<double>::infinity()};
}

bool Routes::is_measured(Collective kind, bool with_nccl) const {
  return std::ranges::all_of(all_routes, [&](Route route) {
    return !has_route(kind, route) || (route == Route::nccl && !with_nccl) || measured_.contains({kind, route});
  });
}

double Routes::seconds(Route route, const DenseCall& call) const {
  // Of one way measured and of another one assumed times are not compared, but for the ways over peer memory among themselves.
  const bool comparable = is_measured(call.kind, true) || (route != Route::nccl && is_measured(call.kind, false));
  if (!comparable) return assumed(route, call);
  return between(measured_.at({call.kind, route}), static_cast<double>(std::max(call.x_bytes(), call.y_bytes())));
}

Route Routes::over_peer_memory(const DenseCall& call) const {
  if (forced_ && has_route(call.kind, *forced_)) return *forced_;
  Route best = Route::one_shot;
  for (const Route route : {Route::stamped, Route::two_shot})
    if (has_route(call.kind, route) && seconds(route, call) < seconds(best, call)) best = route;
  return best;
}

bool Routes::takes_peer_memory(const DenseCall& call) const { return seconds(over_peer_memory(call), call) < seconds(Route::nccl, call); }

}  // namespace cermet::comm

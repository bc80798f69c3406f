#include "comm/peer_routes.hpp"

#include <algorithm>
#include <limits>

namespace cermet::comm {
namespace {

// Between two H200s, by the record bench/results/h200/compare/routes-of-two-gpus.txt: a call of few bytes, and the
// bytes that a rank sends.
constexpr RouteModel stamped_exchange{.seconds = 3.0e-6, .bytes_per_second = 170e9},
    exchange{.seconds = 3.9e-6, .bytes_per_second = 250e9}, shares{.seconds = 6.3e-6, .bytes_per_second = 320e9},
    nccl_of_two{.seconds = 6.5e-6, .bytes_per_second = 220e9}, nccl_pairs{.seconds = 7.0e-6, .bytes_per_second = 280e9};

/// What is sent over peer memory, as it counts: twice between more than two ranks, which was not measured, so that
/// large messages are the library's there.
double weighed(double bytes, const DenseCall& call) { return call.size > 2 ? 2 * bytes : bytes; }

/// Where a rank gives each other one a piece of its own, the piece for itself stays.
double sent_at_once(const DenseCall& call) {
  const auto others = static_cast<double>(call.size - 1), bytes = static_cast<double>(call.x_bytes());
  return cuts_operand(call.kind) ? bytes * others / call.size : bytes * others;
}
double sent_in_shares(const DenseCall& call) {
  return call.kind == Collective::all_reduce ? 2.0 * sent_at_once(call) / call.size : sent_at_once(call);
}

double assumed(Route route, const DenseCall& call) {
  switch (route) {
    case Route::nccl:
      return (call.kind == Collective::all_to_all ? nccl_pairs : nccl_of_two).time(sent_in_shares(call));
    case Route::stamped: return stamped_exchange.time(weighed(sent_at_once(call), call));
    case Route::one_shot: return exchange.time(weighed(sent_at_once(call), call));
    case Route::two_shot: break;
  }
  return shares.time(weighed(sent_in_shares(call), call));
}

/// On the line through the neighbours; as long as the smallest below it, and along the last line above the largest.
double between(std::span<const RoutePoint> points, double bytes) {
  if (points.size() == 1 || bytes <= points.front().bytes) return points.front().seconds;
  auto right = std::ranges::lower_bound(points, bytes, {}, &RoutePoint::bytes);
  if (right == points.end()) --right;
  const RoutePoint &a = *(right - 1), &b = *right;
  return std::max(a.seconds + (b.seconds - a.seconds) * (bytes - a.bytes) / (b.bytes - a.bytes),
                  bytes > b.bytes ? b.seconds : 0);
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
  // Of one way measured and of another one assumed times are not compared, but for the ways over peer memory among
  // themselves.
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

bool Routes::takes_peer_memory(const DenseCall& call) const {
  return seconds(over_peer_memory(call), call) < seconds(Route::nccl, call);
}

}  // namespace cermet::comm

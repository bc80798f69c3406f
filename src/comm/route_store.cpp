#include "comm/route_store.hpp"

#include <cmath>

#include "base/log.hpp"
#include "io/digest.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"
#include "jit/cache.hpp"

namespace cermet::comm {
namespace {

constexpr std::int64_t version = 1, most_points = 64;
constexpr JsonLimits small_file{.max_bytes = 1 << 18, .max_values = 1 << 13, .max_depth = 5};
constexpr double least_seconds = 1e-8, most_seconds = 1e3;

bool is_plausible(double seconds) {
  return std::isfinite(seconds) && seconds >= least_seconds && seconds <= most_seconds;
}

std::string plain_name(std::string_view text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ? c : '-';
  return name;
}

void require_string(const Json& value, std::string_view expected) {
  if (value.as_string() != expected) value.unexpected(fmt::format("\"{}\"", expected));
}

Collective collective_of(const Json& value) {
  for (int k = 0; k <= static_cast<int>(Collective::all_to_all); ++k)
    if (value.as_string() == name_of(static_cast<Collective>(k))) return static_cast<Collective>(k);
  value.unexpected("an operator that communicates");
}

Route route_of(const Json& value) {
  for (const Route route : all_routes)
    if (value.as_string() == name_of(route)) return route;
  value.unexpected("nccl, stamped, one-shot or two-shot");
}

std::vector<RoutePoint> points_of(const Json& list) {
  std::vector<RoutePoint> points;
  if (list.as_array().size() == 0 || list.size() > most_points)
    list.unexpected(fmt::format("1 to {} pairs of bytes and seconds", most_points));
  for (const Json pair : list) {
    if (pair.as_array().size() != 2) pair.unexpected("bytes and seconds");
    const RoutePoint point{static_cast<double>(pair.at(std::size_t{0}).as_integer(1, std::int64_t{1} << 50)),
                           pair.at(std::size_t{1}).as_number()};
    if (!is_plausible(point.seconds))
      pair.at(std::size_t{1}).unexpected(fmt::format("seconds from {:g} to {:g}", least_seconds, most_seconds));
    if (!points.empty() && point.bytes <= points.back().bytes) pair.unexpected("more bytes than before");
    points.push_back(point);
  }
  return points;
}

}  // namespace

std::filesystem::path routes_file(const Device& device, int ranks, bool shared) {
  const std::filesystem::path& folder = jit::DiskCache::process().folder();
  if (folder.empty() || !device.target()) return {};
  return folder / jit::DiskCache::limits_folder /
         fmt::format("{} ranks{}, {}, driver {}.json", ranks, shared ? " on fewer" : "",
                     plain_name(device.target()->name), plain_name(device.driver_version()));
}

void store_routes(const Device& device, int ranks, const std::filesystem::path& file, const RouteTimes& times) {
  JsonValue rows = JsonValue::array();
  for (const auto& [what, points] : times) {
    JsonValue pairs = JsonValue::array();
    for (const RoutePoint& point : points) {
      require(is_plausible(point.seconds), "times of {} by {}: expected seconds from {:g} to {:g}, found {}",
              name_of(what.first), name_of(what.second), least_seconds, most_seconds, point.seconds);
      JsonValue pair = JsonValue::array();
      pair.push_back(static_cast<std::int64_t>(point.bytes));
      pair.push_back(point.seconds);
      pairs.push_back(std::move(pair));
    }
    rows.push_back({{"op", name_of(what.first)}, {"route", name_of(what.second)}, {"times", std::move(pairs)}});
  }
  const JsonValue json{{"cermet_routes", version},
                       {"device", device.target()->name},
                       {"driver", device.driver_version()},
                       {"ranks", ranks},
                       {"rows", std::move(rows)}};
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) fail(Status::io, "{}: {}", file.parent_path().string(), error.message());
  write_file_atomically(file, json.dump() + "\n");
}

RouteTimes read_routes(const Device& device, int ranks, const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const JsonDocument document = JsonDocument::read(file, small_file);
  const Json root = document.root().as_object();
  root.at("cermet_routes").as_integer(version, version);
  require_string(root.at("device"), device.target()->name);
  require_string(root.at("driver"), device.driver_version());
  root.at("ranks").as_integer(ranks, ranks);
  RouteTimes times;
  for (const Json row : root.at("rows").as_array()) {
    const std::pair what(collective_of(row.at("op")), route_of(row.at("route")));
    if (times.contains(what)) row.refuse("given twice");
    times[what] = points_of(row.at("times"));
  }
  return times;
}

RouteTimes agreed_routes(Communicator& host, const Device& device, bool shared) {
  RouteTimes times;
  std::string text;
  try {
    if (const std::filesystem::path file = routes_file(device, host.size(), shared); !file.empty())
      times = read_routes(device, host.size(), file);
  } catch (const Error& error) {
    log().warn("measured times of collectives are not used, `cermet bench comm --store` measures again: {}",
               error.what());
  }
  for (const auto& [what, points] : times) {
    text += fmt::format("{} {}", name_of(what.first), name_of(what.second));
    for (const RoutePoint& point : points) text += fmt::format(" {} {}", point.bytes, point.seconds);
  }
  const std::vector<std::string> all = host.gather_text(digest(text));
  if (std::ranges::adjacent_find(all, std::not_equal_to<>()) == all.end()) return times;
  if (host.rank() == 0)
    log().warn("measured times of collectives are not used: expected the same on every rank, found others");
  return {};
}

}  // namespace cermet::comm

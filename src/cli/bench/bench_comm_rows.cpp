#include "cli/bench/bench_comm_rows.hpp"

#include <cmath>

#include "base/text.hpp"
#include "cli/ui/line_plot.hpp"
#include "cli/ui/text_output.hpp"

namespace cermet::cli {
namespace {

std::string label_of(const CommRow& row) {
  return row.route ? fmt::format("{} {}", row.name, name_of(*row.route)) : row.name;
}

double rate_of(const CommRow& row) { return static_cast<double>(row.timing.bytes) / row.timing.seconds; }

double bus_rate_of(const CommRow& row, int ranks) { return rate_of(row) * comm::bus_factor(row.kind, ranks); }

Json row_json(const CommRow& row, int ranks) {
  Json json{{"op", row.name},
            {"bytes", row.timing.bytes},
            {"seconds", row.timing.seconds},
            {"calls", row.timing.calls},
            {"bytes_per_second", rate_of(row)},
            {"bus_bytes_per_second", bus_rate_of(row, ranks)}};
  if (row.route) json["route"] = name_of(*row.route);
  return json;
}

/// Both constants of each operator and route, in JSON and as a table.
Json fits_of(const CommRows& measured, Table& table) {
  Json fits = Json::array();
  table.row({"operator", "route", "alpha", "beta"});
  for (const auto& [what, points] : times_of(measured)) {
    const comm::RouteModel model = comm::fitted(points);
    const bool grows = std::isfinite(model.bytes_per_second);
    Json fit{{"op", name_of(what.first)}, {"route", name_of(what.second)}, {"seconds", model.seconds}};
    if (grows) fit["bytes_per_second"] = model.bytes_per_second;
    fits.push_back(std::move(fit));
    table.row({std::string(name_of(what.first)), std::string(name_of(what.second)), seconds_text(model.seconds),
               grows ? bytes_text(model.bytes_per_second) + "/s" : "no slower with size"});
  }
  return fits;
}

}  // namespace

comm::RouteTimes times_of(const CommRows& measured) {
  comm::RouteTimes times;
  for (const CommRow& row : measured.rows) {
    if (!row.route) continue;
    std::vector<comm::RoutePoint>& points = times[{row.kind, *row.route}];
    // Sizes are rounded up to what ranks share evenly, and two may become one.
    if (points.empty() || points.back().bytes < static_cast<double>(row.timing.bytes))
      points.push_back({static_cast<double>(row.timing.bytes), row.timing.seconds});
  }
  return times;
}

void print(Console& console, const CommRows& measured) {
  Json rows = Json::array();
  Table table, fit_table;
  table.row({"operator", "size", "time", "rate", "bus rate"});
  for (const CommRow& row : measured.rows) {
    table.row({label_of(row), bytes_text(static_cast<double>(row.timing.bytes)), seconds_text(row.timing.seconds),
               bytes_text(rate_of(row)) + "/s", bytes_text(bus_rate_of(row, measured.ranks)) + "/s"});
    rows.push_back(row_json(row, measured.ranks));
  }
  const bool has_routes = !measured.rows.empty() && measured.rows.front().route;
  const Json fits = fits_of(measured, fit_table);
  if (console.json()) {
    Json json{{"engine", measured.engine},
              {"ranks", measured.ranks},
              {"dtype", measured.dtype},
              {"checked_calls", measured.checked},
              {"rows", rows}};
    if (has_routes) json.update({{"fits", fits}, {"missing", measured.missing}});
    if (!measured.stored.empty()) json["stored"] = measured.stored;
    return console.write_json(json);
  }
  if (measured.checked > 0) console.print("{} checks passed on each of {} ranks\n", measured.checked, measured.ranks);
  console.print("{} ranks, engine {}, {}\n{}", measured.ranks, measured.engine, measured.dtype, table.to_string());
  for (const std::string& one : measured.missing) console.print("not measured: {}\n", one);
  if (has_routes) console.print("time = alpha + bytes / beta, fitted\n{}", fit_table.to_string());
  if (!measured.stored.empty()) console.print("stored in {}\n", measured.stored);
}

void plot(Console& console, const std::string& file, const CommRows& measured) {
  LinePlot plot{.title = fmt::format("{} ranks, engine {}, {}", measured.ranks, measured.engine, measured.dtype),
                .x_label = "bytes",
                .lines = {}};
  for (const CommRow& row : measured.rows) {
    const std::string label = label_of(row);
    if (plot.lines.empty() || plot.lines.back().name != label) plot.lines.push_back({label, {}, {}});
    plot.lines.back().points.emplace_back(row.timing.bytes, row.timing.seconds);
  }
  write_text_output(console, file, svg_of(plot));
}

}  // namespace cermet::cli

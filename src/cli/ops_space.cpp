#include "cli/ops_space.hpp"

#include <algorithm>

#include "select/select.hpp"

namespace cermet::cli {
namespace {

struct KernelSpace {
  const Kernel* kernel;
  ConfigSpace space;
  std::size_t points;
};

std::vector<KernelSpace> spaces_of(const Region& region, int threads) {
  std::vector<KernelSpace> list;
  for (const Candidate& candidate : explain_selection(region).candidates) {
    if (candidate.decline) continue;
    ConfigSpace space = space_of(*candidate.kernel, region, threads);
    const std::size_t points = space.points().size();
    list.push_back({candidate.kernel, std::move(space), points});
  }
  return list;
}

Json space_json(const KernelSpace& of) {
  Json fields = Json::array(), constraints = Json::array(), points = Json::array();
  for (const ConfigField& field : of.space.fields()) {
    Json values = Json::array();
    for (const std::int64_t value : field.values) values.push_back(value);
    fields.push_back(
        {{"field", field.name}, {"values", std::move(values)}, {"usual", field.usual ? Json(*field.usual) : Json()}});
  }
  for (const ConfigConstraint& constraint : of.space.constraints()) constraints.push_back(constraint.text);
  for (const Config& point : of.space.points()) points.push_back(point.to_string());
  return {{"kernel", of.kernel->name},
          {"fields", std::move(fields)},
          {"constraints", std::move(constraints)},
          {"points", std::move(points)}};
}

std::string space_text(const KernelSpace& of) {
  if (of.space.fields().empty()) return fmt::format("{}: runs in one way\n", of.kernel->name);
  Table table;
  for (const ConfigField& field : of.space.fields())
    table.row({field.name, field.text, field.usual ? fmt::format("{} where it is not named", *field.usual) : ""});
  std::string text = fmt::format("{}: {} of {} combinations\n{}", of.kernel->name, of.points, of.space.combinations(),
                                 table.to_string());
  if (of.space.is_listed() && of.space.fields().size() > 1) text += "  those that `cermet explain op` lists\n";
  for (const ConfigConstraint& constraint : of.space.constraints())
    text += fmt::format("  where {}\n", constraint.text);
  return text;
}

}  // namespace

void print_spaces(Console& console, const Region& region, int threads) {
  const std::vector<KernelSpace> spaces = spaces_of(region, threads);
  if (spaces.empty())
    fail(Status::unsupported, "--space: expected a call that a kernel takes, found {}: {}", region.to_string(),
         declines_of(region));
  if (console.json()) {
    Json list = Json::array();
    for (const KernelSpace& space : spaces) list.push_back(space_json(space));
    return console.write_json({{"problem", region.to_string()}, {"spaces", std::move(list)}});
  }
  console.print("{}\n\n", region.to_string());
  for (const KernelSpace& space : spaces) console.print("{}\n", space_text(space));
}

}  // namespace cermet::cli

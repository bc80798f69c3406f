// Models of costs against the recorded results of the GPU suite: how close they are, and that nothing slower is chosen
// because of them.
#include <gtest/gtest.h>

#include <map>

#include "device/device.hpp"
#include "io/json_file.hpp"
#include "op/schema/region_text.hpp"
#include "select/margin.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

constexpr std::string_view library = "cublaslt.linear";

struct Row {
  std::string name;
  Region region;
  std::map<std::string, double, std::less<>> seconds;  ///< by kernel
};

/// Adds what was recorded of the same products beside the suite, by kernels that it did not run: in the kernels' own
/// choices of configurations.
void add_others(std::vector<Row>& rows, std::string_view file) {
  const auto document =
      JsonDocument::read(std::filesystem::path(CERMET_SOURCE_DIR) / "bench/results/h200/compare" / file);
  for (const Json json : document.root().at("operators").as_array()) {
    const auto row = std::ranges::find(rows, json.at("name").as_string(), &Row::name);
    if (row != rows.end() && !json.find("config"))
      row->seconds.try_emplace(std::string(json.at("kernel").as_string()), json.at("seconds").as_number());
  }
}

/// Products of one type by the kernel that the suite ran, by the library where it is a rival of the same type, and by
/// others that were recorded.
std::vector<Row> recorded_products(const Target* target) {
  const auto document = JsonDocument::read(std::filesystem::path(CERMET_SOURCE_DIR) / "bench/results/h200/h200.json");
  std::vector<Row> rows;
  for (const Json json : document.root().at("operators").as_array()) {
    if (!json.at("group").as_string().starts_with("products ")) continue;
    Row row{std::string(json.at("name").as_string()), parse_region(json.at("problem").as_string()), {}};
    row.region.set_target(target);
    row.region.nodes[0].problem.constant_inputs = 2;
    row.seconds[std::string(json.at("kernel").as_string())] = json.at("seconds").as_number();
    const auto rival = json.at("rivals").find("cuBLASLt");
    if (rival && json.at("group").as_string() == "products bf16")
      row.seconds.try_emplace(std::string(library), rival->at("seconds").as_number());
    rows.push_back(std::move(row));
  }
  add_others(rows, "first-by-order.json");
  add_others(rows, "few-rows.json");
  return rows;
}

TEST(Record, ModelsAreAsCloseAsTheirMarginsSay) {
  const auto device = make_null_device(90);
  const DeviceLimits limits = limits_of(device->target());
  int compared = 0;
  for (const Row& row : recorded_products(device->target()))
    for (const Candidate& candidate : explain_selection(row.region).candidates) {
      const auto recorded = row.seconds.find(candidate.kernel->name);
      if (recorded == row.seconds.end()) continue;
      const double margin = kernel_margin(*candidate.kernel, *candidate.kernel, device->target());
      EXPECT_LE(margin, 0.2) << candidate.kernel->name << " is in the record and can be checked";
      const double ratio = candidate.configs.at(0).seconds / recorded->second;
      EXPECT_GE(ratio, 1 - margin) << row.name << ", " << candidate.kernel->name;
      EXPECT_LE(ratio, 1 / (1 - margin)) << row.name << ", " << candidate.kernel->name;
      ++compared;
    }
  EXPECT_GE(compared, 180) << "108 products, 36 of bf16 by the library, and 36 of few rows by tiles";
}

/// Seconds of products by configuration, of one run that compared tiles; "default" is the kernel's own choice.
std::map<std::string, std::map<std::string, double>> recorded_tiles() {
  std::map<std::string, std::map<std::string, double>> tiles;
  const auto document =
      JsonDocument::read(std::filesystem::path(CERMET_SOURCE_DIR) / "bench/results/h200/compare/hopper-tiles.json");
  for (const Json json : document.root().at("operators").as_array())
    tiles[std::string(json.at("name").as_string())][std::string(json.at("config").as_string())] =
        json.at("seconds").as_number();
  return tiles;
}

/// Kernels of one row were recorded in runs of their own, which differ by up to this: what is slower by less, the order
/// decides.
constexpr double other_runs = 0.1;

TEST(Record, NothingIsChosenThatWasRecordedSlower) {
  const auto device = make_null_device(90);
  const auto tiles = recorded_tiles();
  int beside_others = 0;
  for (const Row& row : recorded_products(device->target())) {
    const Choice choice = select_kernel(row.region);
    if (!choice.config.empty()) {
      const std::string config = choice.config.to_string();
      ASSERT_TRUE(tiles.contains(row.name) && tiles.at(row.name).contains(config))
          << row.name << ", " << config << ": not recorded";
      EXPECT_LT(tiles.at(row.name).at(config), tiles.at(row.name).at("default")) << row.name << ", " << config;
      continue;
    }
    const auto chosen = row.seconds.find(choice.kernel->name);
    ASSERT_NE(chosen, row.seconds.end()) << row.name << ": " << choice.kernel->name << " was not recorded";
    for (const auto& [kernel, seconds] : row.seconds) {
      if (kernel == library || kernel == choice.kernel->name) continue;
      EXPECT_LE(chosen->second, seconds / (1 - other_runs))
          << row.name << ": " << choice.kernel->name << " in place of " << kernel;
      ++beside_others;
    }
  }
  EXPECT_GE(beside_others, 42) << "docs/notes/selection.md names them";
}

}  // namespace
}  // namespace cermet

// Names and places that pipeline.hpp declares.
#include <array>
#include <utility>

#include "base/error.hpp"
#include "quant/pipeline.hpp"

namespace cermet {
namespace {

constexpr std::array<std::pair<std::string_view, AntiOutlier>, 5> names{{
    {"none", AntiOutlier::none},
    {"clamp", AntiOutlier::clamp},
    {"smooth", AntiOutlier::smooth},
    {"both", AntiOutlier::both},
    {"auto", AntiOutlier::automatic},
}};

}  // namespace

std::string_view name_of(AntiOutlier choice) { return names.at(static_cast<std::size_t>(choice)).first; }

std::optional<AntiOutlier> anti_outlier_named(std::string_view name) {
  for (const auto& [known, choice] : names)
    if (known == name) return choice;
  return std::nullopt;
}

std::filesystem::path working_folder(const std::filesystem::path& out) {
  std::filesystem::path folder = out.has_filename() ? out : out.parent_path();  // "out/" names the same folder
  folder += ".partial";
  return folder;
}

std::filesystem::path layer_file(const std::filesystem::path& working, std::int64_t layer) { return working / fmt::format("layer-{:04}.safetensors", layer); }
std::filesystem::path result_file(const std::filesystem::path& working, std::int64_t layer) { return working / fmt::format("layer-{:04}.json", layer); }

}  // namespace cermet

#include "cli/ui/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "cli/ui/console.hpp"

namespace cermet::cli {
namespace {

constexpr int colour_count = 8;
constexpr double plot_left = 80, plot_top = 50, plot_width = 620, plot_height = 320, legend_step = 18;

// As tools/plots.py draws. Plain colours rather than variables, which some viewers do not know.
constexpr const char* plot_style =
    R"(<style>text{font:12px system-ui,"Segoe UI","DejaVu Sans",Arial,sans-serif}.title{font-size:15px;font-weight:600}
path{fill:none;stroke-width:2}.grid{stroke-width:1}.limit{stroke-dasharray:5 4;stroke-width:1.5}
text{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#d8dee4}.limit{stroke:#59636e}.back{fill:#ffffff}
.l0{stroke:#0969da}.l1{stroke:#bc4c00}.l2{stroke:#1a7f37}.l3{stroke:#8250df}.l4{stroke:#7d6608}.l5{stroke:#cf222e}.l6{stroke:#116b72}.l7{stroke:#99286e}
.f0{fill:#0969da}.f1{fill:#bc4c00}.f2{fill:#1a7f37}.f3{fill:#8250df}.f4{fill:#7d6608}.f5{fill:#cf222e}.f6{fill:#116b72}.f7{fill:#99286e}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9198a1}.grid{stroke:#30363d}.limit{stroke:#9198a1}.back{fill:#0d1117}
.l0{stroke:#58a6ff}.l1{stroke:#f0883e}.l2{stroke:#3fb950}.l3{stroke:#bc8cff}.l4{stroke:#d4b106}.l5{stroke:#ff7b72}.l6{stroke:#39c5cf}.l7{stroke:#f778ba}
.f0{fill:#58a6ff}.f1{fill:#f0883e}.f2{fill:#3fb950}.f3{fill:#bc8cff}.f4{fill:#d4b106}.f5{fill:#ff7b72}.f6{fill:#39c5cf}.f7{fill:#f778ba}}</style>)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string text_element(double x, double y, std::string_view text, std::string_view kind, std::string_view anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, kind, anchor,
                     escaped(text));
}

/// What the axes reach from and to, as logarithms: to the base 2 of sizes, 10 of seconds.
struct PlotScale {
  double least_x = std::numeric_limits<double>::max(), most_x = std::numeric_limits<double>::lowest();
  double least_y = least_x, most_y = most_x;

  explicit PlotScale(const LinePlot& plot) {
    for (const PlotLine& line : plot.lines)
      for (const auto* points : {&line.points, &line.marks})
        for (const auto& [size, seconds] : *points) {
          CERMET_ASSERT(size > 0 && seconds > 0);
          least_x = std::min(least_x, std::log2(size)), most_x = std::max(most_x, std::log2(size));
          least_y = std::min(least_y, std::floor(std::log10(seconds))),
          most_y = std::max(most_y, std::ceil(std::log10(seconds)));
        }
    CERMET_ASSERT(least_x <= most_x);
    if (least_x == most_x) most_x += 1;
    if (least_y == most_y) most_y += 1;
  }
  double x(double size) const { return plot_left + plot_width * (std::log2(size) - least_x) / (most_x - least_x); }
  double y(double seconds) const {
    return plot_top + plot_height * (most_y - std::log10(seconds)) / (most_y - least_y);
  }
};

std::string grid_of(const PlotScale& scale) {
  std::string svg;
  for (double decade = scale.least_y; decade <= scale.most_y; ++decade) {
    const double y = scale.y(std::pow(10, decade));
    svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", plot_left, y, plot_left + plot_width);
    svg += text_element(plot_left - 6, y + 4, seconds_text(std::pow(10, decade)), "soft", "end");
  }
  const int step = std::max(1, static_cast<int>(std::ceil((scale.most_x - scale.least_x) / 14)));
  for (int power = static_cast<int>(std::ceil(scale.least_x)); power <= scale.most_x; power += step)
    svg += text_element(scale.x(std::pow(2, power)), plot_top + plot_height + 16,
                        fmt::format("{:.0f}", std::pow(2, power)), "soft", "middle");
  return svg;
}

std::string line_of(const PlotLine& line, const PlotScale& scale, std::size_t colour) {
  std::string svg;
  const std::string kind = line.is_limit ? "limit" : fmt::format("l{}", colour % colour_count);
  if (!line.points.empty()) {
    svg += fmt::format("<path class=\"{}\" d=\"", kind);
    for (std::size_t i = 0; i < line.points.size(); ++i)
      svg += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", scale.x(line.points[i].first),
                         scale.y(line.points[i].second));
    svg += "\"/>\n";
  }
  for (const auto& [size, seconds] : line.marks)
    svg += fmt::format("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n", colour % colour_count,
                       scale.x(size), scale.y(seconds));
  return svg;
}

}  // namespace

std::string svg_of(const LinePlot& plot) {
  const PlotScale scale(plot);
  const double width = plot_left + plot_width + 20, legend_top = plot_top + plot_height + 56;
  const double height = legend_top + legend_step * static_cast<double>(plot.lines.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\"><title>{2}</title>{3}\n"
      "<rect class=\"back\" width=\"{0:.0f}\" height=\"{1:.0f}\" rx=\"6\"/>\n",
      width, height, escaped(plot.title), plot_style);
  svg += text_element(20, 26, plot.title, "title", "start") + grid_of(scale);
  svg += text_element(plot_left + plot_width / 2, plot_top + plot_height + 34, plot.x_label, "soft", "middle");
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const double y = legend_top + legend_step * static_cast<double>(i);
    svg += line_of(plot.lines[i], scale, i);
    svg += fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}h18\"/>\n",
                       plot.lines[i].is_limit ? "limit" : fmt::format("l{}", i % colour_count), plot_left, y - 4);
    svg += text_element(plot_left + 26, y, plot.lines[i].name, "", "start");
  }
  return svg + "</svg>\n";
}

}  // namespace cermet::cli

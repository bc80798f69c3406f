// Plots as SVG that stands inside a page: bars on a logarithmic or linear scale, and a table of shaded cells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cermet {

/// One colour of bars; values that are not above 0 are left out of a logarithmic plot.
struct PlotSeries {
  std::string name;
  std::vector<double> values;  ///< one for each label
};

struct BarPlot {
  std::string title, unit;
  std::vector<std::string> labels;
  std::vector<std::string> ticks;  ///< short words under bars, empty for none; the labels where none are given
  std::vector<PlotSeries> series;
  bool logarithmic = false;
};
/// An <svg> element as wide as its labels need. A title on each bar says its label and value.
std::string to_svg(const BarPlot& plot);

struct CellPlot {
  std::string title, row_name, column_name;
  std::vector<std::vector<double>> rows;  ///< at least 0; the largest is darkest
};
std::string to_svg(const CellPlot& plot);

/// Text with the characters that mark up HTML replaced.
std::string html_text(std::string_view text);

}  // namespace cermet

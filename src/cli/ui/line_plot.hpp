// Lines over sizes as an SVG: both axes logarithmic, in light or dark as the reader has it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cermet::cli {

struct PlotLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< size and seconds, both positive, by size
  std::vector<std::pair<double, double>> marks;   ///< drawn as dots
  bool is_limit = false;                          ///< dashed
};

struct LinePlot {
  std::string title, x_label;
  std::vector<PlotLine> lines;
};

/// A whole document, which needs nothing else. Asserts that there is a point.
std::string svg_of(const LinePlot& plot);

}  // namespace cermet::cli

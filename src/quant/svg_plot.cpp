#include "quant/svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cermet {
namespace {

constexpr double left = 64, top = 34, height = 190, bottom = 26;
constexpr std::array<const char*, 4> colours{"#3b6ea8", "#d98032", "#4d9a5b", "#8a63a8"};

/// Values to heights above the axis.
class Axis {
 public:
  explicit Axis(const BarPlot& plot) : logarithmic_(plot.logarithmic) {
    double least = 0, largest = 0;
    for (const PlotSeries& series : plot.series)
      for (const double value : series.values) {
        if (!(value > 0)) continue;
        largest = std::max(largest, value);
        least = least > 0 ? std::min(least, value) : value;
      }
    if (largest <= 0) least = largest = 1;
    low_ = logarithmic_ ? std::floor(std::log10(least) - 0.05) : 0;
    high_ = logarithmic_ ? std::ceil(std::log10(largest)) : largest;
    if (high_ <= low_) high_ = low_ + 1;
  }

  double height_of(double value) const {
    if (!(value > 0)) return 0;
    const double at = logarithmic_ ? std::log10(value) : value;
    return std::clamp((at - low_) / (high_ - low_), 0.0, 1.0) * height;
  }
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (logarithmic_) {
      const double step = std::max(1.0, std::ceil((high_ - low_) / 6));
      for (double at = low_; at <= high_; at += step) ticks.push_back(std::pow(10, at));
    } else {
      for (int i = 0; i <= 4; ++i) ticks.push_back(high_ * i / 4);
    }
    return ticks;
  }

 private:
  bool logarithmic_;
  double low_ = 0, high_ = 1;
};

std::string opening(double width, double whole_height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"11\">\n<text x=\"4\" y=\"16\" font-size=\"13\" font-weight=\"bold\">{2}</text>\n",
      width, whole_height, html_text(title));
}

std::string legend(const BarPlot& plot) {
  std::string svg;
  double x = left + 8.0 * static_cast<double>(plot.title.size());
  for (std::size_t s = 0; plot.series.size() > 1 && s < plot.series.size(); ++s) {
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"7\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.1f}\" y=\"16\">{}</text>\n", x,
        colours[s % colours.size()], x + 14, html_text(plot.series[s].name));
    x += 30 + 7.0 * static_cast<double>(plot.series[s].name.size());
  }
  return svg;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string to_svg(const BarPlot& plot) {
  const Axis axis(plot);
  const double bar = plot.labels.size() * plot.series.size() > 120 ? 4 : 10, gap = plot.labels.size() > 60 ? 2 : 8;
  const double step = bar * static_cast<double>(plot.series.size()) + gap;
  const double width = std::max(left + step * static_cast<double>(plot.labels.size()) + 8, 560.0), base = top + height;
  std::string svg = opening(width, base + bottom, plot.title) + legend(plot);
  for (const double tick : axis.ticks()) {
    const double y = base - axis.height_of(tick);
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/><text x=\"{3:.1f}\" "
        "y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:.3g}</text>\n",
        left, width - 8, y, left - 4, y + 4, tick);
  }
  const std::size_t every = std::max<std::size_t>(
      1, static_cast<std::size_t>(std::ceil(30 / step)));  // labels that do not run into each other
  for (std::size_t i = 0; i < plot.labels.size(); ++i) {
    const double x = left + step * static_cast<double>(i) + gap / 2;
    for (std::size_t s = 0; s < plot.series.size(); ++s) {
      const double value = plot.series[s].values.at(i), tall = axis.height_of(value);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}: "
          "{:.4g}{}</title></rect>\n",
          x + bar * static_cast<double>(s), base - tall, bar - 1, tall, colours[s % colours.size()],
          html_text(plot.labels[i]), value, html_text(plot.unit));
    }
    const std::string tick = !plot.ticks.empty() ? plot.ticks.at(i) : i % every == 0 ? plot.labels[i] : "";
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x, base + 14, html_text(tick));
  }
  return svg + "</svg>\n";
}

std::string to_svg(const CellPlot& plot) {
  double largest = 1;
  std::size_t columns = 0;
  for (const auto& row : plot.rows) {
    columns = std::max(columns, row.size());
    for (const double value : row) largest = std::max(largest, value);
  }
  const double cell = columns > 64 ? 8 : columns > 16 ? 14 : 30, tall = std::min(cell, 18.0);
  const double width = std::max(left + cell * static_cast<double>(columns) + 8, 560.0);
  std::string svg = opening(width, top + tall * static_cast<double>(plot.rows.size()) + 8, plot.title);
  for (std::size_t r = 0; r < plot.rows.size(); ++r) {
    const double y = top + tall * static_cast<double>(r);
    svg += fmt::format("<text x=\"4\" y=\"{:.1f}\">{} {}</text>\n", y + tall - 4, html_text(plot.row_name), r);
    for (std::size_t c = 0; c < plot.rows[r].size(); ++c) {
      const double value = plot.rows[r][c];
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
          "fill-opacity=\"{:.3f}\"><title>{} {}, {} {}: {:.0f}</title></rect>\n",
          left + cell * static_cast<double>(c), y, cell - 1, tall - 1, value > 0 ? colours[0] : "#c0392b",
          value > 0 ? 0.08 + 0.92 * value / largest : 1.0, html_text(plot.row_name), r, html_text(plot.column_name), c,
          value);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace cermet

#include "quant/report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "io/posix_file.hpp"
#include "quant/svg_plot.hpp"

namespace cermet {
namespace {

using Cells = std::vector<std::string>;

/// A table under a heading, in either form.
struct Section {
  std::string heading, note;
  Cells head;
  std::vector<Cells> rows;
  std::string plot;  ///< SVG; of the HTML alone
};

std::string megabytes(std::int64_t bytes) { return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6); }
std::string figure(double value) { return value == 0 ? "-" : fmt::format("{:.4g}", value); }

std::string speed_change(double before, double after) {
  return before > 0 && after > 0 ? fmt::format("{:.2f}x", after / before) : "-";
}

Section summary(const ReportInput& input) {
  const MeasuredModel &before = input.before, &after = input.after;
  Section section{
      .heading = "Before and after", .note = {}, .head = {"", "before", "after", "change"}, .rows = {}, .plot = {}};
  section.rows.push_back(
      {"tensors", megabytes(before.bytes), megabytes(after.bytes),
       fmt::format("{:.2f}x smaller",
                   static_cast<double>(before.bytes) / static_cast<double>(std::max<std::int64_t>(after.bytes, 1)))});
  if (before.perplexity && after.perplexity) {
    section.rows.push_back(
        {"perplexity", fmt::format("{:.4f} +- {:.4f}", before.perplexity->value, before.perplexity->standard_error),
         fmt::format("{:.4f} +- {:.4f}", after.perplexity->value, after.perplexity->standard_error),
         change_text(before.perplexity->value, after.perplexity->value)});
    section.note = fmt::format("Perplexity over {} tokens of {}.", after.perplexity->tokens, input.heldout);
  }
  const auto speed = [&](const char* name, double b, double a) {
    if (b > 0 || a > 0)
      section.rows.push_back(
          {name, fmt::format("{:.1f} tokens/s", b), fmt::format("{:.1f} tokens/s", a), speed_change(b, a)});
  };
  speed("prefill", before.prefill_tokens_per_second, after.prefill_tokens_per_second);
  speed("decode", before.decode_tokens_per_second, after.decode_tokens_per_second);
  return section;
}

Section schemes(const QuantizationRecord& record) {
  struct Total {
    std::int64_t modules = 0;
    double error = 0, worst = 0;
    std::string worst_module;
  };
  std::map<std::string, Total> totals;
  for (const LayerResult& layer : record.layers)
    for (const ModuleResult& module : layer.modules) {
      Total& total = totals[std::string(name_of(module.scheme))];
      ++total.modules;
      total.error += module.error;
      if (module.error >= total.worst) {
        total.worst = module.error;
        total.worst_module = module.name;
      }
    }
  Section section{.heading = "Schemes",
                  .note = "Errors are relative output errors of single modules on held-out rows: |y - y'|^2 / |y|^2.",
                  .head = {"scheme", "modules", "mean error", "largest error", "of"},
                  .rows = {},
                  .plot = {}};
  for (const auto& [scheme, total] : totals)
    section.rows.push_back({scheme, fmt::format("{}", total.modules),
                            figure(total.error / static_cast<double>(total.modules)), figure(total.worst),
                            total.worst > 0 ? total.worst_module : "-"});
  return section;
}

Section layers(const QuantizationRecord& record) {
  Section section{.heading = "Error of each layer",
                  .note =
                      "Relative error of what a layer adds to the residual stream, on held-out tokens, with the errors "
                      "of the layers before it.",
                  .head = {"layer", "output error", "largest module error", "of"},
                  .rows = {},
                  .plot = {}};
  BarPlot plot{.title = "Output error of each layer",
               .unit = "",
               .labels = {},
               .ticks = {},
               .series = {{"output error", {}}, {"largest module error", {}}},
               .logarithmic = true};
  for (const LayerResult& layer : record.layers) {
    const auto worst = std::max_element(layer.modules.begin(), layer.modules.end(),
                                        [](const auto& a, const auto& b) { return a.error < b.error; });
    const double error = worst == layer.modules.end() ? 0 : worst->error;
    section.rows.push_back(
        {fmt::format("{}", layer.layer), figure(layer.output_error), figure(error), error > 0 ? worst->name : "-"});
    plot.labels.push_back(fmt::format("{}", layer.layer));
    plot.series[0].values.push_back(layer.output_error);
    plot.series[1].values.push_back(error);
  }
  section.plot = to_svg(plot);
  return section;
}

/// Modules that read the same values are one row.
Section ranges(const QuantizationRecord& record) {
  Section section{
      .heading = "Activation ranges",
      .note = fmt::format("Largest absolute value of each input in the calibration ({} prompts, {} tokens), before and "
                          "after the anti-outlier step; "
                          "the percentile is that of {} %. Siblings share a row, experts of a layer too (the largest).",
                          record.prompts, record.tokens, record.clamp_percentile),
      .head = {"input of", "before", "after", "percentile", "clamped at", "step", "alpha"},
      .rows = {},
      .plot = {}};
  struct Row {
    double before = 0, after = 0, percentile = 0, threshold = 0, alpha = 0;
    std::set<std::string> steps;
  };
  BarPlot plot{.title = "Largest activation of each input, by layer",
               .unit = "",
               .labels = {},
               .ticks = {},
               .series = {{"before", {}}, {"after", {}}},
               .logarithmic = true};
  for (const LayerResult& layer : record.layers) {
    std::vector<std::pair<std::string, Row>> rows;
    for (const ModuleResult& module : layer.modules) {
      const std::string last = module.name.substr(module.name.rfind('.') + 1);
      const bool expert = module.name.find(".experts.") != std::string::npos;
      const char* kind = last == "o_proj"                                     ? "o"
                         : last == "down_proj" || last == "w2"                ? "down"
                         : last[0] == 'g' || last[0] == 'u' || last[0] == 'w' ? "gate, up"
                                                                              : "q, k, v";
      const std::string name = fmt::format("layer {} {}{}", layer.layer, expert ? "experts' " : "", kind);
      auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == name; });
      if (row == rows.end()) row = rows.insert(rows.end(), {name, {}});
      Row& r = row->second;
      r.before = std::max(r.before, module.absmax_before);
      r.after = std::max(r.after, module.absmax_after);
      r.percentile = std::max(r.percentile, module.percentile);
      r.threshold = std::max(r.threshold, module.threshold);
      r.alpha = std::max(r.alpha, module.alpha);
      r.steps.insert(module.anti_outlier);
    }
    for (const auto& [name, r] : rows) {
      section.rows.push_back({name, figure(r.before), figure(r.after), figure(r.percentile), figure(r.threshold),
                              fmt::format("{}", fmt::join(r.steps, ", ")), figure(r.alpha)});
      plot.labels.push_back(name);
      plot.ticks.push_back(name == rows.front().first ? fmt::format("{}", layer.layer) : "");
      plot.series[0].values.push_back(r.before);
      plot.series[1].values.push_back(r.after);
    }
  }
  section.plot = to_svg(plot);
  return section;
}

Section experts(const QuantizationRecord& record) {
  Section section{.heading = "Tokens of each expert",
                  .note =
                      "Calibration tokens that each expert got. An expert that too few reached is rounded to nearest, "
                      "without search.",
                  .head = {"layer", "least", "most", "without search", "tokens"},
                  .rows = {},
                  .plot = {}};
  CellPlot plot{.title = "Calibration tokens of each expert", .row_name = "layer", .column_name = "expert", .rows = {}};
  for (const LayerResult& layer : record.layers) {
    std::vector<double> counts(layer.expert_tokens.begin(), layer.expert_tokens.end());
    plot.rows.push_back(counts);
    if (counts.empty()) continue;
    std::set<std::int64_t> fallback;
    for (const ModuleResult& module : layer.modules)
      if (const std::size_t at = module.name.find(".experts."); module.fallback && at != std::string::npos)
        fallback.insert(std::stoll(module.name.substr(at + 9)));
    section.rows.push_back({fmt::format("{}", layer.layer),
                            fmt::format("{}", *std::min_element(counts.begin(), counts.end())),
                            fmt::format("{}", *std::max_element(counts.begin(), counts.end())),
                            fallback.empty() ? "-" : fmt::format("experts {}", fmt::join(fallback, ", ")),
                            fmt::format("{}", fmt::join(layer.expert_tokens, " "))});
  }
  if (!section.rows.empty()) section.plot = to_svg(plot);
  return section;
}

Section choices(const ReportInput& input) {
  Section section{.heading = "Choice of schemes",
                  .note = fmt::format("Target: perplexity at most {}. For each group of modules: relative output error "
                                      "/ predicted microseconds for each token.",
                                      input.target),
                  .head = {"group", "chosen", "w8a8_static", "w8a8_dynamic", "w8a16", "16bit"},
                  .rows = {},
                  .plot = {}};
  for (const SchemeGroup& group : input.choices) {
    Cells row{group.name, std::string(name_of(group.options[group.chosen].scheme))};
    for (const char* scheme : {"w8a8_static", "w8a8_dynamic", "w8a16", "16bit"}) {
      const auto option = std::find_if(group.options.begin(), group.options.end(),
                                       [&](const SchemeOption& o) { return name_of(o.scheme) == scheme; });
      row.push_back(
          option == group.options.end() ? "-" : fmt::format("{:.3g} / {:.3g}", option->error, option->seconds * 1e6));
    }
    section.rows.push_back(std::move(row));
  }
  return section;
}

Section attempts(const ReportInput& input) {
  Section section{.heading = "Attempts",
                  .note =
                      "Sums over the groups of errors and of predicted microseconds for each token, and the perplexity "
                      "that was measured.",
                  .head = {"attempt", "error", "microseconds", "perplexity", "change"},
                  .rows = {},
                  .plot = {}};
  for (std::size_t i = 0; i < input.attempts.size(); ++i) {
    const TargetAttempt& attempt = input.attempts[i];
    section.rows.push_back(
        {fmt::format("{}", i + 1), figure(attempt.error), figure(attempt.seconds * 1e6),
         fmt::format("{:.4f}", attempt.perplexity),
         input.before.perplexity ? change_text(input.before.perplexity->value, attempt.perplexity) : "-"});
  }
  return section;
}

std::vector<Section> sections_of(const ReportInput& input) {
  std::vector<Section> all{summary(input),        schemes(input.record), layers(input.record), ranges(input.record),
                           experts(input.record), choices(input),        attempts(input)};
  std::erase_if(all, [](const Section& section) { return section.rows.empty(); });
  return all;
}

std::string introduction(const ReportInput& input) {
  return fmt::format(
      "Quantized from {} on {}, {}. Calibration: {} prompts, {} tokens, {:.1f} s. Anti-outlier step: {}.", input.model,
      input.machine, input.date, input.record.prompts, input.record.tokens, input.seconds, input.record.anti_outlier);
}

constexpr const char* style =
    "body{font:14px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 "
    "1em;color:#222}table{border-collapse:collapse;margin:1em 0}"
    "td,th{border:1px solid #ccc;padding:2px "
    "8px;text-align:left;font-variant-numeric:tabular-nums}th{background:#f2f2f2}"
    "pre{background:#f6f6f6;padding:1em;overflow:auto}.plot{overflow:auto}";

std::string html_row(const Cells& cells, const char* tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) row += fmt::format("<{0}>{1}</{0}>", tag, html_text(cell));
  return row + "</tr>\n";
}

}  // namespace

std::string change_text(double before, double after) { return fmt::format("{:+.2f} %", 100 * (after / before - 1)); }

std::string markdown_report(const ReportInput& input) {
  std::string text = fmt::format("# Quantization report\n\n{}\n", introduction(input));
  for (const Section& section : sections_of(input)) {
    text += fmt::format("\n## {}\n\n", section.heading);
    if (!section.note.empty()) text += section.note + "\n\n";
    text += fmt::format("| {} |\n|{}\n", fmt::join(section.head, " | "), [&] {
      std::string rule;
      for (std::size_t i = 0; i < section.head.size(); ++i) rule += "---|";
      return rule;
    }());
    for (const Cells& row : section.rows) text += fmt::format("| {} |\n", fmt::join(row, " | "));
  }
  return text + fmt::format("\n## Policy\n\n```\n{}```\n", input.record.policy);
}

std::string html_report(const ReportInput& input) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Quantization "
      "report</title><style>{}</style></head>\n<body>\n<h1>Quantization "
      "report</h1>\n<p>{}</p>\n",
      style, html_text(introduction(input)));
  for (const Section& section : sections_of(input)) {
    text += fmt::format("<h2>{}</h2>\n", html_text(section.heading));
    if (!section.note.empty()) text += fmt::format("<p>{}</p>\n", html_text(section.note));
    if (!section.plot.empty()) text += fmt::format("<div class=\"plot\">{}</div>\n", section.plot);
    text += "<table>\n" + html_row(section.head, "th");
    for (const Cells& row : section.rows) text += html_row(row, "td");
    text += "</table>\n";
  }
  return text + fmt::format("<h2>Policy</h2>\n<pre>{}</pre>\n</body>\n</html>\n", html_text(input.record.policy));
}

void write_reports(const std::filesystem::path& folder, const ReportInput& input) {
  write_file_atomically(folder / "report.md", markdown_report(input));
  write_file_atomically(folder / "report.html", html_report(input));
}

}  // namespace cermet

#include "cli/explain/explain_text.hpp"

#include <algorithm>

namespace cermet::cli {
namespace {

std::string operators_of(const Json& block) {
  std::string text;
  for (const Json& op : block["ops"])
    text += fmt::format("{}{}", text.empty() ? "" : " + ", op["op"].get<std::string>());
  return text;
}

std::vector<std::string> row_of(const Json& block, std::size_t number, bool folded) {
  const std::string name = block["ops"].begin()[block["ops"].size() - 1]["name"].get<std::string>();
  if (block.contains("view"))
    return {fmt::format("{}{}", folded ? "  " : "", number), operators_of(block), "(view)", "", "", "", "", name};
  std::vector<std::string> row{fmt::format("{}{}", folded ? "  " : "", number),
                               operators_of(block),
                               block["kernel"].get<std::string>(),
                               block["mapping"].get<std::string>(),
                               bytes_text(block["bytes"].get<double>()),
                               count_text(block["operations"].get<double>()),
                               seconds_text(block["seconds"].get<double>())};
  if (block.contains("measured")) row.push_back(seconds_text(block["measured"].get<double>()));
  row.push_back(name);
  return row;
}

std::vector<std::vector<std::size_t>> repeats_of(const Json& plan) {
  std::vector<std::vector<std::size_t>> repeats;
  for (const Json& repeat : plan["repeats"]) repeats.push_back(repeat.get<std::vector<std::size_t>>());
  return repeats;
}

/// Whether a block is like an earlier one that is shown.
bool is_folded(const std::vector<std::vector<std::size_t>>& repeats, std::size_t b) {
  return std::ranges::any_of(repeats, [&](const auto& r) { return b >= r[0] + r[1] && b < r[0] + r[1] * r[2]; });
}

std::string blocks_text(const Json& plan) {
  Table table;
  std::vector<std::string> head{"block", "operators", "kernel", "type", "bytes", "operations", "modelled"};
  if (plan.contains("measured_seconds")) head.emplace_back("measured");
  head.emplace_back("result");
  table.row(head);
  const std::vector<std::vector<std::size_t>> repeats = repeats_of(plan);
  for (std::size_t b = 0; b < plan["blocks"].size(); ++b) {
    if (is_folded(repeats, b)) continue;
    const auto inside =
        std::ranges::find_if(repeats, [&](const auto& r) { return b >= r[0] && b < r[0] + r[1] * r[2]; });
    if (inside != repeats.end() && b == (*inside)[0]) table.row({fmt::format("{} times:", (*inside)[2])});
    table.row(row_of(plan["blocks"].begin()[b], b, inside != repeats.end()));
  }
  return table.to_string();
}

std::string ratio(double before, double after) { return after > 0 ? fmt::format("{:.2f}", before / after) : "-"; }

std::string totals_text(const Json& before, const Json& after) {
  Table table;
  table.row({"", "mode " + before["mode"].get<std::string>(), "mode " + after["mode"].get<std::string>(), "ratio"});
  const auto row = [&](const std::string& name, const char* key, std::string (*text)(double)) {
    const auto x = before[key].get<double>(), y = after[key].get<double>();
    table.row({name, text(x), text(y), ratio(x, y)});
  };
  const auto whole = [](double x) { return fmt::format("{:.0f}", x); };
  row("operators as given", "nodes_before", whole);
  row("operators", "nodes", whole);
  row("blocks", "launches", whole);
  row("views", "views", whole);
  row("intermediate bytes", "intermediate_bytes", bytes_text);
  row("peak of them", "peak_bytes", bytes_text);
  row("workspace", "workspace_bytes", bytes_text);
  row("modelled time", "modelled_seconds", seconds_text);
  if (before.contains("measured_seconds") && after.contains("measured_seconds"))
    row("measured time", "measured_seconds", seconds_text);
  return table.to_string();
}

/// "collectives: 14, 21": blocks of a super-kernel in which ranks wait for each other.
std::string collectives_text(const Json& blocks) {
  std::string text;
  for (const Json& block : blocks)
    text += fmt::format("{}{}", text.empty() ? "collectives: " : ", ", block.get<std::size_t>());
  return text;
}

/// "12 (layers.0.norm, x); 9 (memory)": for each block of super-kernels that is shown, for which others it waits, and
/// why.
std::string waits_text(const Json& plan) {
  Table table;
  const std::vector<std::vector<std::size_t>> repeats = repeats_of(plan);
  for (const Json& each : plan["super_kernels"]) {
    std::vector<std::string> row;
    for (const Json& wait : each["waits"]) {
      const auto block = wait["block"].get<std::size_t>();
      if (is_folded(repeats, block)) continue;
      std::string values;
      for (const Json& name : wait["values"]) values += (values.empty() ? "" : ", ") + name.get<std::string>();
      const std::string text =
          fmt::format("{} ({})", wait["for"].get<std::size_t>(), values.empty() ? "memory" : values);
      if (!row.empty() && row[1] == std::to_string(block)) {
        row[2] += "; " + text;
        continue;
      }
      if (!row.empty()) table.row(row);
      row = {each["name"].get<std::string>(), std::to_string(block), "waits for " + text};
    }
    if (!row.empty()) table.row(row);
  }
  return table.empty() ? ""
                       : "\nblocks of super-kernels that wait for others: for values, or for memory that they write\n" +
                             table.to_string();
}

}  // namespace

std::string explain_text(const Json& graph) {
  const Json &before = graph["before"], &after = graph["after"];
  std::string text = fmt::format("{}\n{}\ntotals\n{}", graph["name"].get<std::string>(), blocks_text(after),
                                 totals_text(before, after));
  Table rules, reasons;
  for (const Json& rule : after["rules"])
    rules.row({rule["name"].get<std::string>(), std::to_string(rule["times"].get<std::int64_t>())});
  for (const Json& reason : after["reason_counts"])
    reasons.row({std::to_string(reason["edges"].get<std::int64_t>()), reason["why"].get<std::string>(),
                 reason["summary"].get<std::string>()});
  if (!after["super_kernels"].empty() || !after["super_kernel_breaks"].empty()) {
    Table super;
    for (const Json& each : after["super_kernels"])
      super.row({each["name"].get<std::string>(),
                 fmt::format("blocks {} to {}", each["first_block"].get<std::size_t>(),
                             each["last_block"].get<std::size_t>()),
                 collectives_text(each["collectives"]), each["options"].get<std::string>()});
    text += "\nsuper-kernels\n" + super.to_string();
    for (const Json& line : after["super_kernel_breaks"]) text += line.get<std::string>() + "\n";
    text += waits_text(after);
  }
  if (!rules.empty()) text += "\nrules applied\n" + rules.to_string();
  if (!reasons.empty()) text += "\nvalues between blocks, and why they are not inside one\n" + reasons.to_string();
  return text;
}

}  // namespace cermet::cli

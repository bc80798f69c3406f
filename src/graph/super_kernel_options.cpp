#include "graph/super_kernel_options.hpp"

#include <array>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

constexpr std::int64_t most_width = 1 << 20;

struct OptionRow {
  SuperKernelOptionInfo info;
  bool (*set)(SuperKernelOptions&, std::string_view value);  ///< false where the value is none of the option's
  std::string (*get)(const SuperKernelOptions&);
};

template <bool SuperKernelOptions::*member>
constexpr OptionRow switch_row(std::string_view key, std::string_view standard, std::string_view summary) {
  return {{key, "0|1", standard, summary},
          [](SuperKernelOptions& options, std::string_view value) {
            options.*member = value == "1";
            return value == "0" || value == "1";
          },
          [](const SuperKernelOptions& options) { return std::string(options.*member ? "1" : "0"); }};
}

bool set_check(SuperKernelOptions& options, std::string_view value) {
  options.strict_scope_check = value == "abort" ? StrictScopeCheck::abort : StrictScopeCheck::bypass;
  return value == "abort" || value == "bypass";
}
std::string check_text(const SuperKernelOptions& options) {
  return options.strict_scope_check == StrictScopeCheck::abort ? "abort" : "bypass";
}

bool set_width(SuperKernelOptions& options, std::string_view value) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.width);
  return error == std::errc() && end == value.data() + value.size() && options.width >= 0 &&
         options.width <= most_width;
}

constexpr OptionRow rows[] = {
    switch_row<&SuperKernelOptions::stream_fusion>(
        "stream-fusion", "1", "1: branches that do not depend on each other run side by side; 0: one after the other"),
    {{"strict-scope-check", "bypass|abort", "bypass",
      "nodes that cannot join: bypass warns once and launches them by themselves; abort refuses the graph and names "
      "every node with its reason"},
     set_check,
     check_text},
    switch_row<&SuperKernelOptions::prefetch>("prefetch", "1",
                                              "1: weights of later tasks are brought into a cache, or a GPU's shared "
                                              "memory, while earlier ones wait; 0: on a GPU they "
                                              "flow when a thread block has ended what is before"),
    switch_row<&SuperKernelOptions::early_start>(
        "early-start", "1",
        "1: a task asks for weights and keys before it waits for the tasks whose "
        "results it reads; 0: behind that wait"),
    {{"width", "0..1048576", "0", "thread blocks, or threads of a CPU; 0: as many as run at once"},
     set_width,
     [](const SuperKernelOptions& options) { return std::to_string(options.width); }},
    switch_row<&SuperKernelOptions::debug_sync_all>(
        "debug-sync-all", "0", "1: a task begins when all before it have ended, to find a missing dependency"),
    switch_row<&SuperKernelOptions::profile>(
        "profile", "0", "1: every item notes when it began and ended, for `cermet bench model --trace`"),
};

constexpr auto infos = [] {
  std::array<SuperKernelOptionInfo, std::size(rows)> list{};
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = rows[i].info;
  return list;
}();

std::string known_keys() {
  std::string text;
  for (const OptionRow& row : rows) text += fmt::format("{}{}", text.empty() ? "" : ", ", row.info.key);
  return text;
}

}  // namespace

SuperKernelOptions SuperKernelOptions::parse(std::string_view text) {
  SuperKernelOptions options;
  std::array<bool, std::size(rows)> given{};
  if (text.empty()) return options;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = part.find('=');
    require(equals != std::string_view::npos, "super-kernel options: expected key=value:key=value, found {}",
            quote(part));
    const std::string_view key = part.substr(0, equals), value = part.substr(equals + 1);
    std::size_t r = 0;
    while (r < std::size(rows) && rows[r].info.key != key) ++r;
    if (r == std::size(rows))
      fail(Status::invalid_argument, "super-kernel options: expected one of {}, found {}", known_keys(), quote(key));
    require(!given[r], "super-kernel option {}: expected it once, found it twice", key);
    given[r] = true;
    require(rows[r].set(options, value), "super-kernel option {}: expected {}, found {}", key, rows[r].info.values,
            quote(value));
  }
  return options;
}

std::string to_string(const SuperKernelOptions& options) {
  std::string text;
  for (const OptionRow& row : rows)
    if (const std::string value = row.get(options); value != row.info.standard)
      text += fmt::format("{}{}={}", text.empty() ? "" : ":", row.info.key, value);
  return text;
}

std::span<const SuperKernelOptionInfo> super_kernel_options() { return infos; }

}  // namespace cermet

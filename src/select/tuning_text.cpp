#include "select/tuning_text.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "io/json_file.hpp"

namespace cermet {
namespace {

constexpr std::int64_t version = 1;
constexpr JsonLimits table_limits{
    .max_bytes = std::size_t{256} << 20, .max_values = std::size_t{16} << 20, .max_depth = 5};

std::string text_at(const Json& object, std::string_view field) { return std::string(object.at(field).as_string()); }

void require_fields(const Json& object, std::size_t count) {
  if (object.as_object().size() != count)
    object.refuse(fmt::format("expected {} fields, found {}", count, object.size()));
}

TunedRival rival_from(const Json& json) {
  require_fields(json, 4);
  return {text_at(json, "kernel"), text_at(json, "config"), json.at("seconds").as_number(),
          json.at("spread").as_number()};
}

std::vector<TunedRival> rivals_from(const Json& list) {
  std::vector<TunedRival> rivals;
  for (const Json rival : list.as_array()) rivals.push_back(rival_from(rival));
  return rivals;
}

TuningEntry entry_from(const Json& json) {
  require_fields(json, 9);
  TuningEntry entry{{text_at(json, "region"), text_at(json, "device"), text_at(json, "versions")},
                    text_at(json, "kernel"),
                    text_at(json, "config"),
                    json.at("seconds").as_number(),
                    json.at("spread").as_number(),
                    text_at(json, "date"),
                    rivals_from(json.at("rivals"))};
  if (const std::string fault = fault_of(entry); !fault.empty()) json.refuse(fault);
  return entry;
}

auto order_of(const TuningEntry& entry) { return std::tie(entry.key.device, entry.key.versions, entry.key.region); }

std::vector<TuningEntry> entries_from(const JsonDocument& document) {
  const Json root = document.root().as_object();
  root.at("cermet_tuning").as_integer(version, version);
  require_fields(root, 2);
  std::vector<TuningEntry> entries;
  std::set<std::tuple<std::string, std::string, std::string>> known;
  for (const Json json : root.at("entries").as_array()) {
    TuningEntry entry = entry_from(json);
    if (!known.insert(order_of(entry)).second) json.refuse("expected each region of a device once, found it again");
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

JsonValue json_of(const TuningEntry& entry) {
  JsonValue rivals = JsonValue::array();
  for (const TunedRival& rival : entry.rivals)
    rivals.push_back(
        {{"kernel", rival.kernel}, {"config", rival.config}, {"seconds", rival.seconds}, {"spread", rival.spread}});
  return {{"region", entry.key.region}, {"device", entry.key.device}, {"versions", entry.key.versions},
          {"kernel", entry.kernel},     {"config", entry.config},     {"seconds", entry.seconds},
          {"spread", entry.spread},     {"date", entry.date},         {"rivals", rivals}};
}

std::string tuning_table_text(std::span<const TuningEntry> entries) {
  std::vector<TuningEntry> sorted(entries.begin(), entries.end());
  std::ranges::sort(sorted, [](const TuningEntry& a, const TuningEntry& b) { return order_of(a) < order_of(b); });
  JsonValue list = JsonValue::array();
  for (const TuningEntry& entry : sorted) list.push_back(json_of(entry));
  return JsonValue{{"cermet_tuning", version}, {"entries", list}}.dump(1) + "\n";
}

std::vector<TuningEntry> parse_tuning_table(std::string_view text, const std::string& name) {
  return entries_from(JsonDocument::parse(text, name, table_limits));
}

std::vector<TuningEntry> read_tuning_table(const std::filesystem::path& file) {
  return entries_from(JsonDocument::read(file, table_limits));
}

std::vector<TunedRival> parse_rivals(std::string_view text, const std::string& name) {
  return rivals_from(JsonDocument::parse(text, name, table_limits).root());
}

}  // namespace cermet

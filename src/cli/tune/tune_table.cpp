// cermet tune list, export, import and clear: the measured choices of kernels on this machine.
#include <algorithm>

#include "base/text.hpp"
#include "cli/ui/text_output.hpp"
#include "cli/verb.hpp"
#include "device/device.hpp"
#include "io/posix_file.hpp"
#include "select/shipped_tables.hpp"
#include "select/tuning.hpp"
#include "select/tuning_import.hpp"
#include "select/tuning_text.hpp"

namespace cermet::cli {
namespace {

struct TuneTableOptions {
  std::string device, file;
  std::size_t limit = 0;
  bool shipped = false;
};

constexpr const char* device_help = "only those of this device: cpu, cuda, or null:sm_90";

DeviceIdentity identity_named(const std::string& name) {
  const std::unique_ptr<Device> device = make_device(name);
  return device_identity(device->target(), 1);
}

/// The user's entries, of the device that is asked for.
std::vector<TuningEntry> chosen_entries(const Tuning& tuning, const std::string& device) {
  std::vector<TuningEntry> entries = tuning.all();
  if (device.empty()) return entries;
  const DeviceIdentity wanted = identity_named(device);
  std::erase_if(entries, [&](const TuningEntry& entry) { return !is_same_device(entry.key.device, wanted.device); });
  return entries;
}

// ---- list ----

void list_tuning(Console& console, const TuneTableOptions& options) {
  const Tuning& tuning = Tuning::process();
  const std::vector<TuningEntry> entries = chosen_entries(tuning, options.device);
  const std::size_t shown = options.limit > 0 ? std::min(options.limit, entries.size()) : entries.size();
  if (console.json()) {
    Json list = Json::array();
    for (std::size_t i = 0; i < shown; ++i) list.push_back(json_of(entries[i]));
    return console.write_json({{"place", tuning.place()},
                               {"count", entries.size()},
                               {"shipped", shipped_tuning().size()},
                               {"entries", list}});
  }
  console.print("{}\n", tuning.place());
  std::string heading;
  Table table;
  const auto print_table = [&] {
    if (!table.empty()) console.print("{}\n{}", heading, table.to_string());
    table = {};
  };
  for (std::size_t i = 0; i < shown; ++i) {
    const TuningEntry& entry = entries[i];
    std::string device = fmt::format("{}; {}", entry.key.device, entry.key.versions);
    if (device != heading) print_table();
    heading = std::move(device);
    table.row({entry.date, seconds_text(entry.seconds), fmt::format("{}, {}", entry.kernel, entry.config),
               one_line(entry.key.region)});
  }
  print_table();
  if (shown < entries.size()) console.print("  and {} more\n", entries.size() - shown);
  console.print("{} measured choices; {} more ship with the library\n", entries.size(), shipped_tuning().size());
}

// ---- export ----

/// With the library's version alone: of those that then have the same key the one measured last.
std::vector<TuningEntry> for_release(std::vector<TuningEntry> entries) {
  std::ranges::sort(entries, {}, &TuningEntry::date);
  TuningTable table;
  for (TuningEntry& entry : entries) {
    entry.key.versions = shipped_versions();
    table.put(std::move(entry));
  }
  return table.all();
}

void export_tuning(Console& console, const TuneTableOptions& options) {
  require(options.file == "-" || std::filesystem::path(options.file).extension() == ".json",
          "FILE: expected a name that ends in .json, found {}", quote(options.file));
  check_text_output(console, options.file);
  const Tuning& tuning = Tuning::process();
  std::vector<TuningEntry> entries = chosen_entries(tuning, options.device);
  require(!entries.empty(),
          "tune export: expected measured choices, found none in {}: run `cermet tune op` or `tune model` first",
          tuning.place());
  if (options.shipped) {
    const std::string own = shipped_versions() + ",";
    std::erase_if(entries, [&](const TuningEntry& entry) { return !entry.key.versions.starts_with(own); });
    require(!entries.empty(), "--shipped: expected choices that {} measured, found others", shipped_versions());
    entries = for_release(std::move(entries));
  }
  if (options.file == "-") return console.write(tuning_table_text(entries));
  write_file_atomically(options.file, tuning_table_text(entries));
  if (console.json()) return console.write_json({{"file", options.file}, {"exported", entries.size()}});
  console.print("{}: {} measured choices\n", options.file, entries.size());
}

// ---- import ----

void import_table(Console& console, const TuneTableOptions& options) {
  const std::vector<TuningEntry> entries = read_tuning_table(options.file);
  const std::vector<DeviceIdentity> devices =
      options.device.empty() ? devices_here() : std::vector{identity_named(options.device)};
  const TuningImport report = import_tuning(Tuning::process().database(), entries, devices);
  if (report.stored == 0 && report.refused > 0)
    fail(Status::invalid_argument, "{}: {}", options.file, fmt::join(report.reasons, "; "));
  if (console.json()) {
    Json reasons = Json::array();
    for (const std::string& reason : report.reasons) reasons.push_back(reason);
    return console.write_json({{"place", Tuning::process().place()},
                               {"stored", report.stored},
                               {"refused", report.refused},
                               {"reasons", reasons}});
  }
  console.print("{}\nstored {} measured choices, refused {}\n", Tuning::process().place(), report.stored,
                report.refused);
  for (const std::string& reason : report.reasons) console.print("  {}\n", one_line(reason));
}

// ---- clear ----

void clear_tuning(Console& console, const TuneTableOptions& options) {
  TuningDatabase& database = Tuning::process().database();
  std::vector<std::string> devices;
  for (TuningEntry& entry : chosen_entries(Tuning::process(), options.device))
    if (std::ranges::find(devices, entry.key.device) == devices.end()) devices.push_back(std::move(entry.key.device));
  std::int64_t removed = 0;
  for (const std::string& device : devices) removed += database.clear(device);
  if (console.json()) return console.write_json({{"place", Tuning::process().place()}, {"removed", removed}});
  console.print("{}\nremoved {} measured choices\n", Tuning::process().place(), removed);
}

/// A verb whose options `declare` declares.
template <class Declare, class Run>
Verb table_verb(std::string_view name, std::string_view summary, std::string_view example, Declare declare, Run run) {
  return {name, summary, example, [declare, run](Parser& parser) -> Action {
            const auto options = std::make_shared<TuneTableOptions>();
            declare(parser, *options);
            return [options, run](Console& console) { run(console, *options); };
          }};
}

}  // namespace

namespace tune_list_verb {
Verb verb() {
  return table_verb(
      "tune list", "list the measured choices of kernels",
      "  cermet tune list\n  cermet tune list --device cuda --limit 10 --json",
      [](Parser& parser, TuneTableOptions& options) {
        parser.option("--device <DEVICE>", options.device, device_help);
        parser.option("--limit", options.limit, "how many to list; 0: all");
      },
      list_tuning);
}
}  // namespace tune_list_verb

namespace tune_export_verb {
Verb verb() {
  return table_verb(
      "tune export", "write the measured choices to one file",
      "  cermet tune export h200.json\n  cermet tune export h200.json --device cuda --shipped",
      [](Parser& parser, TuneTableOptions& options) {
        parser
            .option(
                "FILE <FILE.json>", options.file,
                "file to write, for other machines, or for jobs that share it by CERMET_TUNING; - is standard output")
            .required();
        parser.option("--device <DEVICE>", options.device, device_help);
        parser.flag("--shipped", options.shipped,
                    "as a table that ships with the library: for every driver and compiler");
      },
      export_tuning);
}
}  // namespace tune_export_verb

namespace tune_import_verb {
Verb verb() {
  return table_verb(
      "tune import", "take over measured choices from such a file",
      "  cermet tune import h200.json\n  cermet tune import h200.json --device cuda",
      [](Parser& parser, TuneTableOptions& options) {
        parser
            .option("FILE <FILE.json>", options.file,
                    "file that `tune export` wrote; entries of other devices and versions are refused")
            .required();
        parser.option("--device <DEVICE>", options.device,
                      "the device to take entries for; by default the CPU and every GPU");
      },
      import_table);
}
}  // namespace tune_import_verb

namespace tune_clear_verb {
Verb verb() {
  return table_verb(
      "tune clear", "delete the measured choices", "  cermet tune clear\n  cermet tune clear --device cuda",
      [](Parser& parser, TuneTableOptions& options) {
        parser.option("--device <DEVICE>", options.device, device_help);
      },
      clear_tuning);
}
}  // namespace tune_clear_verb

}  // namespace cermet::cli

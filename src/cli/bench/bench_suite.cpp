// cermet bench suite: many operator calls in one process, so that programs compile together and nothing starts twice.
#include <set>

#include "base/text.hpp"
#include "cli/bench/bench_call.hpp"
#include "cli/bench/device_limits.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/verb.hpp"
#include "io/json_file.hpp"
#include "op/schema/region_text.hpp"

namespace cermet::cli::bench_suite_verb {
namespace {

struct Options {
  std::string file, device = "cpu";
  int threads = 0;
  bool cold = false, limits = false;
  double seconds = 0.1;
  std::int64_t period = 0;
};

struct Entry {
  std::string name;
  BenchCall call;
  std::optional<BoundCall> bound;
  std::optional<MeasuredCall> measured;
  std::string error;
};

Entry parse_entry(const cermet::Json& json, const Options& options) {
  Entry entry;
  entry.call.cold = options.cold;
  entry.call.seconds = options.seconds;
  entry.call.values.period = options.period;
  entry.name = json.at("name").as_string();
  if (const auto region = json.find("region")) {
    entry.call.op = region->as_string();
    if (!is_region_text(entry.call.op)) region->refuse("expected a region in place of op and shape");
  } else {
    entry.call.op = json.at("op").as_string();
    entry.call.shape = json.at("shape").as_string();
  }
  for (const cermet::Json& field : json.as_object()) {
    const std::string_view key = field.key();
    if (key == "kernel") entry.call.kernel = field.as_string();
    else if (key == "config") entry.call.config = field.as_string();
    else if (key == "constants") entry.call.constants = field.as_string();
    else if (key == "paging") entry.call.values.paging = parse_paging(field.as_string());
    else if (key == "cold") entry.call.cold = field.as_bool();
    else if (key != "name" && key != "region" && ((key != "op" && key != "shape") || json.find("region")))
      field.refuse("expected name, op and shape or region, kernel, config, constants, paging or cold");
  }
  return entry;
}

std::vector<Entry> read_suite(const Options& options) {
  const JsonDocument document = JsonDocument::read(options.file);
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (const cermet::Json& json : document.root().as_array()) {
    entries.push_back(parse_entry(json, options));
    if (!names.insert(entries.back().name).second) json.at("name").refuse("expected a name of its own, found it twice");
  }
  return entries;
}

/// Runs `body`; an error becomes the entry's, so that one call that fails does not end the others.
template <class Body>
void keep_error(Entry& entry, Body body) try {
  body();
} catch (const Error& error) {
  if (error.status() == Status::cancelled) throw;
  entry.error = error.what();
}

/// Programs of all calls at once, in parallel; where that fails, each call reports its own error when it is measured.
void compile_all(const std::vector<Entry>& entries, ProgramStore& store) try {
  std::vector<cuda::Program> programs;
  for (const Entry& entry : entries)
    if (entry.bound)
      std::ranges::move(entry.bound->choice.kernel->programs(entry.bound->region, entry.bound->choice.config),
                        std::back_inserter(programs));
  store.prepare(programs);
} catch (const Error& error) {
  if (error.status() == Status::cancelled) throw;
}

void print(Console& console, const Entry& entry, const Context& context) {
  const auto& measured = entry.measured;
  if (console.json()) {
    Json json{{"name", entry.name}};
    if (measured) json.update(json_of(*measured, *entry.bound, context));
    else json["error"] = entry.error;
    console.write_json(json);
  } else if (measured) {
    console.print("{:<32} {:>10}  {:>8.1f} GB/s {:>10.1f} GOP/s  {}\n", entry.name,
                  seconds_text(measured->times.median_seconds), measured->bytes_per_second() * 1e-9,
                  measured->operations_per_second() * 1e-9, entry.bound->choice.kernel->name);
  } else {
    console.print("{:<32} {}\n", entry.name, one_line(entry.error));
  }
  console.flush();
}

void bench(Console& console, const Options& options) {
  require(!options.limits || options.device != "cpu",
          "--limits: expected a GPU (--device cuda), found cpu, whose limits `cermet limits` measures");
  std::vector<Entry> entries = read_suite(options);
  Context context = bench_context(options.device, options.threads);
  for (Entry& entry : entries) keep_error(entry, [&] { entry.bound.emplace(bind_call(entry.call, context)); });
  if (context.target()) compile_all(entries, *context.queue().programs);
  if (options.limits && context.target()) {
    const cuda::Limits limits = measure_device_limits(context, 0.1);
    if (console.json()) console.write_json({{"limits", limits_json(limits, context.device())}});
    else console.write(limits_table(limits));
  }
  for (Entry& entry : entries) {
    stop_if_interrupted();
    if (entry.bound) keep_error(entry, [&] { entry.measured = measure_call(entry.call, *entry.bound, context); });
    print(console, entry, context);
  }
}

}  // namespace

Verb verb() {
  return {
      "bench suite", "measure the operator calls that a file lists",
      "  cermet bench suite calls.json --device cuda --cold --limits --json", [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        parser
            .option("FILE <FILE.json>", options->file,
                    "a list of objects with name, op and shape (as for bench op) or region, and optionally kernel, "
                    "config, constants, paging, cold")
            .required();
        parser.flag("--cold", options->cold, "keep operands out of the caches, unless a call says otherwise");
        parser.flag("--limits", options->limits, "measure the limits of a GPU first");
        parser.option("--seconds", options->seconds, "how long to measure each call").range(0.0, 3600.0).show_default();
        parser.option("--period", options->period, "elements after which random operands repeat themselves; 0: never")
            .range(0, 1 << 30)
            .show_default();
        declare_device(parser, options->device, options->threads);
        return [options](Console& console) { bench(console, *options); };
      }};
}

}  // namespace cermet::cli::bench_suite_verb

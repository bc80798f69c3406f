// cermet bench soak: whether many decode steps change tokens, take memory or hang.
#include <chrono>
#include <set>

#include "cli/bench/soak.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/process.hpp"
#include "cli/ui/progress.hpp"
#include "comm/world.hpp"

namespace cermet::cli::bench_soak_verb {
namespace {

constexpr std::int64_t parts = 10;

struct Options {
  ModelOptions model;
  std::int64_t steps = 1'000'000, tokens = 64, growth = 1024;
  int engines = 2;
  double patience = 60;
};

/// What all engines have done, and what the process held then.
struct Sample {
  std::int64_t steps = 0;
  double seconds = 0;
  std::int64_t resident_bytes = 0;  ///< of the host in use
  std::int64_t held_bytes = 0,
               free_bytes = 0;  ///< of the devices that engines hold, and what is free of the first one; 0 on the CPU
};

using Soakers = std::vector<std::shared_ptr<Soaker>>;

std::int64_t steps_of(const Soakers& soakers) {
  std::int64_t steps = 0;
  for (const auto& each : soakers) steps += each->steps();
  return steps;
}

Soakers load(const Options& options) {
  require(options.engines == 1 || comm::process_rank().engine.empty(),
          "--engines: expected 1 in a process that was started with others, found {}", options.engines);
  const std::int64_t context = Soaker::context_of(options.tokens);
  check_context(options.model, context, "--tokens and the longest prompt");
  Soakers soakers;
  for (int number = 0; number < options.engines; ++number) {
    soakers.push_back(std::make_shared<Soaker>(load_engine(options.model, context), number, options.tokens));
    require(context <= soakers.back()->engine().room(0), "--tokens: expected at most {} (the context), found {}",
            soakers.back()->engine().room(0) - Soaker::context_of(0), options.tokens);
  }
  return soakers;
}

Sample sample(const Soakers& soakers, double seconds) {
  const Device* const device = soakers.front()->engine().queue().device;
  std::set<const Device*> devices;
  for (const auto& each : soakers)
    if (const Device* const own = each->engine().queue().device) devices.insert(own);
  std::int64_t held = 0;
  for (const Device* const each : devices) held += each->held_bytes();
  return {steps_of(soakers), seconds, resident_bytes(), held, device ? device->free_bytes() : 0};
}

/// A sample behind each tenth.
std::vector<Sample> soak(const Soakers& soakers, const Options& options) {
  for (const auto& each : soakers) each->learn();
  std::vector<Sample> samples;
  Progress progress("steps");
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t part = 1; part <= parts; ++part) {
    work_together(soakers, options.steps * part / parts / options.engines, options.patience);
    samples.push_back(sample(soakers, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()));
    progress.update(part, parts);
  }
  return samples;
}

void check_growth(const std::vector<Sample>& samples, const Options& options) {
  const Sample &first = samples.front(), &last = samples.back();
  const auto check = [&](const char* what, std::int64_t grown) {
    if (grown > options.growth * 1024)
      fail(Status::internal, "soak: {}: expected at most {} KiB more after step {} than after step {}, found {} KiB",
           what, options.growth, last.steps, first.steps, grown / 1024);
  };
  check("memory of the process", last.resident_bytes - first.resident_bytes);
  check("memory of the device", last.held_bytes - first.held_bytes);  // what is free others change, too
}

std::int64_t rounds_of(const Soakers& soakers) {
  std::int64_t rounds = 0;
  for (const auto& each : soakers) rounds += each->rounds();
  return rounds;
}

Json to_json(const Soakers& soakers, const Options& options, const std::vector<Sample>& samples) {
  Json list = Json::array();
  for (const Sample& each : samples)
    list.push_back({{"steps", each.steps},
                    {"seconds", each.seconds},
                    {"resident_bytes", each.resident_bytes},
                    {"device_held_bytes", each.held_bytes},
                    {"device_free_bytes", each.free_bytes}});
  return {{"model", options.model.model},
          {"device", soakers.front()->engine().device_name()},
          {"engines", options.engines},
          {"steps", samples.back().steps},
          {"rounds", rounds_of(soakers)},
          {"seconds", samples.back().seconds},
          {"samples", list}};
}

void print_text(Console& console, const Soakers& soakers, const std::vector<Sample>& samples) {
  Table table;
  table.row({"steps", "seconds", "memory", "on the device", "free there"});
  for (const Sample& each : samples) {
    if (&each != &samples.back() && (&each)[1].steps == each.steps)
      continue;  // whole rounds: few steps end several tenths at once
    table.row({std::to_string(each.steps), fmt::format("{:.1f}", each.seconds),
               bytes_text(static_cast<double>(each.resident_bytes)),
               each.held_bytes > 0 ? bytes_text(static_cast<double>(each.held_bytes)) : "-",
               each.free_bytes > 0 ? bytes_text(static_cast<double>(each.free_bytes)) : "-"});
  }
  console.print(
      "{}, {} engines at the same time\n{}{} rounds, each with the tokens and the last logits of the first ones, bit "
      "by bit\n",
      describe(soakers.front()->engine()), soakers.size(), table.to_string(), rounds_of(soakers));
}

void bench(Console& console, const Options& options) {
  const Soakers soakers = load(options);
  const std::vector<Sample> samples = soak(soakers, options);
  check_growth(samples, options);
  if (console.json()) console.write_json(to_json(soakers, options, samples));
  else print_text(console, soakers, samples);
}

}  // namespace

Verb verb() {
  return {
      "bench soak", "stability test: decode for long with several engines",
      "  cermet bench soak models/demo --super-kernel decode\n"
      "  cermet bench soak models/demo -n 20000 --engines 3 --threads 1 --json\n"
      "  cermet bench soak models/demo --device cuda --super-kernel decode --super-kernel-options profile=1",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        const ModelVerb verb{.decodes = true};
        declare_model(parser, options->model, verb);
        parser.section("Work");
        parser.option("-n,--steps", options->steps, "decode steps of all engines together; each ends its last round")
            .range(std::int64_t{1}, std::int64_t{1} << 40)
            .show_default();
        parser
            .option("--engines", options->engines, "engines that decode at the same time, each with threads of its own")
            .range(1, 64)
            .show_default();
        parser
            .option("--tokens", options->tokens,
                    "steps of a round: a prompt whose answer is compared with the first one")
            .range(std::int64_t{2}, std::int64_t{1} << 20)
            .show_default();
        parser
            .option("--growth <KIB>", options->growth,
                    "KiB that process and device may hold more at the end than after a tenth of the steps")
            .range(std::int64_t{0}, std::int64_t{1} << 30)
            .show_default();
        parser.option("--patience <SECONDS>", options->patience, "seconds within which every engine must make a step")
            .range(0.0, 1e6)
            .show_default();
        declare_model_options(parser, options->model, verb);
        declare_advanced_options(parser, options->model, verb);
        return [options](Console& console) { bench(console, *options); };
      }};
}

}  // namespace cermet::cli::bench_soak_verb

// cermet bench model: prefill and decode speed of a model, against the machine's limits where asked.
#include <algorithm>

#include "base/checked.hpp"
#include "cli/bench/bench_batch.hpp"
#include "cli/bench/bench_plan.hpp"
#include "cli/bench/device_limits.hpp"
#include "cli/graph_file.hpp"
#include "cli/model_options.hpp"
#include "cli/trace.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/process.hpp"
#include "cli/ui/progress.hpp"
#include "kernel/cpu/measure_limits.hpp"
#include "model/generate.hpp"
#include "model/pass_work.hpp"
#include "runtime/explain.hpp"

namespace cermet::cli::bench_model_verb {
namespace {

struct Options {
  ModelOptions model;
  std::int64_t prompt_tokens = 512, new_tokens = 32, batch = 1, repeat = 3;
  bool limits = false, steps = false, plan = false;
  std::string trace;
  OnnxOptions onnx;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Median tokens per second of both phases, and the machine's limits: the best measured between the rounds, or after
/// them those of a GPU.
struct Figures {
  double prefill = 0, decode = 0;
  double first_prefill_seconds = 0;  ///< of the first round, to its token
  PeakRates limits;
  std::int64_t peak_memory = 0;  ///< before limits are measured, which take buffers of their own
};

Figures measure(Engine& engine, const Options& options) {
  const std::vector<std::int32_t> prompt = some_ids(options.prompt_tokens, engine.config().vocab_size);
  const auto tokens = static_cast<double>(options.batch * options.prompt_tokens),
             made_tokens = static_cast<double>(options.batch * options.new_tokens);
  std::vector<double> prefill, decode;
  Figures figures;
  const bool gpu = engine.computes() && engine.context().target();
  Progress progress("rounds");
  GenerateOptions generation;
  generation.max_new_tokens = options.new_tokens + 1;               // the first comes from the prefill
  for (std::int64_t round = 0; round <= options.repeat; ++round) {  // the first round warms up
    BatchTimes times;
    if (options.batch == 1) {
      engine.reset(0);
      const Generation made = generate(engine, prompt, generation, [](std::int32_t) { stop_if_interrupted(); });
      times = {made.prefill_seconds, made.decode_seconds};
    } else {
      times = time_batch(engine, options.prompt_tokens, options.new_tokens, stop_if_interrupted);
    }
    prefill.push_back(tokens / times.prefill);
    if (options.new_tokens > 0) decode.push_back(made_tokens / times.decode);
    if (round == 0) figures.peak_memory = peak_memory_bytes();
    if (options.limits && !gpu)
      figures.limits.keep_best(peak_rates(cpu::measure_limits(engine.pool(), 0.3, stop_if_interrupted)));
    if (round == 0) figures.first_prefill_seconds = times.prefill;
    if (round == 0) engine.set_timing(options.steps);
    progress.update(round + 1, options.repeat + 1);
  }
  prefill.erase(prefill.begin());
  if (!decode.empty()) decode.erase(decode.begin());
  figures.prefill = median(prefill);
  figures.decode = decode.empty() ? 0 : median(decode);
  if (options.limits && gpu) figures.limits = peak_rates(measure_machine(engine.context()));
  return figures;
}

/// Seconds that GEMMs take at the machine's peaks: int8 at its own, the others at that of the model's type.
double seconds_at_peak(const PrefillOperations& operations, DType dtype, const PeakRates& limits) {
  const double real = dtype == DType::bf16 ? limits.bf16_products() : limits.f32,
               int8 = limits.int8_products() > 0 ? limits.int8_products() : real;
  return (operations.all - operations.int8) / real + operations.int8 / int8;
}

/// What is printed, as text or as JSON.
struct Report {
  Figures figures;
  std::int64_t peak_memory;
  double weight_bytes;  ///< that a decode step reads, per token
  PrefillOperations operations;
  double load_seconds, bandwidth_share = 0, peak_share = 0;

  Report(const Engine& engine, const Options& options, const Figures& measured, double load)
      : figures(measured),
        peak_memory(options.limits ? measured.peak_memory : peak_memory_bytes()),
        weight_bytes(decode_weight_bytes(engine, options.batch)),
        operations(prefill_operations(engine, options.prompt_tokens)),
        load_seconds(load) {
    if (!options.limits) return;
    bandwidth_share = weight_bytes * figures.decode / figures.limits.read_bytes_per_second;
    peak_share = seconds_at_peak(operations, engine.dtype(), figures.limits) /
                 static_cast<double>(options.prompt_tokens) * figures.prefill;
  }
  double decode_of_sequence(const Options& options) const {
    return figures.decode / static_cast<double>(options.batch);
  }
  double first_token_seconds() const { return load_seconds + figures.first_prefill_seconds; }
};

Json to_json(const Engine& engine, const Options& options, const Report& report) {
  const Figures& figures = report.figures;
  Json json{{"model", options.model.model},
            {"architecture", engine.config().architecture_name},
            {"dtype", name_of(engine.dtype())},
            {"device", engine.device_name()},
            {"threads", engine.threads()},
            {"batch", options.batch},
            {"prompt_tokens", options.prompt_tokens},
            {"new_tokens", options.new_tokens},
            {"prefill_tokens_per_second", figures.prefill},
            {"decode_tokens_per_second", figures.decode},
            {"decode_tokens_per_second_per_sequence", report.decode_of_sequence(options)},
            {"decode_seconds_per_token", figures.decode > 0 ? 1 / figures.decode : 0},
            {"decode_weight_bytes_per_token", report.weight_bytes},
            {"prefill_operations", report.operations.all},
            {"fallbacks", engine.fallbacks()},
            {"peak_memory_bytes", report.peak_memory}};
  if (options.limits) {
    json["limits"] = limits_json(figures.limits);
    json["decode_fraction_of_bandwidth"] = report.bandwidth_share;
    json["prefill_fraction_of_peak"] = report.peak_share;
  }
  json["load_seconds"] = report.load_seconds;
  json["compile_seconds"] = engine.load_times().kernels;
  json["weights_seconds"] = engine.load_times().weights;
  json["first_token_seconds"] = report.first_token_seconds();
  return json;
}

void print_limits(Table& table, const Report& report) {
  const PeakRates& limits = report.figures.limits;
  table.row(
      {"read bandwidth", fmt::format("{} measured in the same run; decode reads weights at {:.1f} % of it",
                                     amount_text(limits.read_bytes_per_second, "B/s"), 100 * report.bandwidth_share)});
  const std::string tiles = limits.amx_bf16 > 0
                                ? fmt::format(", of AMX tiles bf16 {}, int8 {}", amount_text(limits.amx_bf16, "FLOP/s"),
                                              amount_text(limits.amx_int8, "OP/s"))
                                : "";
  table.row({"peak", fmt::format("f32 {}, bf16 {}, int8 {}{}; prefill GEMMs run at {:.1f} % of the peak of their types",
                                 amount_text(limits.f32, "FLOP/s"), amount_text(limits.bf16, "FLOP/s"),
                                 amount_text(limits.int8, "OP/s"), tiles, 100 * report.peak_share)});
}

void print_text(Console& console, const Engine& engine, const Options& options, const Report& report) {
  Table table;
  table.row({"model", fmt::format("{}, {}, {}", engine.config().architecture_name, name_of(engine.dtype()),
                                  engine.device_name())});
  if (options.batch > 1)
    table.row({"batch", fmt::format("{} sequences; each decodes {:.2f} tokens/s", options.batch,
                                    report.decode_of_sequence(options))});
  table.row({"prefill", fmt::format("{:.1f} tokens/s ({} tokens)", report.figures.prefill, options.prompt_tokens)});
  table.row({"decode", fmt::format("{:.2f} tokens/s ({} tokens), {} of weights a token", report.figures.decode,
                                   options.new_tokens, bytes_text(report.weight_bytes))});
  if (options.limits) print_limits(table, report);
  table.row(
      {"start", fmt::format("{} to the first token: kernels {}, weights {}", seconds_text(report.first_token_seconds()),
                            seconds_text(engine.load_times().kernels), seconds_text(engine.load_times().weights))});
  table.row({"memory", bytes_text(static_cast<double>(report.peak_memory)) + " at the peak"});
  if (engine.fallbacks() > 0)
    table.row({"fallbacks", fmt::format("{} launches that their kernel's own programs did not take; a trace names them",
                                        engine.fallbacks())});
  console.write(table.to_string());
}

void bench(const Options& options, Console& console) {
  require(!options.plan || (!options.steps && options.trace.empty()),
          "--plan: expected neither --steps nor --trace with it, found {}", options.steps ? "--steps" : "--trace");
  if (is_onnx(options.model.model) || is_graph(options.model.model)) {
    const OnnxOptions onnx = with_model(options.onnx, options.model);
    const OnnxBench bench{static_cast<int>(options.repeat), options.limits, options.steps, options.plan};
    return is_graph(onnx.model) ? bench_graph(onnx, bench, console) : bench_onnx(onnx, bench, console);
  }
  const std::int64_t most = options.prompt_tokens + options.new_tokens,
                     tokens = options.batch * round_up(most, std::int64_t{16});  // whole cache blocks
  check_context(options.model, options.batch == 1 ? most : tokens, "--prompt-tokens and --new-tokens of all sequences",
                options.batch == 1);
  if (!options.trace.empty()) check_trace_file(options.trace);
  const auto start = std::chrono::steady_clock::now();
  Engine engine = load_engine(options.model, options.batch == 1 ? most : tokens, 512, options.batch);
  const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  require(most <= engine.room(0),
          "--prompt-tokens and --new-tokens: expected at most {} together (the context), found {}", engine.room(0),
          most);
  if (options.plan) return print_plan(console, engine, options.prompt_tokens, options.limits);
  const Report report(engine, options, measure(engine, options), load_seconds);
  const auto uses = [&](bool prefill) {
    return kernels_used(prefill || options.batch == 1 ? engine.steps(prefill) : engine.last_run().steps);
  };
  if (console.json()) {
    Json json = to_json(engine, options, report);
    if (options.steps)
      json["prefill_kernels"] = kernel_times_json(uses(true)), json["decode_kernels"] = kernel_times_json(uses(false));
    console.write_json(json);
  } else {
    print_text(console, engine, options, report);
  }
  if (options.steps && !console.json())
    console.print("\nprefill, by kernel\n{}\ndecode, by kernel\n{}", kernel_table(uses(true)),
                  kernel_table(uses(false)));
  if (!options.trace.empty())
    write_trace(options.trace, engine, {options.prompt_tokens, std::min<std::int64_t>(options.new_tokens, 4)});
}

Action declare(Parser& parser) {
  const auto options = std::make_shared<Options>();
  const ModelVerb verb{.inputs = any_input, .decodes = true};
  declare_model(parser, options->model, verb);
  parser.section("Work", checkpoint_input);
  parser.option("--prompt-tokens", options->prompt_tokens, "prompt tokens to prefill").range(1, 1 << 24).show_default();
  parser.option("-n,--new-tokens", options->new_tokens, "decode steps; 0: none").range(0, 1 << 24).show_default();
  parser.option("--batch", options->batch, "sequences in every pass; speeds are totals over all of them")
      .range(1, 4096)
      .show_default();
  parser.section("Work");
  parser.option("--repeat", options->repeat, "rounds after a warm-up; medians are reported")
      .range(1, 1000)
      .show_default();
  parser.section("Report", checkpoint_input | onnx_input);
  parser.flag("--limits", options->limits, "measure the machine's limits between the rounds and compare");
  parser.section("Report");
  parser.flag("--steps", options->steps, "time every kernel and print a table (costs a little speed)");
  parser.flag("--plan", options->plan,
              "print the launches of a decode step instead of speeds, and which of them wait for which");
  parser.section("Report", checkpoint_input);
  parser.option("--trace <FILE.json>", options->trace,
                "write a timeline of a prefill and up to four decode steps for chrome://tracing or Perfetto");
  declare_model_options(parser, options->model, verb);
  declare_onnx_options(parser, options->onnx);
  declare_advanced_options(parser, options->model, verb);
  return [options, given = parser.given()](Console& console) {
    given->check_input(input_of(options->model.model), options->model.model);
    bench(*options, console);
  };
}

}  // namespace

Verb verb() {
  return {"bench model", "measure a model's prefill and decode speed",
          "cermet bench model models/demo --prompt-tokens 512 -n 64 --limits\ncermet bench model models/demo --batch "
          "16 --steps\n"
          "cermet bench model models/demo --plan --device null:sm_90\ncermet bench model models/demo --trace "
          "timeline.json\n"
          "cermet bench model models/demo_onnx/classifier.onnx --dim batch=4",
          declare};
}

}  // namespace cermet::cli::bench_model_verb

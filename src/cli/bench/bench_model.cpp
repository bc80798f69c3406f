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
#include "kernel/cuda/gemv/compact.hpp"
#include "model/generate.hpp"
#include "op/schema/operator.hpp"
#include "runtime/explain.hpp"
#include "select/bound_op.hpp"

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
  cpu::Limits limits;
  std::int64_t peak_memory = 0;  ///< before limits are measured, which take buffers of their own
};

void keep_best(cpu::Limits& best, const cpu::Limits& found) {
  best.read_bytes_per_second = std::max(best.read_bytes_per_second, found.read_bytes_per_second);
  best.f32_flops = std::max(best.f32_flops, found.f32_flops);
  best.bf16_flops = std::max(best.bf16_flops, found.bf16_flops);
  best.int8_ops = std::max(best.int8_ops, found.int8_ops);
  best.amx_bf16_flops = std::max(best.amx_bf16_flops, found.amx_bf16_flops);
  best.amx_int8_ops = std::max(best.amx_int8_ops, found.amx_int8_ops);
}

cpu::Limits limits_of(Context& gpu) {
  const cuda::Limits found = measure_device_limits(gpu, 0.05);
  return {found.read_bytes_per_second(), found.f32_operations_per_second, found.bf16_operations_per_second,
          found.i8_operations_per_second};
}

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
    if (options.limits && !gpu) keep_best(figures.limits, cpu::measure_limits(engine.pool(), 0.3, stop_if_interrupted));
    if (round == 0) figures.first_prefill_seconds = times.prefill;
    if (round == 0) engine.set_timing(options.steps);
    progress.update(round + 1, options.repeat + 1);
  }
  prefill.erase(prefill.begin());
  if (!decode.empty()) decode.erase(decode.begin());
  figures.prefill = median(prefill);
  figures.decode = decode.empty() ? 0 : median(decode);
  if (options.limits && gpu) figures.limits = limits_of(engine.context());
  return figures;
}

bool is_product(const Problem& problem) { return definition(problem).category == "Linear algebra"; }

/// Bytes of weights that a decode step of `batch` sequences reads, per token: of a stack of experts at most as many as
/// that many tokens can be routed to.
double decode_weight_bytes(const Engine& engine, std::int64_t batch) {
  const ModelConfig& config = engine.config();
  double bytes = 0;
  for (const StepInfo& step : engine.steps(false)) {
    const Region& region = step.region;
    const Problem& problem = region.problem();
    if (problem.op->kind == OpKind::embedding) continue;
    const double share = problem.op->kind == OpKind::grouped_linear
                             ? static_cast<double>(std::min(config.experts, batch * config.experts_per_token)) /
                                   static_cast<double>(config.experts)
                             : 1;
    const bool is_compact = step.layout.find(cuda::compact_rows.name) != std::string::npos;
    for (std::size_t i = 0; i < region.operands.size(); ++i) {
      if (!region.has(i) || !region.is_constant(i)) continue;
      const TensorType type = region.operand_type(i);
      bytes += is_compact && type.rank() == 2 ? static_cast<double>(packed_bytes(cuda::compact_rows, type))
                                              : share * bytes_of(type, region.maximum());
    }
  }
  return bytes / static_cast<double>(batch);
}

/// Operations of the GEMMs in a prefill of one sequence, with logits for its last token only: all, and those of int8
/// with int8.
struct PrefillOperations {
  double all = 0, int8 = 0;
};

PrefillOperations prefill_operations(const Engine& engine, std::int64_t tokens) {
  PrefillOperations operations;
  for (const StepInfo& step : engine.steps(true)) {
    if (!is_product(step.region.problem())) continue;
    Problem problem = step.region.problem();
    problem.maximum.set(Symbol("T"), tokens);
    problem.maximum.set(Symbol("R"), 1);
    const double of_step = cost_of(problem).operations;
    operations.all += of_step;
    if (problem.input(0).dtype == DType::i8) operations.int8 += of_step;
  }
  return operations;
}

/// Seconds that they take at the machine's peaks: int8 at its own, the others at that of the model's type.
double seconds_at_peak(const PrefillOperations& operations, DType dtype, const cpu::Limits& limits) {
  const double real = dtype == DType::bf16 ? limits.bf16_products() : limits.f32_flops,
               int8 = limits.int8_products() > 0 ? limits.int8_products() : real;
  return (operations.all - operations.int8) / real + operations.int8 / int8;
}

Json to_json(const Engine& engine, const Options& options, const Figures& figures) {
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
            {"decode_tokens_per_second_per_sequence", figures.decode / static_cast<double>(options.batch)},
            {"decode_seconds_per_token", figures.decode > 0 ? 1 / figures.decode : 0},
            {"decode_weight_bytes_per_token", decode_weight_bytes(engine, options.batch)},
            {"prefill_operations", prefill_operations(engine, options.prompt_tokens).all},
            {"fallbacks", engine.fallbacks()},
            {"peak_memory_bytes", options.limits ? figures.peak_memory : peak_memory_bytes()}};
  if (!options.limits) return json;
  const cpu::Limits& limits = figures.limits;
  json["limits"] = limits_json(limits);
  json["decode_fraction_of_bandwidth"] =
      decode_weight_bytes(engine, options.batch) * figures.decode / limits.read_bytes_per_second;
  json["prefill_fraction_of_peak"] =
      seconds_at_peak(prefill_operations(engine, options.prompt_tokens), engine.dtype(), limits) /
      static_cast<double>(options.prompt_tokens) * figures.prefill;
  return json;
}

void print_text(Console& console, const Json& json) {
  Table table;
  table.row({"model", fmt::format("{}, {}, {}", json["architecture"].get<std::string>(),
                                  json["dtype"].get<std::string>(), json["device"].get<std::string>())});
  const std::int64_t batch = json["batch"].get<std::int64_t>();
  if (batch > 1)
    table.row({"batch", fmt::format("{} sequences; each decodes {:.2f} tokens/s", batch,
                                    json["decode_tokens_per_second_per_sequence"].get<double>())});
  table.row({"prefill", fmt::format("{:.1f} tokens/s ({} tokens)", json["prefill_tokens_per_second"].get<double>(),
                                    json["prompt_tokens"].get<std::int64_t>())});
  table.row(
      {"decode", fmt::format("{:.2f} tokens/s ({} tokens), {} of weights a token",
                             json["decode_tokens_per_second"].get<double>(), json["new_tokens"].get<std::int64_t>(),
                             bytes_text(json["decode_weight_bytes_per_token"].get<double>()))});
  if (json.contains("limits")) {
    table.row({"read bandwidth", fmt::format("{} measured in the same run; decode reads weights at {:.1f} % of it",
                                             amount_text(json["limits"]["read_bytes_per_second"].get<double>(), "B/s"),
                                             100 * json["decode_fraction_of_bandwidth"].get<double>())});
    const Json& limits = json["limits"];
    const auto rate = [&](const char* key, const char* unit) { return amount_text(limits[key].get<double>(), unit); };
    const bool tiles =
        limits.contains("amx_bf16_operations_per_second") && limits["amx_bf16_operations_per_second"].get<double>() > 0;
    table.row(
        {"peak", fmt::format("f32 {}, bf16 {}, int8 {}{}; prefill GEMMs run at {:.1f} % of the peak of their types",
                             rate("f32_operations_per_second", "FLOP/s"), rate("bf16_operations_per_second", "FLOP/s"),
                             rate("int8_operations_per_second", "OP/s"),
                             tiles ? fmt::format(", of AMX tiles bf16 {}, int8 {}",
                                                 rate("amx_bf16_operations_per_second", "FLOP/s"),
                                                 rate("amx_int8_operations_per_second", "OP/s"))
                                   : "",
                             100 * json["prefill_fraction_of_peak"].get<double>())});
  }
  table.row({"start", fmt::format("{} to the first token: kernels {}, weights {}",
                                  seconds_text(json["first_token_seconds"].get<double>()),
                                  seconds_text(json["compile_seconds"].get<double>()),
                                  seconds_text(json["weights_seconds"].get<double>()))});
  table.row({"memory", bytes_text(json["peak_memory_bytes"].get<double>()) + " at the peak"});
  if (const auto count = json["fallbacks"].get<std::int64_t>(); count > 0)
    table.row({"fallbacks",
               fmt::format("{} launches that their kernel's own programs did not take; a trace names them", count)});
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
  const Figures figures = measure(engine, options);
  Json json = to_json(engine, options, figures);
  json["load_seconds"] = load_seconds;
  json["compile_seconds"] = engine.load_times().kernels;
  json["weights_seconds"] = engine.load_times().weights;
  json["first_token_seconds"] = load_seconds + figures.first_prefill_seconds;
  const auto uses = [&](bool prefill) {
    return kernels_used(prefill || options.batch == 1 ? engine.steps(prefill) : engine.last_run().steps);
  };
  if (options.steps)
    json["prefill_kernels"] = kernel_times_json(uses(true)), json["decode_kernels"] = kernel_times_json(uses(false));
  if (console.json()) console.write_json(json);
  else print_text(console, json);
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
              "print the launches of a decode step instead of speeds, and which of their items wait for which");
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

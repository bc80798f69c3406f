// cermet bench op: how fast one kernel computes one call.
#include <algorithm>
#include <chrono>

#include "api/schema.hpp"
#include "base/text.hpp"
#include "cli/bench_op_device.hpp"
#include "cli/bench_operands.hpp"
#include "cli/interrupt.hpp"
#include "cli/op_call.hpp"
#include "cli/process.hpp"
#include "cli/verb.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/cuda/kernels.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet::cli {
namespace {

struct Options {
  std::string name, shape, constants, kernel, device = "cpu";
  std::int64_t tokens = 512;
  int threads = 0;
  double seconds = 0.5;
  std::uint64_t seed = 0;
  bool cold = false, limits = false;
};

/// The problem with the largest value in place of each symbol: a run has numbers.
Problem without_symbols(const Problem& problem) {
  std::vector<std::optional<TensorType>> types;
  for (const auto& type : problem.inputs) types.push_back(type ? std::optional(TensorType{type->dtype, to_dims(bind(type->dims, problem.maximum))}) : type);
  return make_problem(*problem.op, std::move(types), problem.attributes);
}

const Kernel& kernel_of(const Problem& problem, const std::string& name) {
  if (name.empty()) return select_kernel(problem);
  const std::span<const Kernel* const> kernels = problem.target ? cuda::kernels_of(problem.op->kind) : cpu::kernels_of(problem.op->kind);
  for (const Kernel* kernel : kernels) {
    if (kernel->name != name) continue;
    const Decline decline = kernel->declines(problem);
    if (decline) fail(Status::unsupported, "{}: expected {} to take it, found: {}", problem.to_string(), name, *decline);
    return *kernel;
  }
  std::vector<std::string_view> names;
  for (const Kernel* kernel : kernels) names.push_back(kernel->name);
  fail(Status::invalid_argument, "--kernel: expected one of {}, found {}", fmt::join(names, ", "), quote(name));
}

/// One set of operands and results with the kernel bound to them.
struct Copy {
  BoundOp op;
  std::vector<OwnedTensor> memory;
  std::vector<TensorView> inputs, outputs;

  Copy(const Problem& problem, const Kernel& kernel, ThreadPool& pool, std::uint64_t seed) : op(problem, kernel, pool) {
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      inputs.emplace_back();
      if (!problem.has(i)) continue;
      memory.push_back(make_bench_operand(problem, i, seed));
      inputs.back() = memory.back().view;
      if (i < 64 && problem.is_constant(i)) op.prepack(i, inputs.back());
    }
    const auto& aliases = problem.op->aliases;
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      if (o < aliases.size() && aliases[o] >= 0) {
        outputs.push_back(inputs[static_cast<std::size_t>(aliases[o])]);
        continue;
      }
      memory.emplace_back(problem.outputs[o].dtype, bind(problem.outputs[o].dims, {}));
      outputs.push_back(memory.back().view);
    }
  }
  void run() { op.run(inputs, outputs); }
};

/// Bytes of all operands and results of one copy, packed weights included.
std::int64_t copy_bytes(const Problem& problem, const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (!problem.has(i)) continue;
    bytes += problem.input(i).bytes().constant();
    const WeightLayout* layout = i < 64 && problem.is_constant(i) ? kernel.weight_layout(problem, i) : nullptr;
    if (layout) bytes += packed_bytes(*layout, problem.input(i));
  }
  for (const TensorType& output : problem.outputs) bytes += output.bytes().constant();
  return bytes;
}

/// Copies that together exceed any cache, so that each run finds its operands in memory.
std::int64_t cold_copies(std::int64_t bytes) {
  constexpr std::int64_t beyond_caches = std::int64_t{1} << 30, most = 4096;
  const std::int64_t room = std::min(beyond_caches, available_memory_bytes() / 4);
  return std::clamp<std::int64_t>(room / std::max<std::int64_t>(bytes, 1), 1, most);
}

/// Seconds of each run, sorted.
std::vector<double> measure(std::vector<Copy>& copies, double seconds) {
  constexpr std::size_t fewest = 5;
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (Copy& copy : copies) copy.run();
  std::vector<double> times;
  for (const auto begin = Clock::now(); since(begin) < seconds || times.size() < fewest;) {
    stop_if_interrupted();
    Copy& copy = copies[times.size() % copies.size()];
    const auto start = Clock::now();
    copy.run();
    times.push_back(since(start));
  }
  std::sort(times.begin(), times.end());
  return times;
}

Json result_json(const Problem& problem, const Kernel& kernel, const std::vector<double>& times, std::size_t copies, int threads) {
  const Cost cost = cost_of(problem);
  const double median = times[times.size() / 2];
  return {{"problem", problem.to_string()},
          {"kernel", kernel.name},
          {"constants", constant_names(problem)},
          {"threads", threads},
          {"instruction_set", cpu::name_of(cpu::active_isa())},
          {"copies", copies},
          {"runs", times.size()},
          {"median_seconds", median},
          {"min_seconds", times.front()},
          {"operations", cost.operations},
          {"bytes", cost.bytes},
          {"operations_per_second", cost.operations / median},
          {"bytes_per_second", cost.bytes / median}};
}

void add_limits(Json& json, ThreadPool& pool) {
  const cpu::Limits limits = cpu::measure_limits(pool, 0.5);
  const double operations = json["operations_per_second"], bytes = json["bytes_per_second"];
  json["limits"] = {{"read_bytes_per_second", limits.read_bytes_per_second},
                    {"f32_operations_per_second", limits.f32_flops},
                    {"bf16_operations_per_second", limits.bf16_flops},
                    {"int8_operations_per_second", limits.int8_ops}};
  json["bandwidth_fraction"] = bytes / limits.read_bytes_per_second;
  json["f32_fraction"] = operations / limits.f32_flops;
  json["bf16_fraction"] = limits.bf16_flops > 0 ? Json(operations / limits.bf16_flops) : Json();
}

void print_text(Console& console, const Json& json) {
  const auto number = [&](const char* key) { return json[key].get<double>(); };
  Table table;
  table.row({"kernel", json["kernel"]});
  table.row({"machine", fmt::format("{} threads, {}", json["threads"].get<int>(), json["instruction_set"].get<std::string>())});
  table.row({"median", fmt::format("{} of {} runs over {} copies of the operands", seconds_text(number("median_seconds")), json["runs"].get<std::size_t>(),
                                   json["copies"].get<std::size_t>())});
  table.row({"fastest", seconds_text(number("min_seconds"))});
  table.row({"moved", fmt::format("{:.2f} GB/s", number("bytes_per_second") * 1e-9)});
  table.row({"computed", fmt::format("{:.2f} GFLOP/s", number("operations_per_second") * 1e-9)});
  if (json.contains("limits")) {
    table.row({"of read bandwidth", fmt::format("{:.1f} %", 100 * number("bandwidth_fraction"))});
    table.row({"of f32 peak", fmt::format("{:.1f} %", 100 * number("f32_fraction"))});
    if (json["bf16_fraction"].is_number()) table.row({"of bf16 peak", fmt::format("{:.1f} %", 100 * number("bf16_fraction"))});
  }
  console.print("{}\n{}", json["problem"].get<std::string>(), table.to_string());
}

void print_device_text(Console& console, const Json& json) {
  Table table;
  table.row({"kernel", json["kernel"]});
  table.row({"device", json["device"]});
  table.row({"median", fmt::format("{} a launch, over {} replays of {} launches on {} sets of operands", seconds_text(json["median_seconds"].get<double>()),
                                   json["graphs"].get<std::int64_t>(), json["launches"].get<std::int64_t>(), json["copies"].get<std::int64_t>())});
  table.row({"fastest", seconds_text(json["min_seconds"].get<double>())});
  table.row({"moved", fmt::format("{:.1f} GB/s", json["bytes_per_second"].get<double>() * 1e-9)});
  table.row({"computed", fmt::format("{:.1f} GFLOP/s", json["operations_per_second"].get<double>() * 1e-9)});
  console.print("{}\n{}", json["problem"].get<std::string>(), table.to_string());
}

/// Measures on a device with streams.
void bench_device(Console& console, const Options& options, Problem problem, Device& device) {
  if (!device.computes()) fail(Status::unsupported, "device {}: expected one that computes", device.name());
  require(!options.limits, "--limits: expected --device cpu, found {}", options.device);
  problem.target = device.target();
  const Kernel& kernel = kernel_of(problem, options.kernel);
  const auto stream = device.make_stream();
  ProgramStore programs(device);
  ThreadPool pool(options.threads);
  const DeviceBench times = bench_on_device(problem, kernel, {&device, stream.get(), &programs}, pool, options.seed, options.cold, options.seconds);
  const Cost cost = cost_of(problem);
  const Json json{{"problem", problem.to_string()},
                  {"kernel", kernel.name},
                  {"device", device.name()},
                  {"constants", constant_names(problem)},
                  {"copies", times.copies},
                  {"launches", times.launches},
                  {"graphs", times.graphs},
                  {"median_seconds", times.median_seconds},
                  {"min_seconds", times.min_seconds},
                  {"operations", cost.operations},
                  {"bytes", cost.bytes},
                  {"operations_per_second", cost.operations / times.median_seconds},
                  {"bytes_per_second", cost.bytes / times.median_seconds}};
  if (console.json()) console.write_json(json);
  else print_device_text(console, json);
}

void bench(Console& console, const Options& options) {
  const OpDefinition& op = api::operator_named(options.name);
  Problem problem = without_symbols(parse_problem(op, options.shape, options.tokens));
  mark_constants(problem, options.constants);
  if (options.device != "cpu") {
    const auto device = make_device(options.device);
    if (device->target()) return bench_device(console, options, std::move(problem), *device);
    fail(Status::unsupported, "device {}: expected one that computes", device->name());
  }
  const Kernel& kernel = kernel_of(problem, options.kernel);
  ThreadPool pool(options.threads);
  const std::int64_t bytes = copy_bytes(problem, kernel), count = options.cold ? cold_copies(bytes) : 1;
  require_memory(count * bytes + kernel.workspace(problem, pool.size()), problem.to_string());
  std::vector<Copy> copies;
  copies.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    stop_if_interrupted();
    copies.emplace_back(problem, kernel, pool, options.seed);
  }
  Json json = result_json(problem, kernel, measure(copies, options.seconds), copies.size(), pool.size());
  if (options.limits) add_limits(json, pool);
  if (console.json()) console.write_json(json);
  else print_text(console, json);
}

}  // namespace

Verb bench_op_verb() {
  return {"bench op", "measures one operator on random operands",
          "  cermet bench op linear --shape 'x=bf16[1,2048] w=bf16[8192,2048]' --cold --limits\n"
          "  cermet bench op rms_norm --shape 'bf16[512,2048] bf16[2048]' --json",
          [](CLI::App& app) -> Action {
            const auto options = std::make_shared<Options>();
            app.add_option("NAME", options->name, "an operator")->required();
            app.add_option("--shape", options->shape, "operand types by name or in order, attributes as name=value")->required();
            app.add_option("--constant", options->constants, "operands known before the first run, or none; by default those that a kernel would prepack");
            app.add_option("--device", options->device, "cpu or cuda; on a GPU, replays of a captured graph are timed")->capture_default_str();
            app.add_option("--kernel", options->kernel, "the kernel to run in place of the chosen one");
            app.add_option("--tokens", options->tokens, "value of a symbolic dimension")->check(CLI::Range(1, 1 << 30))->capture_default_str();
            app.add_flag("--cold", options->cold,
                         "use copies of the operands in turn, a gigabyte in all or on a GPU four times its L2, so that no cache holds them");
            app.add_flag("--limits", options->limits, "measure the machine's limits too and print the parts of them that were reached");
            app.add_option("--seconds", options->seconds, "how long to measure")->check(CLI::Range(0.0, 3600.0))->capture_default_str();
            app.add_option("--threads", options->threads, "threads; 0 is one for each core")->check(CLI::Range(0, 1024))->capture_default_str();
            app.add_option("--seed", options->seed, "of the operands' values")->capture_default_str();
            return [options](Console& console) { bench(console, *options); };
          }};
}

}  // namespace cermet::cli

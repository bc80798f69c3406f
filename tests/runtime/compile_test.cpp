#include "runtime/compile.hpp"

#include <gtest/gtest.h>

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <sstream>

#include "base/logger.hpp"
#include "op/schema/type_text.hpp"
#include "runtime/explain.hpp"
#include "select/select.hpp"
#include "tests/model/scratch.hpp"
#include "tests/runtime/graph_harness.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

TEST(Compile, ReportsItsSteps) {
  GraphRunner runner("dense");
  std::vector<std::string> names, listed;
  for (const CompileStep& step : runner.report) {
    names.push_back(step.name);
    EXPECT_FALSE(step.note.empty()) << step.name;
    EXPECT_EQ(step.kind == PassKind::weights, step.name == "load-weights");
    EXPECT_EQ(step.kind == PassKind::programs, step.name == "compile-kernels");
  }
  for (const CompileStepInfo& step : compile_steps()) listed.emplace_back(step.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "verify", "mark-super-kernels", "dead-code", "fold-constants", "common-subexpressions",
                       "rewrite", "layouts", "rewrite-layouts", "split-gates", "split-sums", "fuse", "fold-views",
                       "place-updates", "select-kernels", "load-weights", "compile-kernels", "plan-memory", "bind"}));
  EXPECT_EQ(names, listed);
  EXPECT_EQ(runner.report[5].note, "rope-and-cache 1, stack-linears 1");
  EXPECT_EQ(runner.report[11].note, "5 views, 11 launches left");
  EXPECT_EQ(runner.executable.steps().size(), 11u);
  EXPECT_EQ(GraphRunner("dense", {.maximum = {}, .skip = {"rewrite"}, .dump_after = ""}).executable.steps().size(),
            14u);
}

TEST(Compile, TwoMaximaShareOneWeightStore) {
  ThreadPool pool(2);
  int loads = 0;
  WeightStore weights(
      [&](const std::string& name, std::int64_t slice, const TensorView& destination) {
        ++loads;
        load_by_name(name, slice, destination);
      },
      pool);
  const auto device = make_cpu_device();
  CompileOptions options = GraphRunner::with_maximum({});
  const Executable many = compile(test_graph("dense"), *device, weights, pool, options);
  const std::int64_t bytes = weights.bytes();
  const int loads_of_one = loads;
  const Executable again = compile(test_graph("dense"), *device, weights, pool, options);
  EXPECT_EQ(loads, loads_of_one);
  EXPECT_EQ(weights.bytes(), bytes);
  options.maximum.set(Symbol("T"), 1);
  const Executable one = compile(test_graph("dense"), *device, weights, pool, options);
  EXPECT_EQ(weights.bytes(), bytes) << "kernels for one token and for many agree on layouts";
  EXPECT_LT(one.arena_bytes(), many.arena_bytes());
}

TEST(Compile, TakesWhatWasMeasuredForEachRange) {
  const test::ScratchFolder scratch;
  ThreadPool pool(2);
  WeightStore weights(load_by_name, pool);
  const auto device = make_cpu_device();
  constexpr std::string_view text =
      "graph g {\n input %x : f32[tokens, 64]\n constant %w : f32[32, 64]\n %y = linear(%x, %w) : f32[tokens, 32]\n "
      "output y = %y\n}";
  Tuning tuning = Tuning::open((scratch / "tuning.db").string(), {}, nullptr);
  CompileOptions options;
  options.tuning = &tuning;
  const auto selected = [&](std::int64_t most) {
    options.maximum.set(Symbol("tokens"), most);
    std::vector<CompileStep> report;
    compile(parse_graph(text), *device, weights, pool, options, &report);
    const auto step = std::ranges::find(report, "select-kernels", &CompileStep::name);
    return step == report.end() ? "no such step" : step->note;
  };
  for (const std::int64_t most : {1, 32, 500}) {  // as a call with a symbol of any name is stored
    EXPECT_EQ(selected(most), "1 launches of 1 kernels");
    const OperatorCall call = parse_call("linear(f32[T, 64], f32[32, 64])");
    Problem problem = make_problem(*find_operator("linear"), call.inputs, call.attributes);
    problem.constant_inputs = 1u << 1;
    problem.maximum.set(Symbol("T"), most);
    const TuningKey key = tuning_key(problem, device_identity(nullptr, 2));
    tuning.database().put({key, select_kernel(problem).kernel->name, "default", 1e-6, 0, "2026-03-01 14:05:09", {}});
    EXPECT_EQ(selected(most), "1 launches of 1 kernels, 1 as measured") << most;
    EXPECT_EQ(selected(most + most), "1 launches of 1 kernels") << "another bucket";
    tuning.database().put({key, "gemm.forgotten", "default", 1e-6, 0, "2026-03-01 14:05:09", {}});
    EXPECT_EQ(selected(most),
              "1 launches of 1 kernels; 1 measured choice ignored: expected a kernel of this operator, found "
              "\"gemm.forgotten\" (1)");
  }
}

TEST(Compile, RefusesWhatCannotRun) {
  ThreadPool pool(1);
  WeightStore weights(load_by_name, pool);
  const auto device = make_cpu_device();
  const auto compiled = [&](std::string_view text, const CompileOptions& options) {
    return error_text([&] { compile(parse_unverified_graph(text), *device, weights, pool, options); });
  };
  constexpr std::string_view norm =
      "graph g {\n input %x : f32[T, 8]\n %y = rms_norm(%x) : f32[T, 8]\n output y = %y\n}";
  CompileOptions options;
  EXPECT_EQ(compiled(norm, options), "symbol 'T': expected a maximum of at least 1 to compile for, found 0");
  options.maximum.set(Symbol("T"), 4);
  EXPECT_EQ(compiled(norm, options), "no error");
  options.maximum.set(Symbol("T"), std::int64_t{1} << 60);
  EXPECT_EQ(compiled(norm, options), "f32[T, 8]: expected less than 2^62 bytes, found more");
  options.maximum.set(Symbol("T"), 4);
  EXPECT_EQ(compiled("graph g {\n input %x : f32[T, 8]\n %y = rms_norm(%x) : f32[T, 9]\n output y = %y\n}", options),
            "graph 'g': rule types-inferred: node 0 (rms_norm): result 'y': expected f32[T, 8], found f32[T, 9]");
  options.skip = {"bind"};
  EXPECT_EQ(compiled(norm, options), "step 'bind' to skip: expected an optional step, found one that the result needs");
  EXPECT_EQ(error_text([] { make_device("gpu"); }), "device 'gpu': expected cpu, cuda, cuda:INDEX, null or null:sm_CC");
}

TEST(Compile, ErrorsOfKernelsNameTheScope) {
  GraphRunner runner("dense");
  Batch batch = std::move(batches()[2]);
  store(batch.inputs["slots"].view, 0, 1000);
  EXPECT_EQ(error_text([&] { runner.run(batch); }).substr(0, 26), "attention: rope_and_cache:");
  EXPECT_EQ(error_text([&] { runner.executable.output("logits"); }),
            "output 'logits': expected a run that completed before it is read, found none");
  store(batch.inputs["slots"].view, 0, -1);
  runner.run(batch);
  EXPECT_EQ(runner.executable.output("logits").shape.back(), 50);
}

TEST(Compile, DumpsTheGraphToTheLog) {
  std::ostringstream text;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(text);
  logger().sinks().push_back(sink);
  const auto level = logger().level();
  logger().set_level(spdlog::level::info);
  GraphRunner runner("dense", {.maximum = {}, .skip = {}, .dump_after = "dead-code"});
  logger().sinks().pop_back();
  logger().set_level(level);
  EXPECT_NE(text.str().find("graph after dead-code:\n" + to_text(runner.graph)), std::string::npos) << text.str();
}

TEST(Compile, OutputsMayBeInputsAndConstants) {
  ThreadPool pool(1);
  WeightStore weights(load_by_name, pool);
  const auto device = make_cpu_device();
  CompileOptions options;
  options.maximum.set(Symbol("T"), 4);
  Executable executable = compile(
      parse_graph("graph g {\n input %x : f32[T, 8]\n constant %w : f32[2, 3]\n output x = %x\n output w = %w\n}"),
      *device, weights, pool, options);
  OwnedTensor x(DType::f32, {4, 8});
  executable.bind("x", x.view);
  SymbolValues symbols;
  symbols.set(Symbol("T"), 3);
  executable.run(symbols);
  EXPECT_EQ(executable.output("x").data, x.view.data);
  EXPECT_EQ(executable.output("x").shape, Shape({3, 8}));
  OwnedTensor w(DType::f32, {2, 3});
  fill_by_name("w", w.view);
  EXPECT_EQ(load(executable.output("w"), 5), load(w.view, 5));
  EXPECT_EQ(executable.arena_bytes(), 0);
}

TEST(Explain, TablesOfLaunchesAndKernels) {
  GraphRunner runner("experts");
  const std::string untimed = explain(runner.executable.steps());
  EXPECT_NE(untimed.find("bf16[T, 24], i32[T, 2]"), std::string::npos) << untimed;
  EXPECT_EQ(untimed.find("GB/s"), std::string::npos);
  EXPECT_EQ(std::count(untimed.begin(), untimed.end(), '\n'), 8);

  Batch batch = std::move(batches()[2]);
  runner.executable.set_timing(true);
  for (int i = 0; i < 3; ++i) runner.run(batch);
  for (const StepInfo& step : runner.executable.steps()) {
    EXPECT_EQ(step.runs, 3);
    EXPECT_GT(step.seconds, 0);
    EXPECT_GT(step.work.bytes, 0);
  }
  EXPECT_EQ(runner.executable.steps()[1].work.operations, 3 * 2.0 * 13 * 24 * 5) << "of 13 tokens, not of the maximum";
  const std::vector<KernelUse> kernels = kernels_used(runner.executable.steps());
  std::int64_t launches = 0;
  for (const KernelUse& use : kernels) launches += use.launches;
  for (std::size_t i = 1; i < kernels.size(); ++i) EXPECT_GE(kernels[i - 1].seconds, kernels[i].seconds);
  EXPECT_EQ(launches, 7);
  EXPECT_NE(kernel_table(kernels).find("GB/s"), std::string::npos);
  EXPECT_NE(explain(runner.executable.steps()).find("GB/s"), std::string::npos);
  runner.executable.reset_timers();
  EXPECT_EQ(runner.executable.steps()[0].runs, 0);
  runner.executable.set_timing(false);
  runner.run(batch);
  EXPECT_EQ(runner.executable.steps()[0].seconds, 0);
}

}  // namespace
}  // namespace cermet

// Graphs whose nodes communicate: one executable for each rank, over a local group.
#include <algorithm>

#include "graph/text.hpp"
#include "op/schema/reference.hpp"
#include "runtime/compile.hpp"
#include "runtime/context.hpp"
#include "runtime/super_kernel/super_region.hpp"
#include "tests/comm/threads.hpp"
#include "tests/runtime/tokens.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::test {
namespace {

/// Each rank has some columns of w1 and rows of w2: y = sum over ranks of silu(x w1^T) w2^T.
std::string split_layer(int ranks, const std::string& group = "tensor") {
  return fmt::format(R"(graph split {{
  input %x : f32[T, 24]
  constant %w1 : f32[10, 24]
  constant %w2 : f32[24, 10]
  %a = linear(%x, %w1) : f32[T, 10]
  %b = silu(%a) : f32[T, 10]
  %c = linear(%b, %w2) : f32[T, 24]
  %y = all_reduce(%c) {{group = "{0}", ranks = {1}}} : f32[T, 24]
  %all = all_gather(%a) {{group = "{0}", ranks = {1}}} : f32[{1}*T, 10]
  output y = %y
  output all = %all
}})",
                     group, ranks);
}

double element(const std::string& name, int rank, std::int64_t i) {
  return static_cast<double>((i * 7 + rank * 5 + static_cast<int>(name.back())) % 17) / 17 - 0.4;
}

struct RankRun {
  ThreadPool pool{1};
  std::unique_ptr<Device> device = make_cpu_device();
  WeightStore weights;
  int rank;

  explicit RankRun(int of_rank)
      : weights(
            [of_rank](const std::string& name, std::int64_t, const TensorView& to) {
              for (std::int64_t i = 0; i < to.elements(); ++i) store(to, i, element(name, of_rank, i));
            },
            pool),
        rank(of_rank) {}

  Executable compiled(const std::string& text, Communicator& group, const std::string& name = "tensor") {
    CompileOptions options;
    options.maximum = tokens(9);
    options.groups = {{name, &group}};
    return compile(parse_graph(text), *device, weights, pool, options);
  }
};

TEST(CommunicatingGraph, ComputesWhatOneRankWould) {
  constexpr int ranks = 3;
  const std::vector<std::string> errors = run_ranks(ranks, [](Communicator& group) {
    RankRun run(group.rank());
    Executable executable = run.compiled(split_layer(ranks), group);
    bool communicates = false;
    for (const StepInfo& step : executable.steps()) communicates = communicates || step.kernel == "ranks.all_reduce";
    EXPECT_TRUE(communicates);
    for (const std::int64_t n : {9, 1, 4, 9}) {
      OwnedTensor x(DType::f32, {n, 24});
      for (std::int64_t i = 0; i < x.view.elements(); ++i) store(x.view, i, static_cast<double>(i % 11) / 11 - 0.5);
      executable.bind("x", x.view);
      executable.run(tokens(n));
      const TensorView y = executable.output("y"), all = executable.output("all");
      ASSERT_EQ(all.shape, (Shape{ranks * n, 10}));
      for (std::int64_t t = 0; t < n; ++t)
        for (std::int64_t h = 0; h < 24; ++h) {
          double expected = 0;
          for (int r = 0; r < ranks; ++r)
            for (std::int64_t f = 0; f < 10; ++f) {
              double a = 0;
              for (std::int64_t k = 0; k < 24; ++k)
                a += load(x.view, t * 24 + k) * static_cast<float>(element("w1", r, f * 24 + k));
              if (h == 0) {
                EXPECT_NEAR(load(all, (r * n + t) * 10 + f), a, 1e-5);
              }
              expected += a / (1 + std::exp(-a)) * static_cast<float>(element("w2", r, h * 10 + f));
            }
          EXPECT_NEAR(load(y, t * 24 + h), expected, 1e-4);
        }
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
}

/// All collectives whose ranks exchange as many elements, between nodes that run loops.
std::string exchanges_in_a_region(int ranks, const std::string& check = "abort") {
  return fmt::format(R"(graph exchanges {{
  super_kernel all "strict-scope-check={2}"
  input %x : f32[{1}, 64]
  %a = silu(%x) : f32[{1}, 64] in all
  %b = all_reduce(%a) {{group = "tensor", ranks = {0}}} : f32[{1}, 64] in all
  %c = silu(%b) : f32[{1}, 64] in all
  %d = reduce_scatter(%c) {{group = "tensor", ranks = {0}}} : f32[8, 64] in all
  %e = silu(%d) : f32[8, 64] in all
  %f = all_gather(%e) {{group = "tensor", ranks = {0}}} : f32[{1}, 64] in all
  %g = silu(%f) : f32[{1}, 64] in all
  %h = all_to_all(%g) {{group = "tensor", ranks = {0}}} : f32[{1}, 64] in all
  %i = silu(%h) : f32[{1}, 64] in all
  output y = %i
}})",
                     ranks, 8 * ranks, check);
}

/// The result on each rank. They share the threads of one pool, which a rank that waits for others must not keep.
std::vector<std::vector<std::byte>> exchange(int ranks, int threads, bool marked) {
  ThreadPool pool(threads);
  std::vector<std::vector<std::byte>> results(static_cast<std::size_t>(ranks));
  const std::vector<std::string> errors = run_ranks(ranks, [&](Communicator& group) {
    group.set_timeout(20);
    const std::unique_ptr<Device> device = make_cpu_device();
    WeightStore weights([](const std::string&, std::int64_t, const TensorView&) {}, pool);
    CompileOptions options;
    options.groups = {{"tensor", &group}};
    if (!marked) options.fusion.super_kernel.select = "none";
    Executable executable = compile(parse_graph(exchanges_in_a_region(ranks)), *device, weights, pool, options);
    OwnedTensor x(DType::f32, {8 * ranks, 64});
    for (std::int64_t i = 0; i < x.view.elements(); ++i) store(x.view, i, element("x", group.rank(), i));
    executable.bind("x", x.view);
    for (int run = 0; run < 5; ++run) executable.run({});
    const SuperFormation* const formation = executable.super_kernels();
    EXPECT_EQ(formation ? formation->regions.size() : 0, marked ? 1u : 0u)
        << "one region from the first node to the last";
    const TensorView y = executable.output("y");
    results[static_cast<std::size_t>(group.rank())].assign(y.as<std::byte>(),
                                                           y.as<std::byte>() + dense_bytes(y.dtype, y.shape));
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
  return results;
}

TEST(CommunicatingGraph, CollectivesJoinARegionOfRanksThatShareThreads) {
  for (const int ranks : {1, 2, 3})
    for (const int threads : {1, 4})
      EXPECT_EQ(exchange(ranks, threads, true), exchange(ranks, threads, false))
          << ranks << " ranks, " << threads << " threads";
}

/// Rank 1 fails between two collectives of the second run: rank 0 says in which launch of which region, in which
/// operator and call, and because of whom.
TEST(CommunicatingGraph, ErrorsInARegionNameLaunchOperatorCallAndRank) {
  const std::vector<std::string> errors = run_ranks(2, [](Communicator& group) {
    group.set_timeout(20);
    RankRun run(group.rank());
    Executable executable = run.compiled(exchanges_in_a_region(2), group);
    OwnedTensor x(DType::f32, {16, 64}), y(DType::f32, {16, 64});
    executable.bind("x", x.view);
    executable.run({});
    if (group.rank() == 0) return executable.run({});
    group.run({Collective::all_reduce, Reduction::sum, 0, x.view, y.view, {}});
    group.abort("was shut down");
  });
  EXPECT_EQ(
      errors[0],
      "super-kernel 'all', launch 3: rank 0 of 2: call 6, reduce_scatter of f32[16 x 64] by sum: rank 1 was shut down");
}

/// On a GPU a rank alone copies, which is a task like others; several exchange data in tasks, too, of up to so many
/// bytes and ranks.
TEST(CommunicatingGraph, OnAGpuCollectivesOfAFewRanksJoinARegion) {
  Context context({.device = "null:sm_90", .threads = 1});
  for (const int ranks : {1, 4, 16}) {
    WeightStore weights([](const std::string&, std::int64_t, const TensorView&) {}, context.pool(), context.queue());
    CompileOptions options;
    options.queue = context.queue();
    Executable executable = compile(parse_graph(exchanges_in_a_region(ranks, "bypass")), context.device(), weights,
                                    context.pool(), options);
    executable.bind("x", TensorView(nullptr, DType::f32, {8 * ranks, 64}));
    executable.run({});
    std::vector<std::string> reasons;
    for (const SuperBreak& found : executable.super_kernels()->breaks) reasons.emplace_back(info_of(found.reason).id);
    EXPECT_EQ(reasons, ranks < 16 ? std::vector<std::string>{} : std::vector<std::string>(4, "host-work"));
    EXPECT_EQ(std::ranges::count_if(executable.steps(),
                                    [](const StepInfo& step) { return step.kernel.starts_with("peer."); }),
              ranks == 4 ? 4 : 0);
  }
}

TEST(CommunicatingGraph, SaysWhichGroupIsMissingOrOfAnotherSize) {
  const auto group = std::move(comm::make_local_group(1)[0]);
  RankRun run(0);
  EXPECT_EQ(error_text([&] { run.compiled(split_layer(2), *group); }),
            "all_reduce: group 'tensor': expected 2 ranks, found 1");
  EXPECT_EQ(error_text([&] { run.compiled(split_layer(2), *group, "experts"); }),
            "all_reduce: group 'tensor': expected a communicator of 2 ranks, found none of that name");
  EXPECT_EQ(error_text([&] { run.compiled(split_layer(1), *group).steps(); }),
            "no error");  // a rank alone needs no other
}

TEST(CommunicatingGraph, ErrorsNameTheNodesPlaceAndTheRank) {
  const std::vector<std::string> errors = run_ranks(2, [](Communicator& group) {
    RankRun run(group.rank());
    Graph graph = parse_graph(R"(graph one {
  input %x : f32[T, 4]
  %y = all_reduce(%x) {group = "tensor", ranks = 2} : f32[T, 4]  // layers.0.mlp
  output y = %y
})");
    CompileOptions options;
    options.maximum = tokens(9);
    options.groups = {{"tensor", &group}};
    Executable executable = compile(std::move(graph), *run.device, run.weights, run.pool, options);
    OwnedTensor x(DType::f32, {group.rank() + 1, 4});
    executable.bind("x", x.view);
    executable.run(tokens(group.rank() + 1));
  });
  EXPECT_EQ(errors[0],
            "layers.0.mlp: rank 0 of 2: call 1, all_reduce of f32[1 x 4] by sum: rank 1 makes call 1, all_reduce of "
            "f32[2 x 4] by sum");
}

TEST(CommunicatingGraph, CompilesForAGpuThatIsNotThere) {
  Context context({.device = "null:sm_90", .threads = 1});
  WeightStore weights([](const std::string&, std::int64_t, const TensorView&) {}, context.pool(), context.queue());
  CompileOptions options;
  options.maximum = tokens(9);
  options.queue = context.queue();
  Executable executable = compile(parse_graph(split_layer(4)), context.device(), weights, context.pool(), options);
  executable.bind("x", TensorView(nullptr, DType::f32, {9, 24}));
  executable.run(tokens(9));
  std::vector<std::string> called;
  for (const Launch& launch : executable.plan().launches())
    if (launch.kind == Launch::Kind::call) called.push_back(executable.steps()[launch.step].kernel);
  std::ranges::sort(called);
  EXPECT_EQ(called, (std::vector<std::string>{"ranks.all_gather", "ranks.all_reduce"}));
}

}  // namespace
}  // namespace cermet::test

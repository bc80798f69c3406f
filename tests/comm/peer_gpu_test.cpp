// Ranks that are threads and share a GPU, over memory that all address: what the stacked operators define, with one
// exchange and with two, in launches of their own, in front of norms and in super-kernels, and the end where one of
// them does not come.
#include "comm/check.hpp"
#include "comm/device_communicator.hpp"
#include "device/cuda/plugin.hpp"
#include "op/schema/reference.hpp"
#include "runtime/super_kernel/super_region.hpp"
#include "tests/comm/summed_norm.hpp"
#include "tests/comm/threads.hpp"

namespace cermet::test::peer_gpu_test_file {
namespace {

using comm::DeviceEngine;
using Strings = std::vector<std::string>;

class PeerOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  }
};

void expect_conforms(int ranks, DeviceEngine engine) {
  const Strings errors = run_ranks(ranks, [engine](Communicator& host) {
    const std::unique_ptr<Device> device = make_device("cuda");
    const std::unique_ptr<Stream> stream = device->make_stream();
    const auto group = comm::make_device_communicator(host, *device, engine);
    EXPECT_EQ(group->engine(), "peer");
    const comm::CheckReport report = comm::check_communicator(*group, device.get(), stream.get());
    EXPECT_EQ(report.wrong, "");
    EXPECT_GT(report.calls, 100);
  });
  EXPECT_EQ(errors, Strings(errors.size()));
}

TEST_F(PeerOnGpu, TwoComputeTheSameInStampedWords) { expect_conforms(2, DeviceEngine::stamped); }
TEST_F(PeerOnGpu, FourComputeTheSameInStampedWords) { expect_conforms(4, DeviceEngine::stamped); }
TEST_F(PeerOnGpu, TwoComputeWhatTheStackedOperatorsDefine) { expect_conforms(2, DeviceEngine::one_shot); }
TEST_F(PeerOnGpu, ThreeComputeWhatTheStackedOperatorsDefine) { expect_conforms(3, DeviceEngine::peer); }
TEST_F(PeerOnGpu, TwoComputeTheSameInTwoShots) { expect_conforms(2, DeviceEngine::two_shot); }
TEST_F(PeerOnGpu, FourComputeTheSameInTwoShots) { expect_conforms(4, DeviceEngine::two_shot); }

/// What all_to_all of eight rows with these counts says on each of two ranks.
Strings errors_of_counts(std::vector<std::int32_t> rows, bool captured) {
  return run_ranks(2, [&](Communicator& host) {
    const std::unique_ptr<Device> device = make_device("cuda");
    const std::unique_ptr<Stream> stream = device->make_stream();
    const auto group = comm::make_device_communicator(host, *device, DeviceEngine::peer);
    const DeviceBuffer memory = device->allocate(2048);
    std::vector<std::int32_t> own = rows;
    const CollectiveCall call{.kind = Collective::all_to_all,
                              .x = {memory.data(), DType::f32, {8, 16}},
                              .y = {memory.data() + 1024, DType::f32, {8, 16}},
                              .counts = {own.data(), DType::i32, {2, 2}}};
    if (captured) stream->begin_capture();
    try {
      group->run(call, stream.get());
    } catch (const Error&) {
      if (captured) stream->abandon_capture();
      throw;
    }
  });
}

TEST_F(PeerOnGpu, CountsThatDoNotFitTheRowsAreNamed) {
  for (const std::string& error : errors_of_counts({5, 4, 0, 1}, false))
    EXPECT_NE(
        error.find("all_to_all: operand 1 (counts): expected rank 0 to send and receive at most 8 rows, found 9 and 5"),
        std::string::npos)
        << error;
  for (const std::string& error : errors_of_counts({1, -2, 0, 1}, false))
    EXPECT_NE(error.find("all_to_all: operand 1 (counts): expected counts in [0, 8], found -2"), std::string::npos)
        << error;
}

TEST_F(PeerOnGpu, CallsWithCountsAreNotCaptured) {
  for (const std::string& error : errors_of_counts({1, 2, 3, 4}, true))
    EXPECT_NE(error.find("all_to_all with counts: expected a call outside of captured graphs"), std::string::npos)
        << error;
}

/// Element i of rank `rank`'s input `name`; alike on all ranks unless that is x.
double value_of(char name, int rank, std::int64_t i) {
  return static_cast<double>((i * 7 + (name == 'x' ? rank * 5 : 0) + name) % 33) / 17 - 0.9;
}

struct Input {
  const char* name;
  DType dtype;
  Shape shape;
  std::string bits = {};  ///< in place of value_of()
};

/// The outputs' bits after launches, a capture and replays.
Strings bits_of(Session& session, Context& context, int rank, const std::vector<Input>& inputs) {
  std::vector<DeviceBuffer> buffers;
  for (const auto& [name, dtype, shape, given] : inputs) {
    OwnedTensor value(dtype, shape);
    for (std::int64_t i = 0; i < value.view.elements(); ++i) store(value.view, i, value_of(name[0], rank, i));
    if (!given.empty()) std::memcpy(value.memory.data(), given.data(), given.size());
    buffers.push_back(context.device().allocate(value.memory.size()));
    context.stream()->upload(buffers.back().data(), value.memory.data(), value.memory.size());
    context.stream()->synchronize();
    session.bind(name, {buffers.back().data(), dtype, shape});
  }
  Strings bits;
  for (int run = 0; run < 4; ++run) {
    session.run();
    bits.clear();
    for (const char* name : {"h", "y", "s", "scale"}) {
      if (!session.has_output(name)) continue;
      const TensorView out = session.host_output(name);
      bits.emplace_back(out.as<const char>(), static_cast<std::size_t>(dense_bytes(out.dtype, out.shape)));
    }
  }
  return bits;
}

Strings run_at_once(Communicator& host, Communicator& group, Context& context, const std::string& tail, bool sum_leaves,
                    std::int64_t rows) {
  Session session(parse_graph(summed_norm(2, sum_leaves, tail)), context, no_weights,
                  options_of(8, FusionMode::full, {{"tensor", &group}}));
  EXPECT_TRUE(has_step(session, "peer."));
  return bits_of(session, context, host.rank(),
                 {{"x", DType::f32, {rows, 512}}, {"residual", DType::f32, {rows, 512}}, {"w", DType::bf16, {512}}});
}

/// all_reduce in a graph of its own, and what follows in another.
Strings run_apart(Communicator& host, Communicator& group, Context& context, const std::string& tail, bool sum_leaves,
                  std::int64_t rows) {
  const std::string sum = R"(graph sum {
  input %x : f32[T, 512]
  %s = all_reduce(%x) {group = "tensor", ranks = 2} : f32[T, 512]
  output s = %s
})";
  Session summing(parse_graph(sum), context, no_weights, options_of(8, FusionMode::full, {{"tensor", &group}}));
  const Strings sums = bits_of(summing, context, host.rank(), {{"x", DType::f32, {rows, 512}}});
  std::string text = summed_norm(2, false, tail);
  const std::size_t begin = text.find("  %s = all_reduce"), end = text.find("  %h = add");
  text.erase(begin, end - begin).replace(text.find("%x :"), 4, "%s :");
  Session session(parse_graph(text), context, no_weights, options_of(8, FusionMode::full, {}));
  Strings bits = bits_of(
      session, context, host.rank(),
      {{"s", DType::f32, {rows, 512}, sums.at(0)}, {"residual", DType::f32, {rows, 512}}, {"w", DType::bf16, {512}}});
  if (sum_leaves) bits.insert(bits.begin() + 2, sums.at(0));
  return bits;
}

TEST_F(PeerOnGpu, OneLaunchHasTheBitsOfTwo) {
  for (const std::string& tail : {norm_alone, quantized_to("i8"), quantized_to("f8_e4m3")}) {
    const Strings errors = run_ranks(2, [&](Communicator& host) {
      Context context({"cuda", 1});
      const auto group = comm::make_device_communicator(host, context.device(), DeviceEngine::peer);
      for (const bool sum_leaves : {false, true})
        for (const std::int64_t rows : {1, 3, 8}) {
          const Strings apart = run_apart(host, *group, context, tail, sum_leaves, rows),
                        at_once = run_at_once(host, *group, context, tail, sum_leaves, rows);
          ASSERT_EQ(at_once.size(), (sum_leaves ? 3u : 2u) + (tail == norm_alone ? 0 : 1));
          ASSERT_EQ(apart.size(), at_once.size());
          for (std::size_t i = 0; i < apart.size(); ++i)
            EXPECT_EQ(at_once[i] == apart[i], true) << "result " << i << " of " << rows << " rows\n" << tail;
        }
    });
    EXPECT_EQ(errors, Strings(2));
  }
}

/// Every operator that can join, between nodes that compute, then rows that are summed and normalized.
std::string exchanges(int ranks, const std::string& mark, const std::string& head) {
  return fmt::format(R"(graph exchanges {{
{2}  input %x : f32[{1}, 512]
  input %residual : f32[8, 512]
  input %w : bf16[512]
  %a = silu(%x) : f32[{1}, 512]{3}
  %b = all_reduce(%a) {{group = "tensor", ranks = {0}}} : f32[{1}, 512]{3}
  %c = silu(%b) : f32[{1}, 512]{3}
  %d = reduce_scatter(%c) {{group = "tensor", ranks = {0}}} : f32[8, 512]{3}
  %e = silu(%d) : f32[8, 512]{3}
  %f = all_gather(%e) {{group = "tensor", ranks = {0}}} : f32[{1}, 512]{3}
  %g = silu(%f) : f32[{1}, 512]{3}
  %i = all_to_all(%g) {{group = "tensor", ranks = {0}}} : f32[{1}, 512]{3}
  %j = silu(%i) : f32[{1}, 512]{3}
  %k = reduce_scatter(%j) {{group = "tensor", ranks = {0}}} : f32[8, 512]{3}
  %l = all_reduce(%k) {{group = "tensor", ranks = {0}}} : f32[8, 512]{3}
  %h = add(%l, %residual) : f32[8, 512]{3}
  %y = rms_norm(%h, %w) {{eps = 1e-05}} : f32[8, 512]{3}
  output h = %h
  output y = %y
}})",
                     ranks, 8 * ranks, head, mark);
}

void expect_region_computes_the_same(int ranks) {
  const Strings errors = run_ranks(ranks, [ranks](Communicator& host) {
    Context context({"cuda", 1});
    const auto group = comm::make_device_communicator(host, context.device(), DeviceEngine::peer);
    Strings apart;
    for (const bool marked : {false, true}) {
      const std::string head = marked ? "  super_kernel all \"strict-scope-check=abort:width=16\"\n" : "";
      Session session(parse_graph(exchanges(ranks, marked ? " in all" : "", head)), context, no_weights,
                      options_of(8, FusionMode::full, {{"tensor", group.get()}}));
      EXPECT_EQ(has_step(session, "peer.all_to_all"), marked);
      const Strings bits =
          bits_of(session, context, host.rank(),
                  {{"x", DType::f32, {8 * ranks, 512}}, {"residual", DType::f32, {8, 512}}, {"w", DType::bf16, {512}}});
      if (!marked) {
        apart = bits;
        continue;
      }
      EXPECT_EQ(bits == apart, true);
      EXPECT_EQ(session.executable().linked_regions().size(), 1u) << "one launch";
    }
    group->check();
  });
  EXPECT_EQ(errors, Strings(static_cast<std::size_t>(ranks)));
}

TEST_F(PeerOnGpu, ARegionOfTwoRanksHasTheBitsOfLaunches) { expect_region_computes_the_same(2); }
TEST_F(PeerOnGpu, ARegionOfFourRanksHasTheBitsOfLaunches) { expect_region_computes_the_same(4); }

TEST_F(PeerOnGpu, ARankThatDoesNotComeIsNamedOnAll) {
  const Strings errors = run_ranks(2, [](Communicator& host) {
    const std::unique_ptr<Device> device = make_device("cuda");
    const std::unique_ptr<Stream> stream = device->make_stream();
    const auto group = comm::make_device_communicator(host, *device, DeviceEngine::peer);
    group->set_timeout(1);
    const DeviceBuffer memory = device->allocate(4096);
    stream->fill(memory.data(), 0, 4096);
    const TensorView x(memory.data(), DType::f32, {1024});
    group->all_reduce(x, x, Reduction::sum, stream.get());
    stream->synchronize();
    host.barrier();
    if (host.rank() == 0) {
      group->all_reduce(x, x, Reduction::sum, stream.get());
      stream->synchronize();  // the launch gives up
      group->check();
      return;
    }
    while (true) {  // rank 1 hears of it
      group->check();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("all_reduce of f32[1024"), std::string::npos) << error;
    // By the launch, or where ranks share a GPU by the hosts, which meet around launches.
    EXPECT_TRUE(error.find("rank 1 did not arrive within 1 s") != std::string::npos ||
                error.find("rank 1 did not come within 1 s") != std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace cermet::test::peer_gpu_test_file

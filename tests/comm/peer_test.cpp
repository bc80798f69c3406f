// GPUs that address each other's memory: programs of every type compile, rows that are summed and normalized are one launch, and, where there is a GPU, threads
// that share it compute what the stacked operators define, with and without that launch, and end where one of them does not come.
#include <algorithm>

#include "comm/check.hpp"
#include "comm/device_communicator.hpp"
#include "comm/peer_launch.hpp"
#include "device/cuda/plugin.hpp"
#include "fuse/plan.hpp"
#include "graph/text.hpp"
#include "jit/walk.hpp"
#include "op/reference.hpp"
#include "runtime/session.hpp"
#include "select/select.hpp"
#include "tests/comm/threads.hpp"
#include "tests/model/plugin.hpp"
#include "tests/runtime/tokens.hpp"

namespace cermet::test {
namespace {

using comm::DenseCall;
using Strings = std::vector<std::string>;

DenseCall call_of(Collective kind, int rank, int root, std::int64_t piece, DType dtype = DType::bf16) {
  DenseCall call;
  call.kind = kind;
  call.rank = rank;
  call.root = root;
  call.size = 3;
  call.dtype = dtype;
  call.piece = piece;
  call.x_pieces = cuts_operand(kind) ? 3 : 1;
  call.y_pieces = joins_result(kind) || kind == Collective::all_to_all ? 3 : 1;
  return call;
}

TEST(Peer, EveryRankGivesWhatTheOthersRead) {
  for (int k = 0; k <= static_cast<int>(Collective::all_to_all); ++k)
    for (int rank = 0; rank < 3; ++rank) {
      const auto kind = static_cast<Collective>(k);
      const DenseCall call = call_of(kind, rank, 1, 64);
      const peer::Params p = comm::peer_launch({}, 8, call, false).params;
      for (int other = 0; other < 3; ++other) {
        bool gives = false, takes = false;  // by the operator's definition
        for (int piece = 0; piece < call.y_pieces; ++piece) {
          const PieceSource theirs = piece_source(kind, other, piece, 1), own = piece_source(kind, rank, piece, 1);
          gives = gives || theirs.kind == PieceSource::Kind::every_rank || (theirs.kind == PieceSource::Kind::one_rank && theirs.rank == rank);
          takes = takes || own.kind == PieceSource::Kind::every_rank || (own.kind == PieceSource::Kind::one_rank && own.rank == other);
        }
        EXPECT_EQ((p.to >> other & 1u) != 0, gives) << name_of(kind) << " from " << rank << " to " << other;
        EXPECT_EQ((p.from >> other & 1u) != 0, takes) << name_of(kind) << " at " << rank << " from " << other;
      }
    }
}

TEST(Peer, WordsAndChannelsFollowFromTheSizeAlone) {
  const auto launch = [](DType dtype, std::int64_t piece) { return comm::peer_launch({}, 8, call_of(Collective::all_reduce, 0, 0, piece, dtype), false); };
  EXPECT_NE(launch(DType::bf16, 64).program.task.find(".width = 8}"), std::string::npos);
  EXPECT_NE(launch(DType::bf16, 6).program.task.find(".width = 2}"), std::string::npos);
  EXPECT_NE(launch(DType::bf16, 3).program.task.find(".width = 1}"), std::string::npos);
  EXPECT_EQ(launch(DType::f32, 64).params.channels, 1u);
  EXPECT_EQ(launch(DType::f32, 4 * 512 * 3).params.channels, 3u);
  EXPECT_EQ(launch(DType::f32, 1 << 20).params.channels, 8u);
  DenseCall crooked = call_of(Collective::all_reduce, 0, 0, 64);
  crooked.x = reinterpret_cast<const std::byte*>(std::uintptr_t{0x1008});
  EXPECT_THROW(comm::peer_launch({}, 8, crooked, false), Error);
}

TEST(LongPeer, ProgramsCompileWithoutSpills) {
  if (const std::string reason = no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<cuda::Program> programs{comm::peer_move(), comm::peer_reduction(DType::bf16, Reduction::sum, 8, 8),
                                            comm::peer_reduction(DType::i32, Reduction::mean, 3, 1)};
  for (const jit::Image& image : jit::build(programs, "sm_90a")) EXPECT_NE(image.log.find(" 0 bytes spill stores"), std::string::npos) << image.log;
}

/// y = rms_norm(residual + sum over ranks of x): what a layer's product over several ranks is followed by.
std::string summed_norm(int ranks, bool sum_leaves) {
  return fmt::format(R"(graph summed {{
  input %x : f32[T, 512]
  input %residual : f32[T, 512]
  input %w : bf16[512]
  %s = all_reduce(%x) {{group = "tensor", ranks = {}}} : f32[T, 512]
  %h = add(%s, %residual) : f32[T, 512]
  %y = rms_norm(%h, %w) {{eps = 1e-05, out_dtype = "bf16"}} : bf16[T, 512]
  output h = %h
  output y = %y{}
}})",
                     ranks, sum_leaves ? "\n  output s = %s" : "");
}

/// Whether a step's kernel is of this family.
bool has_step(const Session& session, std::string_view family) {
  return std::ranges::any_of(session.executable().steps(), [&](const StepInfo& step) { return step.kernel.starts_with(family); });
}

SessionOptions options_of(std::int64_t most, FusionMode mode, std::vector<RankGroup> groups) {
  SessionOptions options;
  options.maximum = tokens(most);
  options.fusion.mode = mode;
  options.groups = std::move(groups);
  return options;
}

const LoadWeight no_weights = [](const std::string&, std::int64_t, const TensorView&) {};

/// Launches of the graph for up to `most` rows on a GPU that is not there, by the kernels that would take its regions.
std::size_t launches_of(const std::string& text, std::int64_t most) {
  const std::unique_ptr<Device> device = make_null_device(90);
  const Target* const target = device->target();
  return plan_fusion(parse_graph(text), tokens(most), target,
                     {[&](OpKind anchor) { return fuses(anchor, target); }, [](const Region& region) { return is_taken(region); }})
      .size();
}

TEST(Peer, RowsThatAreSummedAndNormalizedAreOneLaunch) {
  EXPECT_EQ(launches_of(summed_norm(2, false), 8), 1u);
  EXPECT_EQ(launches_of(summed_norm(2, true), 8), 1u);
  EXPECT_EQ(launches_of(summed_norm(2, false), 4096), 2u) << "a rank that reduces a share of many rows moves less data";
  EXPECT_EQ(launches_of(summed_norm(16, false), 8), 2u) << "more ranks than slots";
  std::string own = summed_norm(2, false);
  own.replace(own.find("%residual)"), 10, "%x)");
  EXPECT_EQ(launches_of(own, 8), 2u) << "the summand is read by itself, too";
  EXPECT_TRUE(jit::declines_walk(comm::peer_move())) << "a super-kernel would wait in all of its blocks";
}

TEST(LongPeer, TheLaunchCompiles) {
  if (const std::string reason = no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Context context({"null:sm_90", 1});
  EXPECT_TRUE(has_step(Session(parse_graph(summed_norm(2, false)), context, no_weights, options_of(8, FusionMode::full, {})), "peer."));
}

TEST(Peer, EnginesAreNamed) {
  EXPECT_EQ(comm::device_engine_from("peer", "--engine"), comm::DeviceEngine::peer);
  EXPECT_EQ(comm::device_engine_from("two-shot", "--engine"), comm::DeviceEngine::two_shot);
  EXPECT_THROW(comm::device_engine_from("ring", "--engine"), Error);
}

// ---- On a GPU, which the ranks share

class PeerOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  }
};

TEST_F(PeerOnGpu, ComputesWhatTheStackedOperatorsDefine) {
  for (const int ranks : {2, 3}) {
    const Strings errors = run_ranks(ranks, [](Communicator& host) {
      const std::unique_ptr<Device> device = make_device("cuda");
      const std::unique_ptr<Stream> stream = device->make_stream();
      const auto group = comm::make_device_communicator(host, *device, comm::DeviceEngine::peer);
      EXPECT_EQ(group->engine(), "peer");
      const comm::CheckReport report = comm::check_communicator(*group, device.get(), stream.get());
      EXPECT_EQ(report.wrong, "");
      EXPECT_GT(report.calls, 100);
    });
    EXPECT_EQ(errors, Strings(errors.size()));
  }
}

/// Input `name` of a rank: the same residual and weight on all.
double value_of(char name, int rank, std::int64_t i) { return static_cast<double>((i * 7 + (name == 'x' ? rank * 5 : 0) + name) % 33) / 17 - 0.9; }

/// The named results of one run of a rank, as bits.
Strings run_summed(Communicator& host, Communicator& group, Context& context, FusionMode mode, bool sum_leaves, std::int64_t rows) {
  Session session(parse_graph(summed_norm(host.size(), sum_leaves)), context, no_weights, options_of(8, mode, {{"tensor", &group}}));
  EXPECT_EQ(has_step(session, "peer."), mode == FusionMode::full);
  std::vector<DeviceBuffer> buffers;
  for (const auto& [name, dtype, shape] :
       {std::tuple("x", DType::f32, Shape{rows, 512}), {"residual", DType::f32, Shape{rows, 512}}, {"w", DType::bf16, Shape{512}}}) {
    OwnedTensor value(dtype, shape);
    for (std::int64_t i = 0; i < value.view.elements(); ++i) store(value.view, i, value_of(name[0], host.rank(), i));
    buffers.push_back(context.device().allocate(value.memory.size()));
    context.stream()->upload(buffers.back().data(), value.memory.data(), value.memory.size());
    context.stream()->synchronize();
    session.bind(name, {buffers.back().data(), dtype, shape});
  }
  Strings bits;
  for (int run = 0; run < 4; ++run) {  // launched, captured, replayed
    session.run();
    bits.clear();
    for (const char* name : {"h", "y", "s"}) {
      if (!session.has_output(name)) continue;
      const TensorView out = session.host_output(name);
      bits.emplace_back(out.as<const char>(), static_cast<std::size_t>(dense_bytes(out.dtype, out.shape)));
    }
  }
  group.check();
  return bits;
}

TEST_F(PeerOnGpu, OneLaunchHasTheBitsOfThree) {
  const Strings errors = run_ranks(2, [](Communicator& host) {
    Context context({"cuda", 1});
    const auto group = comm::make_device_communicator(host, context.device(), comm::DeviceEngine::peer);
    for (const bool sum_leaves : {false, true})
      for (const std::int64_t rows : {1, 3, 8}) {
        const Strings apart = run_summed(host, *group, context, FusionMode::none, sum_leaves, rows);
        EXPECT_EQ(run_summed(host, *group, context, FusionMode::full, sum_leaves, rows) == apart, true) << rows << " rows";
        EXPECT_EQ(apart.size(), sum_leaves ? 3u : 2u);
      }
  });
  EXPECT_EQ(errors, Strings(2));
}

TEST_F(PeerOnGpu, ARankThatDoesNotComeIsNamedOnAll) {
  const Strings errors = run_ranks(2, [](Communicator& host) {
    const std::unique_ptr<Device> device = make_device("cuda");
    const std::unique_ptr<Stream> stream = device->make_stream();
    const auto group = comm::make_device_communicator(host, *device, comm::DeviceEngine::peer);
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
    EXPECT_TRUE(error.find("rank 1 did not arrive within 1 s") != std::string::npos || error.find("rank 1 did not come within 1 s") != std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace cermet::test

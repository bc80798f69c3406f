// GPUs that address each other's memory, as far as a machine without one goes: programs of every type compile, and rows
// that are summed and normalized are one launch.
#include <algorithm>

#include "comm/device_communicator.hpp"
#include "comm/peer_launch.hpp"
#include "fuse/plan.hpp"
#include "graph/text.hpp"
#include "jit/walk.hpp"
#include "kernel/cuda/peer/call.hpp"
#include "runtime/super_kernel/device_region.hpp"
#include "select/select.hpp"
#include "tests/comm/summed_norm.hpp"
#include "tests/model/plugin.hpp"

namespace cermet::test {
namespace {

using comm::DenseCall;

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
      const peer::Params p = comm::peer_launch({}, 8, call, peer::Protocol::once).params;
      for (int other = 0; other < 3; ++other) {
        bool gives = false, takes = false;  // by the operator's definition
        for (int piece = 0; piece < call.y_pieces; ++piece) {
          const PieceSource theirs = piece_source(kind, other, piece, 1), own = piece_source(kind, rank, piece, 1);
          gives = gives || theirs.kind == PieceSource::Kind::every_rank ||
                  (theirs.kind == PieceSource::Kind::one_rank && theirs.rank == rank);
          takes = takes || own.kind == PieceSource::Kind::every_rank ||
                  (own.kind == PieceSource::Kind::one_rank && own.rank == other);
        }
        EXPECT_EQ((p.to >> other & 1u) != 0, gives) << name_of(kind) << " from " << rank << " to " << other;
        EXPECT_EQ((p.from >> other & 1u) != 0, takes) << name_of(kind) << " at " << rank << " from " << other;
      }
    }
}

TEST(Peer, WordsAndChannelsFollowFromTheSizeAlone) {
  const auto launch = [](DType dtype, std::int64_t piece) {
    return comm::peer_launch({}, 8, call_of(Collective::all_reduce, 0, 0, piece, dtype), peer::Protocol::once);
  };
  EXPECT_NE(launch(DType::bf16, 64).program.task.find(".width = 8}"), std::string::npos);
  EXPECT_NE(launch(DType::bf16, 6).program.task.find(".width = 2}"), std::string::npos);
  EXPECT_NE(launch(DType::bf16, 3).program.task.find(".width = 1}"), std::string::npos);
  EXPECT_EQ(launch(DType::f32, 64).params.channels, 1u);
  EXPECT_EQ(launch(DType::f32, 4 * 512 * 3).params.channels, 3u);
  EXPECT_EQ(launch(DType::f32, 1 << 20).params.channels, 8u);
  DenseCall crooked = call_of(Collective::all_reduce, 0, 0, 64);
  crooked.x = reinterpret_cast<const std::byte*>(std::uintptr_t{0x1008});
  EXPECT_THROW(comm::peer_launch({}, 8, crooked, peer::Protocol::once), Error);
}

TEST(Peer, WordsAreStampedWhereAllRanksGiveSomethingToAll) {
  const auto protocol = [](Collective kind, std::int64_t piece) {
    return comm::peer_launch({}, 8, call_of(kind, 0, 0, piece), peer::Protocol::stamped).params.protocol;
  };
  for (int k = 0; k <= static_cast<int>(Collective::all_to_all); ++k) {
    const auto kind = static_cast<Collective>(k);
    EXPECT_EQ(protocol(kind, 64) == peer::Protocol::stamped, !has_root(kind)) << name_of(kind);
    EXPECT_EQ(protocol(kind, 62), peer::Protocol::once) << name_of(kind) << ": words of 4 bytes";
  }
}

TEST(Peer, PartsByCountsAreThoseThatTheOthersExpect) {
  std::vector<std::int32_t> rows{1, 0, 4, 2, 2, 0, 0, 900, 1};  // of rank i to rank j
  const PairCounts counts(TensorView(rows.data(), DType::i32, {3, 3}), 1000);
  std::vector<peer::RaggedParams> all;
  for (int rank = 0; rank < 3; ++rank) {
    DenseCall call = call_of(Collective::all_to_all, rank, 0, 7000);
    call.row_elements = 12;  // 24 bytes: three words of 8
    call.counts = counts;
    all.push_back(comm::ragged_launch({}, 8, call).params);
    EXPECT_EQ(comm::peer_program(call).task, comm::peer_move_ragged().task);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].word_bytes, 8u);
    EXPECT_EQ(all[i].most, 2700);
    EXPECT_EQ(all[i].channels, 6u) << "alike on every rank";
    std::int64_t sent = 0, received = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(all[i].sent[j].words, 3 * rows[i * 3 + j]);
      EXPECT_EQ(all[i].sent[j].words, all[j].received[i].words);
      EXPECT_EQ(all[i].sent[j].begin, sent);
      EXPECT_EQ(all[i].received[j].begin, received);
      sent += all[i].sent[j].words;
      received += all[i].received[j].words;
    }
  }
}

TEST(LongPeer, ProgramsCompileWithoutSpills) {
  if (const std::string reason = no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<cuda::Program> programs{
      comm::peer_move(), comm::peer_move_ragged(), comm::peer_reduction(DType::bf16, Reduction::sum, 8, 8),
      comm::peer_reduction(DType::f32, Reduction::sum, 2, 4), comm::peer_reduction(DType::i32, Reduction::mean, 3, 1)};
  for (const jit::Image& image : jit::build(programs, "sm_90a"))
    EXPECT_NE(image.log.find(" 0 bytes spill stores"), std::string::npos) << image.log;
}

/// Launches of the graph for up to `most` rows on a GPU that is not there, by the kernels that would take its regions.
std::size_t launches_of(const std::string& text, std::int64_t most) {
  const std::unique_ptr<Device> device = make_null_device(90);
  const Target* const target = device->target();
  return plan_fusion(parse_graph(text), tokens(most), target,
                     {[&](OpKind anchor) { return fuses(anchor, target); },
                      [](const Region& region) { return is_taken(region); }})
      .size();
}

TEST(Peer, RowsThatAreSummedAndNormalizedAreOneLaunch) {
  EXPECT_EQ(launches_of(summed_norm(2, false), 8), 1u);
  EXPECT_EQ(launches_of(summed_norm(2, true), 8), 1u);
  EXPECT_EQ(launches_of(summed_norm(2, false, quantized_to("i8")), 8), 1u);
  EXPECT_EQ(launches_of(summed_norm(2, true, quantized_to("i8")), 8), 1u);
  EXPECT_EQ(launches_of(summed_norm(2, false), 4096), 2u) << "a rank that reduces a share of many rows moves less data";
  EXPECT_EQ(launches_of(summed_norm(16, false), 8), 2u) << "more ranks than slots";
  std::string own = summed_norm(2, false);
  own.replace(own.find("%residual)"), 10, "%x)");
  EXPECT_EQ(launches_of(own, 8), 2u) << "the summand is read by itself, too";
  EXPECT_TRUE(jit::declines_walk(comm::peer_move())) << "more threads than tasks of a super-kernel have";
  EXPECT_FALSE(jit::declines_walk(cuda::peer_move(jit::walk_threads)));
}

TEST(LongPeer, TasksOfASuperKernelAreLinked) {
  if (const std::string reason = no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  const std::unique_ptr<Device> device = make_null_device(90);
  const std::vector<cuda::Program> programs{cuda::peer_move(jit::walk_threads),
                                            cuda::peer_reduction(DType::f32, Reduction::sum, 2, 4, jit::walk_threads)};
  const jit::WalkImage image =
      jit::link_walk(programs, jit::walk_shape(programs, *device->target(), 4, 3), *device->target());
  EXPECT_EQ(image.bodies, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_FALSE(image.image.bytes.empty());
}

TEST(LongPeer, TheLaunchCompiles) {
  if (const std::string reason = no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Context context({"null:sm_90", 1});
  for (const std::string& tail : {norm_alone, quantized_to("i8"), quantized_to("f8_e4m3")})
    EXPECT_TRUE(has_step(
        Session(parse_graph(summed_norm(2, false, tail)), context, no_weights, options_of(8, FusionMode::full, {})),
        "peer.add_rms_norm"));
}

/// Blocks that ran them side by side would be in the middle of two exchanges of one channel.
TEST(Peer, ExchangesInARegionWaitForEachOtherWhereTheirDataDoesNot) {
  Context context({"null:sm_90", 1});
  const std::unique_ptr<Communicator> group = comm::make_null_communicator(0, 2);
  const std::string text = R"(graph apart {
  super_kernel all "width=16"
  input %x : f32[2, 96]
  input %z : f32[3, 32]
  %a = all_gather(%x) {group = "tensor", ranks = 2} : f32[4, 96] in all
  %b = all_gather(%z) {group = "tensor", ranks = 2} : f32[6, 32] in all
  output a = %a
  output b = %b
})";
  Session session(parse_graph(text), context, no_weights, options_of(8, FusionMode::full, {{"tensor", group.get()}}));
  std::vector<DeviceBuffer> memory;
  for (const auto& [name, shape] : {std::pair("x", Shape{2, 96}), {"z", Shape{3, 32}}}) {
    memory.push_back(context.device().allocate(dense_bytes(DType::f32, shape)));
    session.bind(name, {memory.back().data(), DType::f32, shape});
  }
  session.run();
  const Plan& plan = session.executable().plan();
  ASSERT_EQ(plan.launches().size(), 2u);
  EXPECT_EQ(region_needs(plan, 0, 2), (std::vector<std::vector<std::uint32_t>>{{}, {0}}));
}

/// How many calls go beside other launches in a graph of two inputs, x : f32[2, 96] and z : f32[4, 96], on a GPU that
/// is not there.
std::size_t calls_beside(const std::string& nodes) {
  Context context({"null:sm_90", 1});
  const std::unique_ptr<Communicator> group = comm::make_null_communicator(0, 2);
  Session session(
      parse_graph("graph beside {\n  input %x : f32[2, 96]\n  input %z : f32[4, 96]\n" + nodes + "  output y = %y\n}"),
      context, no_weights, options_of(8, FusionMode::none, {{"tensor", group.get()}}));
  std::vector<DeviceBuffer> memory;
  for (const auto& [name, shape] : {std::pair("x", Shape{2, 96}), {"z", Shape{4, 96}}}) {
    memory.push_back(context.device().allocate(dense_bytes(DType::f32, shape)));
    session.bind(name, {memory.back().data(), DType::f32, shape});
  }
  for (int run = 0; run < 3; ++run) session.run();
  return session.executable().calls_beside();
}

TEST(Peer, CallsGoBesideLaunchesThatNeedNothingOfThem) {
  const std::string gather = "  %a = all_gather(%x) {group = \"tensor\", ranks = 2} : f32[4, 96]\n",
                    silu = "  %b = silu(%z) : f32[4, 96]\n", sum = "  %y = add(%a, %b) : f32[4, 96]\n";
  EXPECT_EQ(calls_beside(gather + silu + sum), 1u);
  EXPECT_EQ(calls_beside(silu + gather + sum), 0u) << "the next launch needs it";
  EXPECT_EQ(
      calls_beside(
          gather +
          "  %c = all_gather(%x) {group = \"tensor\", ranks = 2} : f32[4, 96]\n  %b = add(%c, %z) : f32[4, 96]\n" +
          sum),
      0u)
      << "calls of a group follow each other";
}

TEST(Peer, EnginesAreNamed) {
  EXPECT_EQ(comm::device_engine_from("peer", "--engine"), comm::DeviceEngine::peer);
  EXPECT_EQ(comm::device_engine_from("stamped", "--engine"), comm::DeviceEngine::stamped);
  EXPECT_EQ(comm::device_engine_from("two-shot", "--engine"), comm::DeviceEngine::two_shot);
  EXPECT_THROW(comm::device_engine_from("ring", "--engine"), Error);
}

}  // namespace
}  // namespace cermet::test

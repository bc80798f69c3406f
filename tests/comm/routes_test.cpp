// Which way a call takes between GPUs: by assumed constants, by times that were stored, and by force.
#include "comm/peer_routes.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/route_store.hpp"
#include "tests/comm/threads.hpp"
#include "tests/model/scratch.hpp"

namespace cermet::test {
namespace {

using comm::Route;
using comm::Routes;
using comm::RouteTimes;

comm::DenseCall reduction_of(std::int64_t piece, int ranks) {
  comm::DenseCall call;
  call.dtype = DType::bf16;
  call.size = ranks;
  call.piece = piece;
  return call;
}

TEST(Routes, LargeMessagesOfManyRanksGoInSharesOrToNccl) {
  const Routes assumed;
  EXPECT_EQ(assumed.over_peer_memory(reduction_of(512, 8)), Route::stamped);
  EXPECT_TRUE(assumed.takes_peer_memory(reduction_of(4 << 10, 8)));
  EXPECT_EQ(assumed.over_peer_memory(reduction_of(16 << 20, 8)), Route::two_shot);
  EXPECT_FALSE(assumed.takes_peer_memory(reduction_of(16 << 20, 8)));
  EXPECT_EQ(assumed.over_peer_memory(reduction_of(16 << 20, 2)), Route::two_shot);
  EXPECT_TRUE(assumed.takes_peer_memory(reduction_of(16 << 20, 2))) << "between two it was measured";
}

TEST(Routes, AWayThatIsForcedIsTakenByCallsThatHaveIt) {
  comm::DenseCall call = reduction_of(64, 2);
  EXPECT_EQ(Routes({}, Route::two_shot).over_peer_memory(call), Route::two_shot);
  EXPECT_EQ(Routes({}, Route::one_shot).over_peer_memory(reduction_of(16 << 20, 8)), Route::one_shot);
  EXPECT_EQ(Routes({}, Route::stamped).over_peer_memory(reduction_of(16 << 20, 8)), Route::stamped);
  call.kind = Collective::all_gather;
  EXPECT_EQ(Routes({}, Route::two_shot).over_peer_memory(call), Route::stamped);
  call.kind = Collective::reduce_to;
  EXPECT_EQ(Routes({}, Route::stamped).over_peer_memory(call), Route::one_shot)
      << "a rank that takes nothing would not wait";
}

/// Stamped words are first below 4 KiB, one-shot below 16 KiB, two-shot up to 64 KiB, then NCCL.
RouteTimes crossing_times() {
  return {{{Collective::all_reduce, Route::nccl}, {{1 << 10, 9e-6}, {1 << 20, 12e-6}}},
          {{Collective::all_reduce, Route::stamped}, {{1 << 10, 2e-6}, {4 << 10, 4e-6}, {1 << 20, 400e-6}}},
          {{Collective::all_reduce, Route::one_shot}, {{1 << 10, 3e-6}, {16 << 10, 6e-6}, {1 << 20, 200e-6}}},
          {{Collective::all_reduce, Route::two_shot}, {{1 << 10, 5e-6}, {16 << 10, 6e-6}, {1 << 20, 150e-6}}}};
}

TEST(Routes, MeasuredTimesDecideBetweenTheirSizesAndBeyond) {
  const Routes routes(crossing_times());
  const auto of_bytes = [](std::int64_t bytes) { return reduction_of(bytes / 2, 2); };
  EXPECT_DOUBLE_EQ(routes.seconds(Route::one_shot, of_bytes(512)), 3e-6);
  EXPECT_DOUBLE_EQ(routes.seconds(Route::one_shot, of_bytes((1 << 10) + (15 << 9))), 4.5e-6);
  EXPECT_NEAR(routes.seconds(Route::nccl, of_bytes(2 << 20)), 15e-6, 0.01e-6);
  EXPECT_EQ(routes.over_peer_memory(of_bytes(2 << 10)), Route::stamped);
  EXPECT_EQ(routes.over_peer_memory(of_bytes(8 << 10)), Route::one_shot);
  EXPECT_EQ(routes.over_peer_memory(of_bytes(32 << 10)), Route::two_shot);
  EXPECT_TRUE(routes.takes_peer_memory(of_bytes(16 << 10)));
  EXPECT_FALSE(routes.takes_peer_memory(of_bytes(256 << 10)));
  comm::DenseCall other = of_bytes(256 << 10);
  other.kind = Collective::reduce_scatter;
  EXPECT_EQ(routes.takes_peer_memory(other), Routes().takes_peer_memory(other)) << "not measured";
  RouteTimes without_nccl = crossing_times();
  without_nccl.erase({Collective::all_reduce, Route::nccl});
  EXPECT_EQ(Routes(without_nccl).over_peer_memory(of_bytes(32 << 10)), Route::two_shot)
      << "all ways over peer memory were measured";
  EXPECT_EQ(Routes(without_nccl).over_peer_memory(of_bytes(8 << 10)), Route::one_shot);
}

TEST(Routes, TheFitFindsBothConstantsAndNoNegativeOne) {
  const auto near = [](comm::RouteModel model, double seconds, double rate) {
    EXPECT_NEAR(model.seconds, seconds, 1e-9);
    if (std::isinf(rate)) EXPECT_TRUE(std::isinf(model.bytes_per_second));
    else EXPECT_NEAR(model.bytes_per_second / rate, 1, 1e-6);
  };
  std::vector<comm::RoutePoint> line;
  for (const double bytes : {1e3, 1e4, 1e6, 1e8}) line.push_back({bytes, 5e-6 + bytes / 100e9});
  near(comm::fitted(line), 5e-6, 100e9);
  near(comm::fitted(std::vector<comm::RoutePoint>{{1000, 2e-6}}), 2e-6, INFINITY);
  near(comm::fitted(std::vector<comm::RoutePoint>{{1000, 4e-6}, {2000, 2e-6}}), 2.4e-6, INFINITY);
  EXPECT_EQ(comm::fitted(std::vector<comm::RoutePoint>{{1000, 1e-6}, {2000, 4e-6}}).seconds, 0);
}

TEST(RouteStore, KeepsTimesAndRefusesWhatIsBrokenOrForeign) {
  const ScratchFolder folder;
  const auto device = make_null_device(90), other = make_null_device(80);
  const auto file = folder / "limits" / "two.json";
  EXPECT_TRUE(comm::read_routes(*device, 2, file).empty());
  comm::store_routes(*device, 2, file, crossing_times());
  const RouteTimes read = comm::read_routes(*device, 2, file);
  ASSERT_EQ(read.size(), 4u);
  const comm::RoutePoint last = read.at({Collective::all_reduce, Route::one_shot}).back();
  EXPECT_EQ(last.bytes, 1 << 20);
  EXPECT_EQ(last.seconds, 200e-6);
  EXPECT_THROW(comm::read_routes(*device, 4, file), Error);
  EXPECT_THROW(comm::read_routes(*other, 2, file), Error);
  const std::string good = content_of(file);
  for (const auto& [old, replacement, message] :
       {std::tuple("one-shot", "carrier pigeon", "expected nccl, stamped, one-shot or two-shot"),
        {"\"all_reduce\"", "\"silu\"", "an operator that communicates"},
        {"[1048576", "[1", "more bytes than before"},
        {"9e-06", "-1", "seconds from 1e-08 to 1000"},
        {"two-shot", "one-shot", "given twice"}}) {
    std::string text = good;
    ASSERT_NE(text.find(old), text.npos) << old << text;
    const auto bad = folder.file("bad.json", text.replace(text.find(old), std::string_view(old).size(), replacement));
    expect_error(Status::invalid_file, {message}, [&] { comm::read_routes(*device, 2, bad); });
  }
  RouteTimes endless = crossing_times();
  endless.begin()->second.front().seconds = INFINITY;
  expect_error(Status::invalid_argument, {"times of all_reduce by nccl"},
               [&] { comm::store_routes(*device, 2, file, endless); });
}

}  // namespace
}  // namespace cermet::test

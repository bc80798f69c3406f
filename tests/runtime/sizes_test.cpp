// Sizes that a run gives as attributes of operators, and as tensors.
#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "op/schema/reference.hpp"
#include "runtime/session.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// A graph of x: f32[S] = 1, 2, .. and t: f32[T], zeros.
struct Sized {
  Context context{{"cpu", 2}};
  Session session;
  std::vector<OwnedTensor> memory;

  static SessionOptions options() {
    SessionOptions made;
    for (const char* name : {"S", "T"}) made.maximum.set(Symbol(name), 9);
    return made;
  }
  explicit Sized(std::string_view nodes)
      : session(
            parse_graph(fmt::format("graph sizes {{\n  input %x : f32[S]\n  input %t : f32[T]\n{}}}\n", nodes)),
            context, [](const std::string&, std::int64_t, const TensorView&) {}, options()) {}

  void run(std::int64_t s, std::int64_t t) {
    memory.clear();
    memory.emplace_back(DType::f32, Shape{s});
    memory.emplace_back(DType::f32, Shape{t});
    for (std::int64_t i = 0; i < s; ++i) store(memory[0].view, i, static_cast<double>(i + 1));
    for (std::int64_t i = 0; i < t; ++i) store(memory[1].view, i, 0);
    session.bind("x", memory[0].view);
    session.bind("t", memory[1].view);
    session.run();
  }
  std::vector<double> operator()(const char* name) {
    std::vector<double> list;
    const TensorView view = session.host_output(name);
    for (std::int64_t i = 0; i < view.elements(); ++i) list.push_back(load(view, i));
    return list;
  }
};

TEST(Sizes, SlicesBeginAndEndWhereTheySay) {
  Sized run(R"(  %first = slice(%x) {starts = [0], counts = ["T"]} : f32[T]
  %last = slice(%x) {starts = [9223372036854775807], counts = ["T"]} : f32[T]
  %middle = slice(%last) {starts = [0], counts = ["1"]} : f32[1]
  output first = %first
  output last = %last
  output middle = %middle
)");
  for (const std::int64_t t : {2, 4, 3}) {
    run.run(6, t);
    std::vector<double> first, last;
    for (std::int64_t i = 0; i < t; ++i) {
      first.push_back(static_cast<double>(i + 1));
      last.push_back(static_cast<double>(6 - t + i + 1));
    }
    EXPECT_EQ(run("first"), first);
    EXPECT_EQ(run("last"), last);
    EXPECT_EQ(run("middle"), std::vector<double>{static_cast<double>(6 - t + 1)});
  }
}

TEST(Sizes, PadsAndResizesReachTheirDimensions) {
  Sized run(R"(  %after = pad(%t) {dims = ["S"], pads = [0, -1], value = 7.0} : f32[S]
  %before = pad(%t) {dims = ["S"], pads = [-1, 1], value = 7.0} : f32[S]
  %wide = resize(%x) {dims = ["2*S"]} : f32[2*S]
  output after = %after
  output before = %before
  output wide = %wide
)");
  for (const std::int64_t s : {4, 5}) {
    run.run(s, 2);
    std::vector<double> after{0, 0}, before(static_cast<std::size_t>(s) - 3, 7), wide;
    for (std::int64_t i = 2; i < s; ++i) after.push_back(7);
    before.insert(before.end(), {0, 0, 7});
    for (std::int64_t i = 0; i < 2 * s; ++i) wide.push_back(static_cast<double>(i / 2 + 1));
    EXPECT_EQ(run("after"), after);
    EXPECT_EQ(run("before"), before);
    EXPECT_EQ(run("wide"), wide);
  }
  EXPECT_EQ(error_text([&] { run.run(2, 2); }), "pad: attribute 'dims': expected dimension 0 of at least 3, found 2");
}

TEST(Sizes, AreTensorsToo) {
  Sized run(R"(  constant %zero : i64[] = tensor i64[] 0x0000000000000000
  %at = iota(%zero) {dims = ["2*T+1"]} : i64[2*T+1]
  %sizes = size_of(%x) : i64[1]
  %size = size_of(%at) {axes = [0]} : i64[1]
  %from = iota(%sizes) {axis = 1, dims = ["T", "2"], step = -1.0} : i64[T, 2]
  output at = %at
  output size = %size
  output from = %from
)");
  for (const std::int64_t t : {1, 3, 2}) {
    run.run(5, t);
    std::vector<double> at, from;
    for (std::int64_t i = 0; i < 2 * t + 1; ++i) at.push_back(static_cast<double>(i));
    for (std::int64_t i = 0; i < t; ++i) from.insert(from.end(), {5, 4});
    EXPECT_EQ(run("at"), at);
    EXPECT_EQ(run("size"), std::vector<double>{static_cast<double>(2 * t + 1)});
    EXPECT_EQ(run("from"), from);
  }
}

}  // namespace
}  // namespace cermet

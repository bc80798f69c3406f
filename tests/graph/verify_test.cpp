#include "graph/verify.hpp"

#include <gtest/gtest.h>

#include <set>

#include "graph/text.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// The files of tests/graph/bad: a first line "// message", then a graph that breaks the rule which the message names.
std::vector<std::filesystem::path> bad_graphs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(CERMET_SOURCE_DIR "/tests/graph/bad"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class BadGraph : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(BadGraph, IsRefusedWithItsMessage) {
  const std::string text = read_text(GetParam());
  const std::string message = text.substr(3, text.find('\n') - 3);
  EXPECT_EQ(error_text([&] { verify(parse_unverified_graph(text)); }), message);
  EXPECT_EQ(error_text([&] { parse_graph(text); }), message);
}

INSTANTIATE_TEST_SUITE_P(Verify, BadGraph, testing::ValuesIn(bad_graphs()), [](const auto& test) {
  std::string name = test.param.stem();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

Value value(std::string name, ValueKind kind, std::int32_t producer) {
  return {std::move(name), {DType::f32, {8}}, kind, producer};
}
Node norm(std::int32_t from, std::int32_t to) { return {OpKind::rms_norm, {{from}, {}}, {{to}}, {}, ""}; }
std::string violation(std::vector<Value> values, std::vector<Node> nodes, std::vector<GraphOutput> outputs) {
  return find_violation(Graph::from_parts("g", std::move(values), std::move(nodes), std::move(outputs)))
      .value_or("none");
}

/// What the text form cannot express.
TEST(Verify, PartsThatDoNotFitTogether) {
  const Value x = value("x", ValueKind::input, -1), y = value("y", ValueKind::intermediate, 0);
  EXPECT_EQ(violation({x, y}, {norm(0, 1)}, {{"y", {1}}}), "none");
  EXPECT_EQ(violation({x, value("", ValueKind::intermediate, 0)}, {norm(0, 1)}, {}),
            "graph 'g': rule names-unique: expected a name for every value, found an empty one");
  EXPECT_EQ(violation({x, y}, {norm(2, 1)}, {}),
            "graph 'g': rule operands-exist: node 0 (rms_norm): expected operands of the graph, found value 2 of 2");
  EXPECT_EQ(violation({x, y}, {norm(-2, 1)}, {}),
            "graph 'g': rule operands-exist: node 0 (rms_norm): expected operands of the graph, found value -2 of 2");
  EXPECT_EQ(violation({x, y}, {norm(0, -1)}, {}),
            "graph 'g': rule operands-exist: node 0 (rms_norm): expected results of the graph, found value -1 of 2");
  EXPECT_EQ(violation({x, y}, {norm(0, 1)}, {{"y", {2}}}),
            "graph 'g': rule outputs-exist: output 'y': expected a value of the graph, found value 2 of 2");
  EXPECT_EQ(violation({x, y}, {norm(0, 1)}, {{"", {1}}}),
            "graph 'g': rule outputs-exist: expected a name for every output, found an empty one");
  EXPECT_EQ(violation({x, y}, {}, {}),
            "graph 'g': rule single-producer: value 'y': expected a node that makes it, found none");
  EXPECT_EQ(violation({x, value("z", ValueKind::input, -1)}, {norm(0, 1)}, {}),
            "graph 'g': rule single-producer: value 'z': expected no producer for an input or constant, found node 0");
  EXPECT_EQ(violation({x, value("y", ValueKind::intermediate, 3)}, {norm(0, 1)}, {}),
            "graph 'g': rule single-producer: value 'y': expected its producer to be node 0, found 3 noted");
  Value shrinking = x;
  shrinking.type.dims[0] = Dim::symbol("T") * -1 + 8;
  EXPECT_EQ(violation({shrinking}, {}, {}),
            "graph 'g': rule dimensions-usable: value 'x': expected dimensions that are not negative and grow with "
            "their symbol, found f32[-1*T+8]");
}

TEST(Verify, EveryRuleHasAGraphThatBreaksIt) {
  std::set<std::string> broken{
      "operands-exist",
      "aliases-match"};  // the text form cannot express the first; the second guards against wrong operator definitions
  for (const auto& file : bad_graphs()) {
    const std::string message = find_violation(parse_unverified_graph(read_text(file))).value_or("");
    const std::size_t begin = message.find(": rule ") + 7;
    broken.insert(message.substr(begin, message.find(':', begin) - begin));
  }
  for (const GraphRule& rule : graph_rules())
    EXPECT_TRUE(broken.contains(std::string(rule.name))) << "no file in tests/graph/bad breaks rule " << rule.name;
}

}  // namespace
}  // namespace cermet

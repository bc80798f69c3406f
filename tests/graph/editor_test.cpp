#include "graph/editor.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

std::string body(const Graph& graph) {
  std::string lines;
  for (const Node& node : graph.nodes()) {
    lines += graph.value(node.outputs[0]).name + " =";
    for (const ValueId id : node.inputs) lines += id ? " " + graph.value(id).name : " -";
    lines += '\n';
  }
  return lines;
}

/// x -> a -> b -> output, and a cache that is read, updated and read again.
struct Sample {
  Graph graph;
  ValueId x, w, a, b;
  Sample() {
    graph.name = "sample";
    x = graph.add_input("x", {DType::f32, {Dim::symbol("T"), 4}});
    w = graph.add_constant("w", {DType::f32, {4}});
    a = graph.apply(OpKind::rms_norm, {x, w}, {}, "a");
    b = graph.apply(OpKind::add, {a, x}, {}, "b");
    graph.add_output("y", b);
  }
};

TEST(GraphEditor, WithoutEditsGivesTheSameGraph) {
  const Sample s;
  EXPECT_EQ(to_text(GraphEditor(s.graph).finish()), to_text(s.graph));
}

TEST(GraphEditor, InsertsReplacesAndErases) {
  const Sample s;
  GraphEditor editor(s.graph);
  const NodeId norm = editor.producer(s.a), sum = editor.producer(s.b);
  const ValueId c = editor.insert_after(norm, OpKind::mul, {s.a, s.a}, {}, "part")[0];
  EXPECT_EQ(editor.value(c).name, "part.mul");
  editor.replace_uses(s.a, c, editor.producer(c));
  EXPECT_EQ(body(editor.finish()), "a = x w\npart.mul = a a\nb = part.mul x\n");
  verify(editor.finish());
  const ValueId d = editor.insert_before(sum, OpKind::rms_norm, {s.x})[0];
  const NodeId gone[] = {norm, editor.producer(c)};
  const std::pair<ValueId, ValueId> results[] = {{c, d}};
  editor.replace(gone, results);
  EXPECT_EQ(body(editor.finish()), "rms_norm = x -\nb = rms_norm x\n");
  EXPECT_EQ(editor.finish().find("w"), ValueId{}) << "an unread constant is left out";
  EXPECT_EQ(editor.size(), 2u);
  EXPECT_FALSE(editor.has(norm));
  editor.rename(d, "a");
  EXPECT_EQ(body(editor.finish()), "a = x -\nb = a x\n") << "the name of an erased value is free";
  verify(editor.finish());
}

TEST(GraphEditor, RefusesWhatWouldBreakTheGraph) {
  const Sample s;
  GraphEditor editor(s.graph);
  EXPECT_EQ(error_text([&] { editor.erase(editor.producer(s.a)); }),
            "graph 'sample': value 'a': expected one that nothing reads, found an operand of add");
  EXPECT_EQ(error_text([&] { editor.erase(editor.producer(s.b)); }),
            "graph 'sample': value 'b': expected one that nothing reads, found an output of the graph");
  EXPECT_EQ(error_text([&] { editor.replace_uses(s.a, s.w); }),
            "graph 'sample': value 'w' in place of 'a': expected f32[T, 4], found f32[4]");
  EXPECT_EQ(error_text([&] { editor.rename(s.a, "b"); }),
            "graph 'sample': value 'b': expected a name of its own, found one that is taken");
  EXPECT_EQ(to_text(editor.finish()), to_text(s.graph)) << "refused edits change nothing";
  editor.replace_uses(s.x, s.b);
  EXPECT_EQ(error_text([&] { editor.finish(); }),
            "graph 'sample': value 'a': expected an order in which nodes can run, found none: it depends on itself, or "
            "on memory after an update");
}

TEST(GraphEditor, MovesNodesBehindWhatTheyReadAndInFrontOfWhatOverwritesIt) {
  const Graph graph = parse_graph(R"(graph g {
  input %x : f32[T, 2, 8]
  input %k : f32[4, 2, 8, 8]
  input %v : f32[4, 2, 8, 8]
  input %slots : i32[T]
  %flat = reshape(%k) {shape = [512]} : f32[512]
  %k2, %v2 = kv_cache_write(%x, %x, %k, %v, %slots) : f32[4, 2, 8, 8], f32[4, 2, 8, 8]
  %early = add(%x, %x) : f32[T, 2, 8]
  %late = mul(%x, %x) : f32[T, 2, 8]
  output k = %k2
  output v = %v2
  output sum = %early
  output product = %late
}
)");
  GraphEditor editor(graph);
  const ValueId old =
      editor.insert_after(no_node, OpKind::add, {graph.find("flat"), graph.find("flat")}, {}, "", {"old"})[0];
  const ValueId seen =
      editor.insert_after(no_node, OpKind::mul, {graph.find("k"), graph.find("k")}, {}, "", {"seen"})[0];
  editor.set_operand({editor.producer(graph.find("early")), 1}, graph.find("late"));
  EXPECT_EQ(body(editor.finish()),
            "flat = k\nlate = x x\nearly = x late\nold = flat flat\nseen = k k\nk2 = x x k v slots - -\n");
  verify(editor.finish());
  editor.insert_before(editor.producer(old), OpKind::kv_cache_write,
                       {graph.find("x"), graph.find("x"), graph.find("k"), graph.find("v"), graph.find("slots")});
  EXPECT_NE(error_text([&] { editor.finish(); }), "no error") << "two nodes overwrite one memory";
  EXPECT_TRUE(editor.has(editor.producer(seen)));
}

TEST(GraphEditor, AddsConstantsInFrontOfTheirFirstReader) {
  const Sample s;
  GraphEditor editor(s.graph);
  const ValueId two = editor.add_constant("w", {OpKind::add, {s.w, s.w}, {}});
  const ValueId four = editor.add_constant("w", {OpKind::add, {two, two}, {}});
  editor.replace_uses(s.w, four);
  const Graph after = editor.finish();
  verify(after);
  EXPECT_EQ(to_text(parse_graph(to_text(after))), to_text(after));
  EXPECT_NE(to_text(after).find("  constant %w.2 : f32[4] = add(%w, %w)\n  constant %w.3 : f32[4] = add(%w.2, %w.2)\n"),
            std::string::npos)
      << to_text(after);
  EXPECT_EQ(error_text([&] {
              editor.add_constant("z", {OpKind::add, {s.x, s.w}, {}});
            }),
            "constant 'z': expected constants to compute it of, found 'x'");
}

/// The same edits on a plain list of nodes, by names.
struct Model {
  struct Line {
    std::string name;
    OpKind op;
    std::vector<std::string> inputs;
  };
  std::vector<Line> lines;
  std::string output;

  std::size_t at(const std::string& name) const {
    return static_cast<std::size_t>(
        std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; }) - lines.begin());
  }
  std::size_t reads(const std::string& name) const {
    std::size_t count = output == name ? 1 : 0;
    for (const Line& line : lines)
      count += static_cast<std::size_t>(std::count(line.inputs.begin(), line.inputs.end(), name));
    return count;
  }
  bool runs() const {
    std::set<std::string> made{"x0", "x1"};
    for (const Line& line : lines) {
      for (const std::string& input : line.inputs)
        if (!made.contains(input)) return false;
      made.insert(line.name);
    }
    return true;
  }
  std::string text() const {
    std::string text;
    for (const Line& line : lines) text += fmt::format("{} = {}\n", line.name, fmt::join(line.inputs, " "));
    return text;
  }
};

/// Thousands of random edits: after each the editor's uses are those of the plain list, and its graph is valid and has
/// the list's nodes, in its order wherever they can run in it.
TEST(GraphEditor, AgreesWithAPlainListUnderRandomEdits) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Graph graph;
    graph.add_input("x0", {DType::f32, {8}});
    graph.add_input("x1", {DType::f32, {8}});
    graph.apply(OpKind::add, {{0}, {1}}, {}, "n0");
    graph.add_output("y", {2});
    GraphEditor editor(graph);
    Model model{{{"n0", OpKind::add, {"x0", "x1"}}}, "n0"};
    std::map<std::string, ValueId> ids{{"x0", {0}}, {"x1", {1}}, {"n0", {2}}};
    int names = 1, ordered = 0;
    for (int step = 0; step < 250; ++step) {
      const Model before = model;
      const GraphEditor undo = editor;
      const auto any_value = [&] {
        return std::next(ids.begin(), static_cast<std::ptrdiff_t>(pick(ids.size())))->first;
      };
      const std::size_t place = pick(model.lines.size());
      const std::string at = model.lines[place].name;
      switch (pick(5)) {
        case 0:
        case 1: {  // insert
          const std::string a = any_value(), b = any_value(), name = fmt::format("n{}", names++);
          const bool behind = pick(2) == 1;
          const NodeId node = editor.producer(ids[at]);
          ids[name] = (behind ? editor.insert_after(node, OpKind::mul, {ids[a], ids[b]}, {}, "", {name})
                              : editor.insert_before(node, OpKind::mul, {ids[a], ids[b]}, {}, "", {name}))[0];
          model.lines.insert(model.lines.begin() + static_cast<std::ptrdiff_t>(place + (behind ? 1 : 0)),
                             {name, OpKind::mul, {a, b}});
          break;
        }
        case 2: {  // replace
          const std::string from = any_value(), to = any_value();
          editor.replace_uses(ids[from], ids[to]);
          for (Model::Line& line : model.lines) std::replace(line.inputs.begin(), line.inputs.end(), from, to);
          if (model.output == from) model.output = to;
          break;
        }
        case 3: {  // one operand
          const std::string to = any_value();
          const std::size_t operand = pick(2);
          editor.set_operand({editor.producer(ids[at]), static_cast<std::int32_t>(operand)}, ids[to]);
          model.lines[place].inputs[operand] = to;
          break;
        }
        default:  // erase
          if (model.lines.size() == 1 || model.reads(at) > 0) {
            EXPECT_EQ(error_text([&] { editor.erase(editor.producer(ids[at])); }) == "no error", model.reads(at) == 0);
            if (model.reads(at) > 0) break;
          } else {
            editor.erase(editor.producer(ids[at]));
          }
          model.lines.erase(model.lines.begin() + static_cast<std::ptrdiff_t>(place));
          ids.erase(at);
      }
      std::optional<Graph> made;
      const std::string error = error_text([&] { made = editor.finish(); });
      if (!made || model.lines.empty()) {  // a circle, or nothing left: as before
        ASSERT_TRUE(model.lines.empty() || !model.runs()) << error;
        model = before;
        editor = undo;
        std::erase_if(ids, [&](const auto& entry) {
          return entry.first[0] == 'n' && model.at(entry.first) == model.lines.size();
        });
        for (const Model::Line& line : model.lines)
          for (NodeId n = editor.first(); n != no_node; n = editor.next(n))
            if (editor.value(editor.node(n).outputs[0]).name == line.name) ids[line.name] = editor.node(n).outputs[0];
        continue;
      }
      ASSERT_EQ(find_violation(*made), std::nullopt);
      for (const auto& [name, id] : ids)
        ASSERT_EQ(editor.uses(id).size() + (editor.is_output(id) ? 1 : 0), model.reads(name)) << name;
      ASSERT_EQ(editor.size(), model.lines.size());
      if (model.runs()) {
        ++ordered;
        ASSERT_EQ(body(*made), model.text());
      } else {  // the graph's order becomes the list's
        std::vector<Model::Line> lines;
        for (const Node& node : made->nodes())
          lines.push_back(model.lines.at(model.at(made->value(node.outputs[0]).name)));
        model.lines = lines;
        ASSERT_TRUE(model.runs());
        ASSERT_EQ(body(*made), model.text());
        editor = GraphEditor(*made);
        ids.clear();
        for (const Value& value : made->values()) ids[value.name] = made->find(value.name);
      }
    }
    EXPECT_GT(ordered, 60);
  }
}

}  // namespace
}  // namespace cermet

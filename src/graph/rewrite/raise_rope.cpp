// Rotary embeddings that exporters write out as x * cos + rotated(x) * sin, put together again.
#include <algorithm>
#include <cstring>

#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

constexpr std::int64_t most_rope_positions = 1 << 16;  // as the positions of all rows become a constant

struct RotarySpelling {
  Pattern pattern;
  bool is_interleaved;
  std::vector<std::pair<std::size_t, std::int64_t>>
      slices;  ///< nodes of the pattern that are slices, and which half each takes
};

const std::vector<RotarySpelling>& spellings() {
  static const std::vector<RotarySpelling> list{
      {Pattern::parse("b = slice(x); a = slice(x); y = add(mul(x, c@), mul(concat(neg(b), a), s@))"),
       false,
       {{0, 1}, {1, 0}}},
      {Pattern::parse("a, b = split(x); y = add(mul(x, c@), mul(concat(neg(b), a), s@))"), false, {}},
      {Pattern::parse(
           "b = slice(x); a = slice(x); y = add(mul(x, c@), mul(reshape(concat(reshape(neg(b)), reshape(a))), s@))"),
       true,
       {{0, 1}, {1, 0}}},
  };
  return list;
}

/// A table that is the same for everything but the position: [1, .., T, D] with what a pair shares standing twice.
bool is_table(const Match& m, const char* name, const TensorType& x, bool is_interleaved) {
  const Value& value = m.editor->value(m.at(name));
  const TensorData* data = value.data();
  const Dims& dims = value.type.dims;
  const std::size_t rank = dims.size();
  if (!data || value.type.dtype != DType::f32 || rank < 2 || dims[rank - 1] != x.dims.back() ||
      dims[rank - 2] != x.dims[x.dims.size() - 2])
    return false;
  if (!std::all_of(dims.begin(), dims.end() - 2, [](const Dim& dim) { return dim == Dim(1); })) return false;
  const auto width = static_cast<std::size_t>(dims.back().constant()), element = sizeof(float);
  const std::byte* bytes = data->bytes().data();
  for (std::size_t row = 0; row < data->bytes().size(); row += width * element)
    for (std::size_t i = 0; i < width / 2; ++i) {
      const std::size_t first = is_interleaved ? 2 * i : i, second = is_interleaved ? 2 * i + 1 : i + width / 2;
      if (std::memcmp(bytes + row + first * element, bytes + row + second * element, element) != 0) return false;
    }
  return true;
}

bool takes_half(const Match& m, std::size_t node, std::int64_t half, std::int64_t width, bool is_interleaved) {
  const Attributes a = m.attributes(node);
  const Ints &starts = a.integers("starts"), &ends = a.integers("ends"), &axes = a.integers("axes"),
             &steps = a.integers("steps");
  const int rank = m.type("x").rank();
  if (axes.size() != 1 || ends.size() != 1 || (axes[0] != -1 && axes[0] != rank - 1)) return false;
  const std::int64_t step = steps.empty() ? 1 : steps[0],
                     end = ends[0] < 0 ? ends[0] + width : std::min(ends[0], width);
  if (is_interleaved) return step == 2 && starts[0] == half && end > width - 2 + half;
  return step == 1 && starts[0] == half * width / 2 && end == (half + 1) * width / 2;
}

/// Along the last axis; of pairs, of which one stands behind the other.
bool joins_last(const Match& m, const RotarySpelling& spelling) {
  for (std::size_t n = 0; n < m.nodes.size(); ++n) {
    if (spelling.pattern.nodes[n].op != OpKind::concat && spelling.pattern.nodes[n].op != OpKind::split) continue;
    const Dims& dims = m.editor->value(m.editor->node(m.nodes[n]).inputs[0]).type.dims;
    const std::int64_t axis = m.attributes(n).integer("axis");
    if (axis != -1 && axis != static_cast<std::int64_t>(dims.size()) - 1) return false;
    if (spelling.is_interleaved && dims.back() != Dim(1)) return false;
  }
  return true;
}

bool is_rotation(const Match& m, const RotarySpelling& spelling) {
  const TensorType& x = m.type("x");
  if (x.dtype != DType::f32 || x.rank() < 2 || !x.is_constant() || m.type("y") != x ||
      x.dims.back().constant() % 2 != 0)
    return false;
  if (x.elements().constant() / x.dims.back().constant() > most_rope_positions || m.type("a") != m.type("b"))
    return false;
  const std::int64_t width = x.dims.back().constant();
  for (const auto& [node, half] : spelling.slices)
    if (!takes_half(m, node, half, width, spelling.is_interleaved)) return false;
  return joins_last(m, spelling) && is_table(m, "c", x, spelling.is_interleaved) &&
         is_table(m, "s", x, spelling.is_interleaved);
}

/// [T, D / 2] of a table.
ValueId halved(GraphEditor& editor, ValueId table, const Dims& x, bool is_interleaved) {
  const std::int64_t width = x.back().constant();
  const std::string name = editor.value(table).name;
  const ValueId rows = editor.add_constant(
      name + ".rows", ConstantExpression{OpKind::reshape, {table}, {{"shape", Ints{-1, width}}}, 0});
  Attributes half{{"axes", Ints{1}}, {"starts", Ints{0}}, {"ends", Ints{is_interleaved ? width : width / 2}}};
  if (is_interleaved) half.set("steps", Ints{2});
  return editor.add_constant(name + ".pairs", ConstantExpression{OpKind::slice, {rows}, half, 0});
}

/// Each row's place along the axis before the last.
ValueId row_positions(GraphEditor& editor, const Dims& x) {
  const TensorType type{DType::i32, Dims(x.begin(), x.end() - 1)};
  const std::int64_t period = x[x.size() - 2].constant();
  std::vector<std::int32_t> positions(static_cast<std::size_t>(type.elements().constant()));
  for (std::size_t i = 0; i < positions.size(); ++i)
    positions[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % period);
  return editor.add_constant("positions", TensorData::of(type, positions));
}

Ints numbers_of(const Dims& dims) {
  Ints numbers;
  for (const Dim& dim : dims) numbers.push_back(dim.constant());
  return numbers;
}

}  // namespace

/// Every row is a head of its own, so that the layout [.., heads, T, D] needs no transpose.
bool raise_rope(const Rule&, GraphEditor& editor, NodeId anchor) {
  for (const RotarySpelling& spelling : spellings()) {
    std::optional<Match> found;
    find_matches(spelling.pattern, editor, anchor, [&](const Match& match) {
      if (is_rotation(match, spelling)) found = match;
      return found.has_value();
    });
    if (!found) continue;
    const Dims dims = found->type("x").dims;
    const std::string scope = editor.node(anchor).scope, name = editor.value(found->at("y")).name;
    Ints heads = numbers_of(dims);
    heads.insert(heads.end() - 1, 1);
    const ValueId rows = editor.insert_before(anchor, OpKind::reshape, {found->at("x")}, {{"shape", heads}}, scope)[0];
    const ValueId cosines = halved(editor, found->at("c"), dims, spelling.is_interleaved),
                  sines = halved(editor, found->at("s"), dims, spelling.is_interleaved);
    const ValueId rotated =
        editor.insert_before(anchor, OpKind::rope, {rows, ValueId{}, cosines, sines, row_positions(editor, dims)},
                             {{"style", spelling.is_interleaved ? "gptj" : "neox"}}, scope)[0];
    const ValueId result =
        editor.insert_before(anchor, OpKind::reshape, {rotated}, {{"shape", numbers_of(dims)}}, scope)[0];
    editor.replace_uses(found->at("y"), result);
    editor.erase(anchor);
    for (std::size_t p = found->nodes.size() - 1; p-- > 0;) {
      const NodeId n = found->nodes[p];
      const auto is_unread = [&](ValueId id) { return editor.uses(id).empty() && !editor.is_output(id); };
      if (editor.has(n) && std::ranges::all_of(editor.node(n).outputs, is_unread)) editor.erase(n);
    }
    editor.rename(result, name);
    return true;
  }
  return false;
}

}  // namespace cermet

// Rotary embeddings that frameworks write out as x * cos + rotated(x) * sin, put together again. The tables are
// constants or computed of the positions of a run; rows of x read the row of the table that they were multiplied with.
#include <algorithm>

#include "graph/rewrite/derive/half_table.hpp"
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
      {Pattern::parse("b = slice(x); a = slice(x); y = add(mul(x, c), mul(concat(neg(b), a), s))"),
       false,
       {{0, 1}, {1, 0}}},
      {Pattern::parse("a, b = split(x); y = add(mul(x, c), mul(concat(neg(b), a), s))"), false, {}},
      {Pattern::parse(
           "b = slice(x); a = slice(x); y = add(mul(x, c), mul(reshape(concat(reshape(neg(b)), reshape(a))), s))"),
       true,
       {{0, 1}, {1, 0}}},
  };
  return list;
}

PairOrder order_of(const RotarySpelling& spelling) {
  return spelling.is_interleaved ? PairOrder::neighbours : PairOrder::halves;
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

bool is_rotation(const Match& m, const RotarySpelling& spelling, bool any_type) {
  const TensorType& x = m.type("x");
  if ((x.dtype != DType::f32 && !(any_type && dtypes::real.contains(x.dtype))) || x.rank() < 2 || !x.is_constant() ||
      m.type("y") != x || x.dims.back().constant() % 2 != 0)
    return false;
  if (x.elements() == Dim(0) || x.elements().constant() / x.dims.back().constant() > most_rope_positions ||
      m.type("a") != m.type("b"))
    return false;
  const std::int64_t width = x.dims.back().constant();
  for (const auto& [node, half] : spelling.slices)
    if (!takes_half(m, node, half, width, spelling.is_interleaved)) return false;
  for (const char* table : {"c", "s"})
    if (m.type(table).dtype != x.dtype || m.type(table).dims.empty() || m.type(table).dims.back() != x.dims.back() ||
        !stands_twice(*m.editor, m.at(table), order_of(spelling)))
      return false;
  return joins_last(m, spelling);
}

class Raising {
 public:
  Raising(GraphEditor& editor, NodeId anchor, const Match& match, const RotarySpelling& spelling)
      : editor_(editor), anchor_(anchor), match_(match), spelling_(spelling) {}

  bool run() {
    const ValueId x = match_.at("x"), y = match_.at("y");
    const IndexedValue whole{x, axes_.fresh(editor_.value(x).type.dims)};
    const auto cosines = rows_of(whole, "c"), sines = rows_of(whole, "s");
    if (!cosines || !sines || *cosines != *sines) return false;
    const AxisList elements = whole.dims.back();
    const IndexedValue from = source(whole, elements);
    // Heads are what follows the last axis that the tables have: their rows are rotated alike.
    AxisList rows = axes_.flat(from.dims), heads;
    rows.resize(rows.size() - axes_.resolve(elements).size());
    const AxisList of_table = axes_.resolve(*cosines);
    for (; !rows.empty() && std::ranges::find(of_table, rows.back()) == of_table.end(); rows.pop_back())
      heads.insert(heads.begin(), rows.back());
    Arranger arranger(editor_, axes_, anchor_);
    const std::vector<AxisList> dims{rows, heads, elements};
    const auto operand = arranger.arrange(from, dims);
    const auto cosine = table(arranger, "c", of_table), sine = table(arranger, "s", of_table);
    if (!operand || !cosine || !sine) {
      arranger.undo();
      return false;
    }
    const ValueId rotated =
        arranger.apply(OpKind::rope, {*operand, ValueId{}, *cosine, *sine, positions(rows, of_table)},
                       {{"style", std::string(spelling_.is_interleaved ? "gptj" : "neox")}});
    const auto result = arranger.arrange({rotated, dims}, whole.dims);
    if (!result) {
      arranger.undo();
      return false;
    }
    const std::string name = editor_.value(y).name;
    editor_.replace_uses(y, *result);
    erase_unread(editor_, anchor_);
    editor_.rename(*result, name);
    return true;
  }

 private:
  /// The axes of x that the rows of a table have, in their order; nothing where it does not broadcast.
  std::optional<AxisList> rows_of(const IndexedValue& x, const char* name) const {
    auto dims = axes_.broadcast(x.dims, editor_.value(match_.at(name)).type.dims);
    if (!dims) return {};
    dims->pop_back();
    return axes_.flat(*dims);
  }

  /// x before its heads were transposed, where the rotation alone reads it: attention reads either order.
  IndexedValue source(const IndexedValue& x, const AxisList& elements) {
    const bool is_alone = !editor_.is_output(x.value) && std::ranges::all_of(editor_.uses(x.value), [&](Use use) {
      return std::ranges::find(match_.nodes, use.node) != match_.nodes.end();
    });
    if (!is_alone) return x;
    IndexedValue from = axes_.source_of_moves(editor_, x);
    const AxisList order = axes_.flat(from.dims), last = axes_.resolve(elements);
    return order.size() >= last.size() && std::equal(last.rbegin(), last.rend(), order.rbegin()) ? from : x;
  }

  /// [rows, D / 2]
  std::optional<ValueId> table(Arranger& arranger, const char* name, const AxisList& rows) {
    const auto half = one_of_each_pair(arranger, editor_, match_.at(name), order_of(spelling_));
    return half ? arranger.reshape(*half, {axes_.extent(rows), editor_.value(*half).type.dims.back()}) : std::nullopt;
  }

  /// The row of the table for each row of x.
  ValueId positions(const AxisList& rows, const AxisList& of_table) {
    const TensorType type{DType::i32, {axes_.extent(rows)}};
    std::vector<std::int32_t> list(static_cast<std::size_t>(type.elements().constant()));
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::int64_t rest = static_cast<std::int64_t>(i), place = 0;
      std::vector<std::int64_t> index(rows.size());
      for (std::size_t a = rows.size(); a-- > 0; rest /= axes_.extent(rows[a]).constant())
        index[a] = rest % axes_.extent(rows[a]).constant();
      for (const Axis axis : of_table)
        place = place * axes_.extent(axis).constant() +
                index[static_cast<std::size_t>(std::ranges::find(rows, axis) - rows.begin())];
      list[i] = static_cast<std::int32_t>(place);
    }
    return editor_.add_constant("positions", TensorData::of(type, list));
  }

  GraphEditor& editor_;
  NodeId anchor_;
  const Match& match_;
  const RotarySpelling& spelling_;
  Axes axes_;
};

}  // namespace

bool raise_rope(const Rule& rule, GraphEditor& editor, NodeId anchor) {
  for (const RotarySpelling& spelling : spellings()) {
    std::optional<Match> found;
    find_matches(spelling.pattern, editor, anchor, [&](const Match& match) {
      if (is_rotation(match, spelling, rule.rounding == RoundingClass::fast)) found = match;
      return found.has_value();
    });
    if (found && Raising(editor, anchor, *found, spelling).run()) return true;
  }
  return false;
}

}  // namespace cermet

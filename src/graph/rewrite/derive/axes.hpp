// What the dimensions of values count: axes that keep their identity through reshapes, transpositions and broadcasts,
// which thereby become index maps.
#pragma once

#include <optional>
#include <vector>

#include "graph/editor.hpp"

namespace cermet {

/// An axis by number; of one derivation.
using Axis = std::int32_t;
using AxisList = std::vector<Axis>;

/// A value with the axes that each of its dimensions counts, the slowest first. A dimension of 1 counts none.
struct IndexedValue {
  ValueId value;
  std::vector<AxisList> dims;
};

/// What gives a value: a node, or a constant's expression.
struct Maker {
  OpKind op{};
  std::vector<ValueId> inputs;
  Attributes attributes;
};
/// The maker of a value that is a first result; nothing for inputs, and for constants that are loaded or data.
std::optional<Maker> maker_of(const GraphEditor& editor, ValueId id);

/// The axes of a derivation. A reshape that cuts through an axis splits it in two everywhere.
class Axes {
 public:
  /// New axes for a dimension: one, or none for 1.
  AxisList fresh(const Dim& extent);
  std::vector<AxisList> fresh(const Dims& extents);
  Dim extent(Axis axis) const { return all_[static_cast<std::size_t>(axis)].extent; }
  Dim extent(const AxisList& list) const;
  /// The list with split axes replaced by their parts.
  AxisList resolve(const AxisList& list) const;
  AxisList flat(const std::vector<AxisList>& dims) const;

  /// The axes of a list in order, grouped to dimensions of these extents; nothing where they cannot be, because an
  /// extent is no product of axes.
  std::optional<std::vector<AxisList>> group(const AxisList& list, const Dims& extents);
  /// Axes of an operand of these dimensions that broadcasts, as NumPy does, to a value with these axes.
  std::optional<std::vector<AxisList>> broadcast(const std::vector<AxisList>& to, const Dims& extents) const;

  /// What a reshape, transpose or expand reads, by the axes of its result; nothing for other nodes.
  std::optional<IndexedValue> before(const GraphEditor& editor, const IndexedValue& result);
  /// The same, also of views of constants.
  std::optional<IndexedValue> before_any(const GraphEditor& editor, const IndexedValue& result);
  /// What a reshape or transpose gives, by the axes of its operand.
  std::optional<IndexedValue> after(const GraphEditor& editor, NodeId view, const IndexedValue& operand);
  /// Follows views back to a value that none makes.
  IndexedValue source(const GraphEditor& editor, IndexedValue value);
  /// The same, but for expansions.
  IndexedValue source_of_moves(const GraphEditor& editor, IndexedValue value);

 private:
  struct Entry {
    Dim extent;
    Axis outer = -1, inner = -1;  ///< its parts, where it was split
  };
  Axis add(const Dim& extent);
  std::optional<IndexedValue> before(const GraphEditor& editor, const IndexedValue& result, const Maker& view);
  std::vector<Entry> all_;
};

/// "permutation" of a transpose, defaults resolved.
Ints permutation_of(const GraphEditor& editor, NodeId transpose);
Ints permutation_of(const GraphEditor& editor, const Maker& transpose);

}  // namespace cermet

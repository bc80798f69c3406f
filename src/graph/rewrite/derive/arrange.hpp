// Nodes that bring a value into the dimensions that a block reads.
#pragma once

#include "graph/rewrite/derive/axes.hpp"

namespace cermet {

/// Inserts nodes in front of a place; what is applied to constants alone becomes a constant.
class Arranger {
 public:
  Arranger(GraphEditor& editor, Axes& axes, NodeId place)
      : editor_(editor), axes_(axes), place_(place), scope_(editor.node(place).scope) {}

  ValueId apply(OpKind op, const std::vector<ValueId>& operands, const Attributes& attributes = {});
  /// The same, or what a node already gives that does the same: layers share it.
  ValueId apply_once(OpKind op, const std::vector<ValueId>& operands, const Attributes& attributes = {});
  /// The value with these dimensions, which have all of its axes: reshaped, transposed and expanded as far as it must
  /// be. Nothing where a size is missing.
  std::optional<ValueId> arrange(const IndexedValue& value, const std::vector<AxisList>& dims);
  /// The value reshaped; nothing where one is 0 or a symbol that does not stay in place.
  std::optional<ValueId> reshape(ValueId id, const Dims& dims);
  /// Takes out what was inserted.
  void undo();

 private:
  Dims extents(const std::vector<AxisList>& dims) const;
  GraphEditor& editor_;
  Axes& axes_;
  NodeId place_;
  std::string scope_;
  std::vector<NodeId> made_;
};

/// Takes out a node that nothing reads any more, and then what only it has read.
void erase_unread(GraphEditor& editor, NodeId n);

/// Whether arrange() moves or repeats elements: more than a reshape.
bool is_copied(const Axes& axes, const IndexedValue& value, const std::vector<AxisList>& dims);

}  // namespace cermet

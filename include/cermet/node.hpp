// What the methods of graph_ops.hpp share: values of graphs.
#ifndef CERMET_NODE_HPP_
#define CERMET_NODE_HPP_

#include <cermet/graph.h>
#include <cermet/short_form.hpp>

namespace cermet {

/// A value of a graph: an input, a constant or a node's result. Belongs to the graph that made it.
class value {
 public:
  value() = default;  ///< an optional operand that is not given
  explicit value(cermet_value id) : id_(id) {}
  explicit operator bool() const { return id_ != CERMET_NO_VALUE; }
  cermet_value id() const { return id_; }

 private:
  cermet_value id_ = CERMET_NO_VALUE;
};

namespace face {

/// Operands of a node, in the schema's order.
struct node_operands {
  std::vector<cermet_value> list;
  void add(cermet::value v) { list.push_back(v.id()); }
  void add(const std::vector<cermet::value>& values) {
    for (const cermet::value& v : values) add(v);
  }
};

/// Result i; none where there are fewer.
inline cermet::value node_result(const std::vector<cermet::value>& results, std::size_t i) {
  return i < results.size() ? results[i] : cermet::value();
}

}  // namespace face
}  // namespace cermet

#endif  // CERMET_NODE_HPP_

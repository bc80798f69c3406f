// Attributes of an operator call: a small sorted list of named values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/tensor_data.hpp"

namespace cermet {

class Graph;

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

/// A graph that an operator runs, such as a branch. graph/text makes it: it alone knows what a graph is.
struct Subgraph {
  std::string text;
  std::shared_ptr<const Graph> graph;  ///< null until graph/text has read the text
  friend bool operator==(const Subgraph& a, const Subgraph& b) { return a.text == b.text; }
};

/// Element types travel as their names ("bf16").
using AttributeValue =
    std::variant<bool, std::int64_t, double, std::string, Ints, Floats, Strings, TensorData, Subgraph>;

/// As the graph's text form spells it: true, 8, 1e-05, "silu", [1, 2], [0.5, 1.0], ["a", "b"], tensor i32[1]
/// 0x07000000, graph "graph g {..}". Empty lists are [], floats[] and strings[].
std::string to_string(const AttributeValue& value);
std::string_view type_name(
    const AttributeValue& value);  ///< "bool", "int", "float", "string", "ints", "floats", "strings", "tensor", "graph"

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> values);

  void set(std::string_view name, AttributeValue value);
  /// The value, or null when the name is absent.
  const AttributeValue* find(std::string_view name) const;
  /// Typed access; asserts that a resolved attribute of that type exists.
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const Ints& integers(std::string_view name) const;
  const Floats& numbers(std::string_view name) const;
  const Strings& texts(std::string_view name) const;
  const TensorData& tensor(std::string_view name) const;
  const Graph& graph(std::string_view name) const;

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::size_t size() const { return values_.size(); }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<std::pair<std::string, AttributeValue>> values_;  ///< sorted by name
};

}  // namespace cermet

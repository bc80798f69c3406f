// The C++ header with a method of graphs for every operator, generated from their schemas.
#pragma once

#include <string>

namespace cermet {

struct OpDefinition;

/// include/cermet/graph_ops.hpp, which graph.hpp includes: the class that graphs are derived from, and the structs that
/// its methods take and give.
std::string cpp_methods_header();
/// One operator's structs, of attributes with optional operands and of results where it has several.
std::string cpp_node_structs(const OpDefinition& op);
/// One operator's method.
std::string cpp_method(const OpDefinition& op);

}  // namespace cermet

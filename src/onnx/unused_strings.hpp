// Constants of strings that no result depends on: exporters leave vocabularies and notes in graphs, and a model runs
// without them.
#pragma once

#include <set>
#include <string>

namespace onnx {
class FunctionProto;
class GraphProto;
}  // namespace onnx

namespace cermet::onnx {

struct UnusedStrings {
  std::set<int> nodes;  ///< Constant nodes of strings, and nodes that read them without a result that matters
  std::set<std::string> initializers;
};

UnusedStrings unused_strings(const ::onnx::GraphProto& graph);
UnusedStrings unused_strings(const ::onnx::FunctionProto& function);

}  // namespace cermet::onnx

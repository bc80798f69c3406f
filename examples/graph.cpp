// A graph of operators: built, compiled once for a range of sizes, and run.
#include <cermet/graph.hpp>
#include <cstdio>

int main() {
  cermet::graph graph("block");
  graph.symbol("T", 1, 512);                                      // a size that runs give
  const auto x = graph.input("x", cermet::dtype::f32, {"T", 4});  // a dimension is a number, a name or an expression
  const auto w = graph.constant("w", cermet::tensor({2, 4}, {1, 0, 0, 0, 0, 1, 1, 1}));
  const auto y = graph.linear(graph.rms_norm(x), w);  // a method for each operator
  graph.output("y", graph.softmax(y));
  std::printf("%s", graph.text().c_str());

  auto session = graph.compile();  // on the CPU; graph("block", handle) for another device
  for (const std::int64_t rows : {1, 2}) {
    const cermet::tensor given({rows, 4}, std::vector<float>(static_cast<std::size_t>(4 * rows), 1.0f));
    const auto results = session(given);  // session.run(inputs, outputs, stream) writes the caller's memory
    std::printf("%s, row 1 of %d: %.3f %.3f\n", session.outputs()[0].name.c_str(),
                static_cast<int>(results[0].shape()[0]), results[0].values()[0], results[0].values()[1]);
  }
}

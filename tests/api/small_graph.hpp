// A small graph for tests of the interface, and what calls refuse.
#pragma once

#include <string>

#include "cermet/graph.hpp"

namespace cermet::test {

using Values = std::vector<float>;

/// The message of the cermet::error that `body` throws.
template <class Body>
std::string refusal_of(Body&& body) {
  try {
    body();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing was thrown";
}
#define EXPECT_SAYS(body, part) \
  EXPECT_NE(refusal_of([&] { body; }).find(part), std::string::npos) << refusal_of([&] { body; })

inline const tensor twice({2, 2}, Values{2, 0, 0, 2});

/// y = relu(x w^T) + x, and the product.
inline graph small_graph(const handle& on = default_handle()) {
  graph made("small", on);
  made.symbol("T", 1, 8);
  const value x = made.input("x", dtype::f32, {"T", 2}), w = made.constant("w", twice);
  const value product = made.linear(x, w);
  made.output("y", made.add(made.relu(product), x));
  made.output("product", product);
  return made;
}

}  // namespace cermet::test

// Mistakes in the variables of the environment.
#pragma once

#include <string>
#include <vector>

namespace cermet::env {

/// Throws Error naming the variable where one of those that take words or numbers has another value.
void check();
/// A sentence about each variable of the environment that is named as if it were Cermet's and is not: a mistyped name
/// changes nothing.
std::vector<std::string> unknown();

}  // namespace cermet::env

// The C++ header with a function for every operator, generated from their schemas.
#pragma once

#include <string>

namespace cermet {

struct OpDefinition;

/// include/cermet/ops.hpp: needs get_op.hpp alone. The build writes it, and it is installed.
std::string cpp_functions_header();
/// One operator's part: a struct of its attributes and optional operands, one of its results where it has several, and
/// the function.
std::string cpp_function(const OpDefinition& op);

}  // namespace cermet

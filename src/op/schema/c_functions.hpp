// The C header with typed creation of every operator.
#pragma once

#include <string>

#include "op/schema/operator.hpp"

namespace cermet {

/// cermet_NAME_args, cermet_NAME_defaults() and cermet_NAME_create() of one operator.
std::string c_function(const OpDefinition& op);
/// All of cermet/ops.h.
std::string c_functions_header();

}  // namespace cermet

// What a C handle owns: a device and the threads that its operators run on.
#pragma once

#include <dlpack/dlpack.h>

#include <memory>
#include <string>

#include "api/recipe.hpp"
#include "cermet/cermet.h"
#include "runtime/context.hpp"

namespace cermet::api {

struct Handle {
  Context context;
  std::string device_name;
  DLDevice memory;  ///< where operands are: the host, or a GPU, which "null:sm_90" stands for too
  RecipeStore recipes;
  Handle(std::string_view spec, int threads);
};

}  // namespace cermet::api

/// Operators, weights and models hold what it shares too, so that they outlive the handle.
struct cermet_handle {
  std::shared_ptr<cermet::api::Handle> shared;
};

// What a Python model holds.
#pragma once

#include <mutex>

#include "python.hpp"

namespace cermet::python {

struct Model {
  static constexpr const char* python_name = "Model";
  static constexpr const char* what = "model";
  cermet_model* model = nullptr;
  std::mutex mutex;  ///< a model is used by one thread at a time

  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() { cermet_model_destroy(model); }
};

}  // namespace cermet::python

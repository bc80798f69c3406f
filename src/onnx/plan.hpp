// A model that was imported for sizes which are known or in ranges, with copies of its weights and of the kernels that
// a GPU runs: a folder that stands alone.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fuse/mode.hpp"
#include "onnx/importer.hpp"
#include "runtime/context.hpp"

namespace cermet::onnx {

struct Plan {
  std::shared_ptr<const Model> model;    ///< its inputs and results; no nodes
  std::map<std::string, DimRange> dims;  ///< of every size that the file leaves open
  Part part;                             ///< its graph, and slots for inputs, results and what they are made of
  FusionMode mode = FusionMode::full;    ///< how much is fused where it is loaded
  std::vector<Tensor> weights;           ///< what the graph's constants are loaded from, by its names of them
};

/// Imports a model for these sizes and writes the folder, with the kernels for the context's device. Throws Error
/// naming a dimension whose size is not given, and Error(unsupported) where elements must be read before all of the
/// model is known, or a range does not do; where the folder is there and not empty, too.
void write_plan(const std::shared_ptr<const Model>& model, const std::map<std::string, DimRange>& dims,
                Context& context, const std::filesystem::path& folder, FusionMode mode = FusionMode::full);

/// Whether a folder is meant to be a plan.
bool is_plan(const std::filesystem::path& folder);
/// Reads and checks a folder, and has its kernels found from now on. Throws Error(invalid_file) naming the file that is
/// cut, changed or of another version, and Error(unsupported) where it was made for another kind of device.
std::shared_ptr<const Plan> read_plan(const std::filesystem::path& folder, const Context& context);

}  // namespace cermet::onnx

// Weights by name that sessions of the C interface share.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/graph.hpp"
#include "runtime/weights.hpp"

namespace cermet::api {

class SharedWeights {
 public:
  explicit SharedWeights(std::shared_ptr<Handle> handle);
  SharedWeights(const SharedWeights&) = delete;  // the store refers to it
  SharedWeights& operator=(const SharedWeights&) = delete;

  /// Adds a tensor, or puts it in the place of the one of this name, whose type it has.
  void set(const char* name, const char* dtype, const DLTensor& tensor);
  /// Adds those values of a graph's constants that it lacks. Throws Error naming a constant that has none, or has
  /// another type.
  void take_constants(const GraphBuilder& from);
  WeightStore& store() { return store_; }
  std::size_t bytes() const { return static_cast<std::size_t>(store_.bytes()); }

 private:
  const ConstantMemory& memory_of(const std::string& name) const;
  TensorView borrowed(const std::string& name) const;

  std::shared_ptr<Handle> handle_;
  Context context_;  ///< a stream of its own
  std::map<std::string, ConstantMemory, std::less<>> tensors_;
  WeightStore store_;
};

}  // namespace cermet::api

struct cermet_weights {
  std::shared_ptr<cermet::api::SharedWeights> weights;
};

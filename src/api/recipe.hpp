// How an operator runs calls of a given key: its problem, with the dimensions that vary, and the kernel that was
// chosen. Made once and shared.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/call_key.hpp"
#include "api/call_problem.hpp"
#include "select/select.hpp"

namespace cermet::api {

/// What stays the same for all calls of a callable.
struct CallRequest {
  const OpDefinition* op = nullptr;
  Attributes attributes;
  std::vector<std::optional<DType>> dtypes;  ///< by input, where the caller names one; may be shorter than the inputs
  std::vector<std::optional<TensorType>> constants;  ///< types of those inputs that are constant
  std::uint64_t constant_inputs = 0;                 ///< bit i: input i is
  std::string kernel, config;                        ///< empty: chosen
  friend bool operator==(const CallRequest&, const CallRequest&) = default;

  std::string to_string() const;
};

/// The element type of an input. Bytes (kDLUInt, 8 bits) are what the operand takes: u8, else bool. Throws Error naming
/// the input where its type does not say it.
DType element_type(const CallRequest& request, std::size_t i, const DLTensor& tensor);

/// Where calls run, as far as choices depend on it.
struct Machine {
  const Target* target = nullptr;
  int threads = 0;
  const Tuning* tuning = nullptr;  ///< where measured choices are; null: the process's
};

struct Recipe {
  Problem problem;
  Choice choice;
  std::vector<Range> ranges;  ///< one for each row axis that is open
  CallKey key;
};

/// Infers and selects. Leaves as many of the row axes open as do not change kernel, configuration and programs,
/// compared at the ends of the ranges, so that the recipe depends on the key alone; or as a choice was measured for. A
/// size that was measured on its own is left out of its range, and has a recipe of its own. Throws Error naming
/// operand, attribute, kernel or, where none fits, every reason.
std::shared_ptr<const Recipe> make_recipe(const CallRequest& request, const CallShape& shape, const Machine& machine);

/// The recipes of a handle. Thread-safe.
class RecipeStore {
 public:
  /// Makes it where there is none.
  std::shared_ptr<const Recipe> get(const CallRequest& request, const CallShape& shape, const Machine& machine);

 private:
  struct Requested {
    CallRequest request;
    CallTable<std::shared_ptr<const Recipe>> recipes;
  };
  CallTable<std::shared_ptr<const Recipe>>& recipes_of(const CallRequest& request);

  std::mutex mutex_;
  std::unordered_multimap<std::string, Requested> requested_;  ///< by their texts
  std::size_t count_ = 0;
};

}  // namespace cermet::api

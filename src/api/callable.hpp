// An operator by name behind the C ABI: the operators that it has bound so far, by the key of the calls that they take.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/op.hpp"
#include "api/recipe.hpp"
#include "api/transposed.hpp"

namespace cermet::api {

class Callable {
 public:
  /// Binds what calls like the samples need. Throws Error naming operand, attribute, kernel or, where none fits, every
  /// reason.
  Callable(std::shared_ptr<Handle> handle, std::string_view name, std::span<const DLTensor* const> samples,
           std::span<const cermet_attribute> attributes, const cermet_get_op_options& options);

  /// A call's operator and its tensors in the form that the operator takes, valid until the next call.
  struct Taken {
    Operator& op;
    std::span<const DLTensor* const> inputs;
  };
  /// As call() will find it. Binds where there is none. Operands of products that lie transposed are taken so.
  Taken take(std::span<const DLTensor* const> inputs);
  void call(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* stream) {
    const Taken taken = take(inputs);
    taken.op.run(taken.inputs, outputs, memory_, stream);
  }
  /// Of the last call, or of the samples.
  const Operator& last() const { return last_->value->op; }
  std::size_t bound_count() const;

 private:
  struct Bound {
    Operator op;
    std::uint64_t used = 0;  ///< number of the call that used it last
    Bound(const std::shared_ptr<Handle>& handle, const Recipe& recipe)
        : op(handle, recipe.problem, recipe.choice, recipe.ranges) {}
  };
  using Entry = CallTable<std::unique_ptr<Bound>>::Entry;
  void take_dtypes(std::span<const DLTensor* const> samples, const cermet_get_op_options& options);
  void take_constant(std::size_t input, const DLTensor* sample, cermet_weight* shared);
  std::shared_ptr<Weight> weight_of(std::size_t input, const DLTensor* sample) const;
  /// What was bound for calls with the same operands transposed.
  struct Variant {
    CallRequest request;
    CallTable<std::unique_ptr<Bound>> bound;
  };
  Variant& variant(std::uint64_t transposed);
  Entry& bind(Variant& variant, const CallShape& shape);
  Operator& operator_for(Variant& variant, std::span<const DLTensor* const> inputs);
  Taken take_transposed(std::span<const DLTensor* const> inputs, std::uint64_t transposed);

  std::shared_ptr<Handle> handle_;
  TransposedTensors transposed_;
  std::map<std::uint64_t, Variant> variants_;     ///< by the bits of operands that lie transposed
  Variant* plain_ = nullptr;                      ///< of none
  std::vector<std::shared_ptr<Weight>> weights_;  ///< by input; null for those that are not constant
  Entry* last_ = nullptr;
  const Variant* last_variant_ = nullptr;
  std::uint64_t calls_ = 0;
  RunMemory memory_;
};

}  // namespace cermet::api

struct cermet_callable {
  cermet::api::Callable callable;
  mutable std::string config_text;  ///< what cermet_callable_config() returned last
};

// An operator behind the C ABI: bound to its kernels, with everything that a run needs allocated beforehand.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/call_problem.hpp"
#include "api/dlpack.hpp"
#include "api/handle.hpp"
#include "api/plain_tensor.hpp"
#include "api/run_memory.hpp"
#include "api/transposed.hpp"
#include "api/weight.hpp"
#include "select/bound_op.hpp"

namespace cermet::api {

class Operator {
 public:
  /// Validates, infers and selects. Throws Error naming operand, attribute or, where no kernel fits, every reason.
  Operator(std::shared_ptr<Handle> handle, std::string_view name, std::span<const cermet_descriptor> inputs,
           std::span<const cermet_attribute> attributes, std::span<const cermet_range> ranges);
  /// A problem, whose symbols are `ranges`, with its kernel.
  Operator(std::shared_ptr<Handle> handle, Problem problem, Choice choice, std::vector<Range> ranges);

  /// With every range at its maximum.
  const Problem& problem() const { return variants_.back().bound.problem(); }
  const Kernel& kernel() const { return variants_.back().bound.kernel(); }
  const Config& config() const { return variants_.back().bound.config(); }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Result i, at the ranges' maxima, as a descriptor whose pointers live as long as this object.
  cermet_descriptor output(std::size_t i) const;
  /// Shape of result i for inputs of these shapes.
  Shape output_shape(std::size_t i, std::span<const DLTensor* const> inputs) const;
  /// The same for a run that is about to come, which then finds it worked out.
  const Shape& next_output_shape(std::size_t i, std::span<const DLTensor* const> inputs);
  /// Input whose memory result i shares, or -1.
  int alias(std::size_t i) const;

  void set_constant(std::size_t input, const DLTensor& tensor);
  void set_weight(std::size_t input, std::shared_ptr<Weight> weight);
  /// With the caller's workspace, or, where it is null, the operator's own.
  void run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* workspace,
           std::size_t workspace_size, void* stream);
  /// The same on addresses of first elements, where no size is a range.
  void run_pointers(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace,
                    std::size_t workspace_size, void* stream);
  /// With scratch memory that operators share.
  void run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, RunMemory& memory,
           void* stream);

 private:
  /// The operator bound for values of the first range up to a limit: kernels for few rows differ from those for many.
  struct Variant {
    std::int64_t most;
    BoundOp bound;
    std::vector<TensorView> constants;  ///< by input, in the kernel's layout
  };
  /// An operand or a result: what it must be for the sizes of the run, and what it is in it.
  struct Operand {
    PlainTensor plain;
    bool is_plain = false;  ///< the run's view is plain.view but for its address
    ByteRange range{};      ///< of the run
  };
  void add_variant(Problem problem, Choice choice, std::int64_t most);
  void finish();
  void take_strides(std::span<const cermet_descriptor> inputs);
  std::span<const DLTensor* const> as_created(std::span<const DLTensor* const> inputs) const;
  Expectation expect_input(std::size_t i) const;
  Expectation expect_output(std::size_t i) const;
  void require_constant(std::size_t input) const;
  std::int64_t size_of_range(const Range& range, std::span<const DLTensor* const> inputs) const;
  void check_outputs(const SymbolValues& symbols) const;
  void take_sizes(std::span<const DLTensor* const> inputs);
  template <class Expect>
  void take(const DLTensor& tensor, Operand& operand, TensorView& view, Expect&& expect);
  void take_input(std::size_t i, const DLTensor* tensor);
  void take_output(std::size_t i, const DLTensor* tensor);
  void check(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, const void* stream);
  void check_sharing(std::size_t output) const;
  void check_workspace(const void* workspace, std::size_t size) const;
  bool may_coincide(std::size_t output, std::size_t input) const;
  void launch(std::byte* workspace, RunMemory& memory, void* stream);
  void make_pointed();
  Variant& variant();

  std::shared_ptr<Handle> handle_;
  std::vector<Range> ranges_;
  std::vector<Variant> variants_;                 ///< fewest rows first
  std::vector<std::shared_ptr<Weight>> weights_;  ///< per input
  std::vector<std::optional<Shape>> strides_;     ///< per input: the strides of its descriptor
  std::vector<Shape> output_shapes_;
  std::int64_t workspace_bytes_ = 0;
  RunMemory memory_;
  int dense_dims_ = 1;
  bool is_elementwise_ = false;  ///< every operand One-to-One

  std::vector<std::int64_t> sizes_;  ///< of the ranges, in the last run
  bool is_sized_ = false;            ///< `symbols_` and what operands must be are for `sizes_`
  bool has_work_ = true;             ///< some result has elements
  SymbolValues symbols_;
  std::vector<Operand> operands_, results_;
  mutable TransposedTensors transposed_;      ///< holds what a call's tensors become
  std::uint64_t transposed_inputs_ = 0;       ///< bits of operands whose descriptors were transposed
  std::vector<TensorView> inputs_, outputs_;  ///< of the run

  /// Operands of run_pointers, but for their addresses: made by its first call.
  struct Pointed {
    std::vector<std::vector<std::int64_t>> shapes, strides;
    std::vector<DLTensor> tensors;  ///< inputs, then results
    std::vector<const DLTensor*> inputs;
    std::vector<DLTensor*> outputs;
  };
  std::optional<Pointed> pointed_;
};

}  // namespace cermet::api

struct cermet_op {
  cermet::api::Operator op;
};

// An operator behind the C ABI: bound to its kernels, with everything that a run needs allocated beforehand.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/dlpack.hpp"
#include "api/handle.hpp"
#include "api/problem.hpp"
#include "api/weight.hpp"
#include "select/bound_op.hpp"

namespace cermet::api {

class Operator {
 public:
  /// Validates, infers and selects. Throws Error naming operand, attribute or, where no kernel fits, every reason.
  Operator(std::shared_ptr<Handle> handle, std::string_view name, std::span<const cermet_descriptor> inputs, std::span<const cermet_attribute> attributes,
           std::span<const cermet_range> ranges);

  /// With every range at its maximum.
  const Problem& problem() const { return variants_.back().bound.problem(); }
  const Kernel& kernel() const { return variants_.back().bound.kernel(); }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Result i, at the ranges' maxima, as a descriptor whose pointers live as long as this object.
  cermet_descriptor output(std::size_t i) const;
  /// Shape of result i for inputs of these shapes.
  Shape output_shape(std::size_t i, std::span<const DLTensor* const> inputs) const;
  /// Input whose memory result i shares, or -1.
  int alias(std::size_t i) const;

  void set_constant(std::size_t input, const DLTensor& tensor);
  void set_weight(std::size_t input, std::shared_ptr<Weight> weight);
  void run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* workspace, std::size_t workspace_size, void* stream);

 private:
  /// The operator bound for values of the first range up to a limit: kernels for few rows differ from those for many.
  struct Variant {
    std::int64_t most;
    BoundOp bound;
    std::vector<TensorView> constants;  ///< by input, in the kernel's layout
  };
  void add_variant(const Problem& problem, std::int64_t most);
  void take_strides(std::span<const cermet_descriptor> inputs);
  Expectation expect_input(std::size_t i) const;
  Expectation expect_output(std::size_t i) const;
  void require_constant(std::size_t input) const;
  SymbolValues symbols_of(std::span<const DLTensor* const> inputs) const;
  void take_inputs(std::span<const DLTensor* const> inputs);
  void take_outputs(std::span<DLTensor* const> outputs);
  void check_sharing(std::size_t output) const;
  void check_workspace(const void* workspace, std::size_t size) const;
  bool may_coincide(std::size_t output, std::size_t input) const;
  Variant& variant();
  Stream* stream_for(void* stream);
  std::byte* own_workspace(Stream* stream);

  std::shared_ptr<Handle> handle_;
  std::vector<Range> ranges_;
  std::vector<Variant> variants_;                 ///< fewest rows first
  std::vector<std::shared_ptr<Weight>> weights_;  ///< per input
  std::vector<std::optional<Shape>> strides_;     ///< per input: the strides of its descriptor
  std::vector<Shape> output_shapes_;
  std::int64_t workspace_bytes_ = 0;
  AlignedBuffer host_workspace_;
  DeviceBuffer device_workspace_;
  void* native_stream_ = nullptr;  ///< the caller's stream that `stream_` stands for
  std::unique_ptr<Stream> stream_;
  SymbolValues symbols_;                      ///< of the current run
  std::vector<TensorView> inputs_, outputs_;  ///< of the current run
  int dense_dims_ = 1;
  bool is_elementwise_ = false;  ///< every operand One-to-One
};

}  // namespace cermet::api

struct cermet_op {
  cermet::api::Operator op;
};

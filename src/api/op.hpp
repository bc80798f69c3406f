// An operator behind the C ABI: bound to its kernel, with everything that a run needs allocated beforehand.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/dlpack.hpp"
#include "api/handle.hpp"
#include "base/buffer.hpp"
#include "select/bound_op.hpp"

namespace cermet::api {

class Operator {
 public:
  /// Validates, infers and selects. Throws Error naming operand, attribute or, where no kernel fits, every reason.
  Operator(std::shared_ptr<Context> context, std::string_view name, std::span<const cermet_descriptor> inputs, std::span<const cermet_attribute> attributes);

  const Problem& problem() const { return bound_->problem(); }
  const Kernel& kernel() const { return bound_->kernel(); }
  std::int64_t workspace_bytes() const { return bound_->workspace_bytes(); }
  /// Result i as a descriptor whose pointers live as long as this object.
  cermet_descriptor output(std::size_t i) const;
  /// Input whose memory result i shares, or -1.
  int alias(std::size_t i) const;

  void set_constant(std::size_t input, const DLTensor& tensor);
  void run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* workspace, std::size_t workspace_bytes, void* stream);

 private:
  Expectation expect_input(std::size_t i) const;
  Expectation expect_output(std::size_t i) const;
  int device_type() const { return context_->device->kind() == DeviceKind::cuda ? kDLCUDA : kDLCPU; }
  void run_on_device(std::byte* workspace, void* stream);
  void take_inputs(std::span<const DLTensor* const> inputs);
  void take_outputs(std::span<DLTensor* const> outputs);
  void check_sharing(std::size_t output) const;
  bool may_coincide(std::size_t output, std::size_t input) const;

  std::shared_ptr<Context> context_;
  std::optional<BoundOp> bound_;
  std::vector<std::optional<Shape>> strides_;  ///< per input: what its descriptor asked for
  std::vector<Shape> output_shapes_;
  std::vector<OwnedTensor> constants_;  ///< dense copies of those that the kernel does not pack
  std::vector<DeviceBuffer> device_constants_;
  void* native_stream_ = nullptr;  ///< the caller's stream that `stream_` stands for
  std::unique_ptr<Stream> stream_;
  std::vector<TensorView> inputs_, outputs_;  ///< of the current run; constants stay
  int dense_dims_ = 1;
  bool is_elementwise_ = false;  ///< every operand One-to-One
};

}  // namespace cermet::api

struct cermet_op {
  cermet::api::Operator op;
};

// Runs of an operator: the caller's tensors are checked and become the kernel's operands. Compiled for speed: this is
// what every call costs.
#include <algorithm>

#include "api/guard.hpp"
#include "api/op.hpp"
#include "api/overlap.hpp"
#include "op/schema/operator.hpp"

namespace cermet::api {
namespace {

/// "rms_norm: input 0 (x)".
std::string input_text(const Problem& p, std::size_t i) {
  return fmt::format("{}: input {} ({})", p.op->name, i, spec_name(definition(p).inputs, i));
}
std::string output_text(const Problem& p, std::size_t i) {
  return fmt::format("{}: output {} ({})", p.op->name, i, spec_name(definition(p).outputs, i));
}

/// The last size of an operand in memory, where it is a number.
std::optional<std::int64_t> last_size(const Problem& p, std::size_t i) {
  if (!p.has(i) || p.input(i).rank() == 0 || !p.input(i).dims.back().is_constant()) return std::nullopt;
  return p.input(i).dims.back().constant();
}

[[noreturn]] void refuse(const std::string& what, std::string_view expected, std::string_view found) {
  fail(Status::invalid_argument, "{}: expected {}, found {}", what, expected, found);
}

}  // namespace

/// What an operand's shape says about a range. Every operand is checked against it later, so that it names the one that
/// does not agree.
std::int64_t Operator::size_of_range(const Range& range, std::span<const DLTensor* const> inputs) const {
  const Problem& p = problem();
  const DLTensor* const tensor = range.input < inputs.size() ? inputs[range.input] : nullptr;
  const TensorType& type = p.input(range.input);
  if (!tensor) refuse(input_text(p, range.input), "a tensor", "none");
  if (tensor->ndim != type.rank() || !tensor->shape)
    refuse(input_text(p, range.input), type.to_string(), fmt::format("{} dimensions", tensor->ndim));
  const std::int64_t value = tensor->shape[range.axis];
  if (value < 0 || value > range.maximum)
    refuse(input_text(p, range.input),
           fmt::format("{} of {} from 0 to {}", range.letter, type.to_string(), range.maximum), std::to_string(value));
  return value;
}

void Operator::check_outputs(const SymbolValues& symbols) const {
  const Problem& p = problem();
  for (std::size_t i = 0; i < p.outputs.size(); ++i)
    for (const Dim& d : p.outputs[i].dims)
      if (d.value(symbols) < 0)
        refuse(output_text(p, i), fmt::format("operands that give {} no negative dimension", p.outputs[i].to_string()),
               std::to_string(d.value(symbols)));
}

/// Operands that come transposed as the kernels read them: where the descriptor did, or, of operands whose strides
/// alone say it, where the tensor does.
std::span<const DLTensor* const> Operator::as_created(std::span<const DLTensor* const> inputs) const {
  if (transposed_.operands().empty()) return inputs;
  const Problem& p = problem();
  std::uint64_t bits = transposed_inputs_;
  for (const TransposedOperand& operand : transposed_.operands()) {
    const std::size_t i = operand.input;
    const DLTensor* const t = i < inputs.size() ? inputs[i] : nullptr;
    if (!t || t->ndim < 2 || t->ndim > Shape::max_rank || !t->shape) bits &= ~(std::uint64_t{1} << i);
    else if (operand.attribute.empty() &&
             !lies_transposed({t->shape, static_cast<std::size_t>(t->ndim)}, t->strides, last_size(p, i)))
      bits &= ~(std::uint64_t{1} << i);
    else if (operand.attribute.empty()) bits |= std::uint64_t{1} << i;
  }
  return transposed_.swapped(inputs, bits);
}

Shape Operator::output_shape(std::size_t i, std::span<const DLTensor* const> inputs) const {
  inputs = as_created(inputs);
  SymbolValues symbols;
  for (const Range& range : ranges_) symbols.set(range.symbol, size_of_range(range, inputs));
  if (!ranges_.empty()) check_outputs(symbols);
  return cermet::bind(problem().outputs[i].dims, symbols);
}

const Shape& Operator::next_output_shape(std::size_t i, std::span<const DLTensor* const> inputs) {
  take_sizes(as_created(inputs));
  return results_[i].plain.view.shape;
}

/// Works out what operands must be, where a size is not that of the last run.
void Operator::take_sizes(std::span<const DLTensor* const> inputs) {
  bool known = is_sized_;
  for (std::size_t r = 0; r < ranges_.size(); ++r) {
    const std::int64_t size = size_of_range(ranges_[r], inputs);
    known = known && size == sizes_[r];
    is_sized_ = known;
    sizes_[r] = size;
  }
  if (known) return;
  const Problem& p = problem();
  for (std::size_t r = 0; r < ranges_.size(); ++r) symbols_.set(ranges_[r].symbol, sizes_[r]);
  if (!ranges_.empty()) check_outputs(symbols_);
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].is_plain = false;
    if (!p.has(i) || p.is_constant(i)) continue;
    const Shape shape = cermet::bind(p.input(i).dims, symbols_);
    operands_[i].plain = PlainTensor(p.input(i).dtype, shape);
    if (strides_[i] && !(*strides_[i] == dense_strides(shape))) operands_[i].plain.bytes = 0;
  }
  has_work_ = false;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    results_[i].is_plain = false;
    results_[i].plain = PlainTensor(p.outputs[i].dtype, cermet::bind(p.outputs[i].dims, symbols_));
    has_work_ = has_work_ || results_[i].plain.bytes > 0;
  }
  is_sized_ = true;
}

/// The tensor as the view of a run. `expect` says all that it must be, where it is not the usual case.
template <class Expect>
void Operator::take(const DLTensor& tensor, Operand& operand, TensorView& view, Expect&& expect) {
  if (!operand.plain.matches(tensor, handle_->memory)) {
    operand.is_plain = false;
    view = checked_view(tensor, expect());
    operand.range = range_of(view);
    return;
  }
  if (!operand.is_plain) view = operand.plain.view;
  operand.is_plain = true;
  view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  operand.range = {view.as<const std::byte>(), view.as<const std::byte>() + operand.plain.bytes};
}

void Operator::take_input(std::size_t i, const DLTensor* tensor) {
  const Problem& p = problem();
  if (p.has(i) && p.is_constant(i)) {
    if (tensor) refuse(input_text(p, i), "no tensor for a constant", "one");
    inputs_[i] = variant().constants[i];
    if (!inputs_[i].present) refuse(input_text(p, i), "the constant to be set before the first run", "none");
    return;
  }
  if (!p.has(i)) {
    if (tensor) refuse(input_text(p, i), "no tensor, as at creation", "one");
    inputs_[i] = TensorView();
    return;
  }
  if (!tensor) refuse(input_text(p, i), "a tensor", "none");
  take(*tensor, operands_[i], inputs_[i], [&] { return expect_input(i); });
}

void Operator::take_output(std::size_t i, const DLTensor* tensor) {
  if (!tensor) refuse(output_text(problem(), i), "a tensor", "none");
  take(*tensor, results_[i], outputs_[i], [&] { return expect_output(i); });
}

bool Operator::may_coincide(std::size_t output, std::size_t input) const {
  const auto& in_place = definition(problem()).in_place;
  return alias(output) == static_cast<int>(input) || is_elementwise_ ||
         (output < in_place.size() && in_place[output] == static_cast<int>(input));
}

void Operator::check_sharing(std::size_t output) const {
  const Problem& p = problem();
  const ByteRange range = results_[output].range;
  for (std::size_t other = 0; other < output; ++other)
    if (range.overlaps(results_[other].range) && share_memory(outputs_[output], outputs_[other]))
      refuse(output_text(p, output), "memory of its own", fmt::format("that of output {}", other));
  const int shared = alias(output);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].present || p.is_constant(i)) continue;
    const bool overlaps = range.overlaps(operands_[i].range), is_shared = shared == static_cast<int>(i);
    if (!overlaps && !is_shared) continue;
    const bool same = coincide(outputs_[output], inputs_[i]);
    const auto input = [&] { return fmt::format("input {} ({})", i, spec_name(definition(p).inputs, i)); };
    if (is_shared && !same) refuse(output_text(p, output), "the memory of " + input(), "another");
    const bool may_share = same ? may_coincide(output, i) : !overlaps || !share_memory(outputs_[output], inputs_[i]);
    if (!may_share) refuse(output_text(p, output), "memory of its own", "that of " + input());
  }
}

void Operator::check_workspace(const void* workspace, std::size_t size) const {
  const std::string_view name = problem().op->name;
  if (!workspace) return require(size == 0, "{}: workspace: expected size 0 with NULL, found {}", name, size);
  require(size >= static_cast<std::size_t>(workspace_bytes_), "{}: workspace: expected at least {} bytes, found {}",
          name, workspace_bytes_, size);
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  require(address % AlignedBuffer::alignment == 0,
          "{}: workspace: expected an address aligned to {} bytes, found {:#x}", name, AlignedBuffer::alignment,
          address);
}

/// Takes the tensors of a run; throws Error where one is not what it must be.
void Operator::check(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, const void* stream) {
  const std::string_view name = problem().op->name;
  if (stream && !handle_->context.stream())
    fail(Status::invalid_argument, "{}: stream: expected none on {}, found one", name, handle_->context.device_spec());
  require(inputs.size() <= inputs_.size(), "{}: expected at most {} inputs, found {}", name, inputs_.size(),
          inputs.size());
  inputs = as_created(inputs);
  take_sizes(inputs);
  for (std::size_t i = 0; i < inputs_.size(); ++i) take_input(i, i < inputs.size() ? inputs[i] : nullptr);
  require(outputs.size() == outputs_.size(), "{}: expected {} outputs, found {}", name, outputs_.size(),
          outputs.size());
  for (std::size_t i = 0; i < outputs_.size(); ++i) take_output(i, outputs[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i) check_sharing(i);
}

/// The one for the fewest rows that still takes this run's.
Operator::Variant& Operator::variant() {
  const std::int64_t rows = ranges_.empty() ? 0 : sizes_.front();
  return *std::find_if(variants_.begin(), variants_.end() - 1, [&](const Variant& v) { return rows <= v.most; });
}

void Operator::launch(std::byte* workspace, RunMemory& memory, void* stream) {
  if (!handle_->context.computes() || (!has_work_ && !ranges_.empty())) return;
  Stream* const used = memory.stream(handle_->context, stream);
  if (!workspace) workspace = memory.scratch(handle_->context, workspace_bytes_, used);
  variant().bound.run(inputs_, outputs_, workspace, used);
  if (used && !stream) used->synchronize();
}

void Operator::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* workspace,
                   std::size_t workspace_size, void* stream) {
  check(inputs, outputs, stream);
  check_workspace(workspace, workspace_size);
  launch(static_cast<std::byte*>(workspace), memory_, stream);
}

void Operator::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, RunMemory& memory,
                   void* stream) {
  check(inputs, outputs, stream);
  launch(nullptr, memory, stream);
}

}  // namespace cermet::api

#include "api/op.hpp"

#include <algorithm>
#include <deque>

#include "api/guard.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "select/select.hpp"

namespace cermet::api {
namespace {

/// Values of the first range for which kernels are selected separately: one row, and few enough rows to be bound by
/// reading weights.
constexpr std::int64_t few_rows[] = {1, 32};

/// Descriptors with those of operands swapped that lie transposed.
struct SwappedDescriptors {
  std::vector<cermet_descriptor> list;
  std::uint64_t bits = 0;

  SwappedDescriptors(const TransposedTensors& operands, std::span<const cermet_descriptor> given)
      : list(given.begin(), given.end()) {
    for (const TransposedOperand& operand : operands.operands()) {
      if (operand.input >= list.size() || !list[operand.input].dtype || !list[operand.input].shape) continue;
      cermet_descriptor& d = list[operand.input];
      if (d.ndim < 2 || d.ndim > Shape::max_rank) continue;
      const auto rank = static_cast<std::size_t>(d.ndim);
      std::optional<std::int64_t> length;
      if (operand.attribute.empty() && list[0].dtype && list[0].shape && list[0].ndim > 0)
        length = list[0].shape[list[0].ndim - 1];
      if (!lies_transposed({d.shape, rank}, d.strides, length)) continue;
      bits |= std::uint64_t{1} << operand.input;
      for (const std::int64_t** field : {&d.shape, &d.strides}) {
        if (!*field) continue;
        auto& copy = copies_.emplace_back(*field, *field + rank);
        std::swap(copy[rank - 1], copy[rank - 2]);
        *field = copy.data();
      }
    }
  }

 private:
  std::deque<std::vector<std::int64_t>> copies_;
};

}  // namespace

Operator::Operator(std::shared_ptr<Handle> handle, std::string_view name, std::span<const cermet_descriptor> inputs,
                   std::span<const cermet_attribute> attributes, std::span<const cermet_range> ranges)
    : handle_(std::move(handle)), ranges_(ranges_of(ranges, name)), transposed_(operator_named(name)) {
  const OpDefinition& op = operator_named(name);
  check_input_count(op, inputs.size());  // before a descriptor beyond the last is read
  const SwappedDescriptors given(transposed_, inputs);
  transposed_inputs_ = given.bits;
  Problem made = [&] {
    try {
      return problem_of(name, given.list, transposed_.attributes(attributes_of(attributes, op), given.bits), ranges_);
    } catch (const Error&) {
      if (given.bits != 0)
        problem_of(name, inputs, attributes_of(attributes, op),
                   ranges_);  // says it of the descriptors as they were given
      throw;
    }
  }();
  made.target = handle_->context.target();
  const auto add = [&](std::int64_t most) {
    Problem sized = made;
    if (!ranges_.empty()) sized.maximum.set(ranges_.front().symbol, most);
    Choice choice = select_kernel(sized, {.threads = handle_->context.pool().size()});
    add_variant(std::move(sized), std::move(choice), most);
  };
  const std::int64_t most = ranges_.empty() ? 0 : ranges_.front().maximum;
  for (const std::int64_t few : few_rows)
    if (few < most) add(few);
  add(most);
  finish();
  take_strides(given.list);
}

Operator::Operator(std::shared_ptr<Handle> handle, Problem problem, Choice choice, std::vector<Range> ranges)
    : handle_(std::move(handle)), ranges_(std::move(ranges)), transposed_(definition(problem)) {
  add_variant(std::move(problem), std::move(choice), ranges_.empty() ? 0 : ranges_.front().maximum);
  finish();
}

void Operator::add_variant(Problem problem, Choice choice, std::int64_t most) {
  const std::size_t inputs = problem.inputs.size();
  variants_.push_back(
      {most, BoundOp(std::move(problem), std::move(choice), handle_->context.pool(), handle_->context.queue()),
       std::vector<TensorView>(inputs)});
  workspace_bytes_ = std::max(workspace_bytes_, variants_.back().bound.workspace_bytes());
}

/// What the problem says, for runs.
void Operator::finish() {
  const Problem& p = problem();
  dense_dims_ = dense_dims_of(p);
  is_elementwise_ = definition(p).in_place.empty() &&
                    std::all_of(definition(p).inputs.begin(), definition(p).inputs.end(),
                                [](const OperandSpec& s) { return s.mapping == Mapping::one_to_one; });
  weights_.resize(p.inputs.size());
  strides_.resize(p.inputs.size());
  inputs_.resize(p.inputs.size());
  operands_.resize(p.inputs.size());
  outputs_.resize(p.outputs.size());
  results_.resize(p.outputs.size());
  sizes_.resize(ranges_.size());
  for (const TensorType& type : p.outputs) output_shapes_.push_back(cermet::bind(type.dims, p.maximum));
}

void Operator::take_strides(std::span<const cermet_descriptor> inputs) {
  const Problem& p = problem();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!p.has(i) || !inputs[i].strides) continue;
    const Shape shape = cermet::bind(p.input(i).dims, p.maximum);
    Shape strides = shape;
    std::copy_n(inputs[i].strides, shape.rank(), &strides[0]);
    const std::string_view fault = stride_fault(shape, strides, reads_any_strides(p, i) ? 0 : dense_dims_, false);
    require(fault.empty(), "{}: input {} ({}): expected {}, found strides {} for {}", p.op->name, i,
            spec_name(definition(p).inputs, i), fault, strides.to_string(), p.input(i).to_string());
    strides_[i] = strides;
  }
}

cermet_descriptor Operator::output(std::size_t i) const {
  const Shape& shape = output_shapes_[i];
  return {name_of(problem().outputs[i].dtype).data(), shape.rank(), shape.begin(), nullptr,
          0};  // the names are string literals
}

int Operator::alias(std::size_t i) const {
  const auto& aliases = definition(problem()).aliases;
  return i < aliases.size() ? aliases[i] : -1;
}

Expectation Operator::expect_input(std::size_t i) const {
  const Problem& p = problem();
  return {.op = p.op->name,
          .role = "input",
          .operand = spec_name(definition(p).inputs, i),
          .index = i,
          .type = &p.input(i),
          .symbols = &symbols_,
          .strides = strides_[i] ? &*strides_[i] : nullptr,
          .dense_dims = reads_any_strides(p, i) ? 0 : dense_dims_,
          .device = handle_->memory,
          .is_touched = handle_->context.computes()};
}

Expectation Operator::expect_output(std::size_t i) const {
  const Problem& p = problem();
  return {.op = p.op->name,
          .role = "output",
          .operand = spec_name(definition(p).outputs, i),
          .index = i,
          .type = &p.outputs[i],
          .symbols = &symbols_,
          .dense_dims = dense_dims_,
          .is_output = true,
          .device = handle_->memory,
          .is_touched = handle_->context.computes()};
}

void Operator::require_constant(std::size_t input) const {
  const Problem& p = problem();
  require(input < p.inputs.size() && p.is_constant(input),
          "{}: input {}: expected an operand that was declared constant, found another", p.op->name, input);
}

void Operator::set_constant(std::size_t input, const DLTensor& tensor) {
  require_constant(input);
  Expectation expectation = expect_input(input);
  expectation.is_touched = true;
  expectation.or_host = true;
  std::vector<const DLTensor*> inputs(input + 1);
  inputs[input] = &tensor;
  const TensorView view = checked_view(*as_created(inputs)[input], expectation);
  for (Variant& v : variants_) v.constants[input] = {};
  weights_[input].reset();  // so that its memory is there for the new one
  auto weight = std::make_shared<Weight>(handle_, view, tensor.device.device_type != kDLCPU);
  set_weight(input, weight);
  weight->detach();
}

void Operator::set_weight(std::size_t input, std::shared_ptr<Weight> weight) {
  require_constant(input);
  const Problem& p = problem();
  const std::string_view operand = spec_name(definition(p).inputs, input);
  require(&weight->handle() == handle_.get(),
          "{}: input {} ({}): expected a weight of the operator's handle, found one of another", p.op->name, input,
          operand);
  require(weight->type() == p.input(input), "{}: input {} ({}): expected a weight of type {}, found {}", p.op->name,
          input, operand, p.input(input).to_string(), weight->type().to_string());
  std::vector<TensorView> forms;
  for (const Variant& v : variants_)
    forms.push_back(weight->form(v.bound.kernel().weight_layout(v.bound.problem(), input)));
  for (std::size_t v = 0; v < variants_.size(); ++v) variants_[v].constants[input] = forms[v];
  weights_[input] = std::move(weight);
}

}  // namespace cermet::api

#include "api/graph.hpp"

#include <algorithm>

#include "api/call_problem.hpp"
#include "api/caller_tensor.hpp"
#include "api/dlpack.hpp"
#include "api/schema.hpp"

namespace cermet::api {
namespace {

/// Names of a node's results, which must be free before anything is added.
std::vector<std::string> free_names(const Graph& graph, std::string_view op, const char* const* names,
                                    std::size_t count) {
  std::vector<std::string> list;
  for (std::size_t i = 0; names && i < count; ++i) {
    require(names[i] && *names[i], "{}: names: expected one for each of {} results, found none for result {}", op,
            count, i);
    require(!graph.find(names[i]) && std::ranges::find(list, names[i]) == list.end(),
            "graph '{}': value '{}': expected a name of its own, found one that is taken", graph.name, names[i]);
    list.emplace_back(names[i]);
  }
  return list;
}

/// Without those that say what the schema says.
Attributes without_defaults(const Attributes& given, const OpDefinition& op) {
  Attributes kept;
  for (const auto& [name, value] : given) {
    const auto spec = std::ranges::find(op.attributes, name, &AttributeSpec::name);
    if (spec == op.attributes.end() || to_string(spec->fallback) != to_string(value)) kept.set(name, value);
  }
  return kept;
}

}  // namespace

cermet_value_info ValueText::of(const std::string& name, const TensorType& type) {
  name_ = name;
  type_ = type.to_string();
  shape_.clear();
  dims_.clear();
  symbols_.clear();
  for (const Dim& d : type.dims) {
    shape_.push_back(d.is_constant() ? d.constant() : -1);
    dims_.push_back(d.to_string());
  }
  for (const std::string& d : dims_) symbols_.push_back(d.c_str());
  return {name_.c_str(), type_.c_str(), name_of(type.dtype).data(),
          type.rank(),   shape_.data(), symbols_.data()};  // names of types are string literals
}

ConstantMemory constant_memory(const Handle& handle, const char* name, std::size_t index, const TensorType& type,
                               const DLTensor& tensor, bool is_read) {
  const TensorView view = checked_view(tensor, {.op = "graph",
                                                .role = "constant",
                                                .operand = name,
                                                .index = index,
                                                .type = &type,
                                                .device = handle.memory,
                                                .or_host = true,
                                                .is_touched = is_read});
  return {view, tensor.device.device_type != kDLCPU};
}

void read_constant(const Handle& handle, const ConstantMemory& memory, std::int64_t slice,
                   const TensorView& destination) {
  TensorView part = memory.view;
  if (slice >= 0) {
    const std::int64_t step = slice * part.strides[0] * byte_size(part.dtype);
    part = TensorView(part.as<std::byte>() + step, part.dtype, destination.shape, {part.strides[1], part.strides[2]});
  }
  copy_to_host(handle.context, part, memory.on_device, destination.as<std::byte>());
}

ConstantMemory GraphBuilder::memory_of(const char* name, const TensorType& type, const DLTensor& tensor,
                                       bool is_read) const {
  return constant_memory(*handle_, name, constants_.size(), type, tensor, is_read);
}

ValueId GraphBuilder::add_input(const char* name, const TensorType& type, Ints order) {
  require(is_order(order, type.rank()), "input '{}': order: expected each of {} dimensions once, found {}", name,
          type.rank(), to_string(AttributeValue(order)));
  TensorType stored = type;
  Ints back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    stored.dims[i] = type.dims[static_cast<std::size_t>(order[i])];
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  const ValueId id = graph_.add_input(name, stored, std::move(order));
  return back.empty() ? id : graph_.apply(OpKind::transpose, {id}, {{"permutation", std::move(back)}});
}

void GraphBuilder::add_output(const char* name, ValueId value, Ints order) {
  require(is_order(order, graph_.type(value).rank()),
          "output '{}': order: expected each of {} dimensions once, found {}", name, graph_.type(value).rank(),
          to_string(AttributeValue(order)));
  if (!order.empty()) value = graph_.apply(OpKind::transpose, {value}, {{"permutation", order}});
  graph_.add_output(name, value, std::move(order));
}

ValueId GraphBuilder::add_constant(const char* name, const char* dtype, const DLTensor& tensor) {
  const TensorType type = declared_type(tensor, dtype, fmt::format("constant '{}'", name));
  const ConstantMemory memory = memory_of(name, type, tensor, handle_->context.computes());
  const ValueId id = graph_.add_constant(name, type);
  constants_[name] = memory;
  return id;
}

ValueId GraphBuilder::add_literal(const char* name, const char* dtype, const DLTensor& tensor) {
  const TensorType type = declared_type(tensor, dtype, fmt::format("constant '{}'", name));
  const ConstantMemory memory = memory_of(name, type, tensor, true);
  std::vector<std::byte> bytes(static_cast<std::size_t>(dense_bytes(type.dtype, memory.view.shape)));
  copy_to_host(handle_->context, memory.view, memory.on_device, bytes.data());
  return graph_.add_constant(name, TensorData(type, bytes));
}

void GraphBuilder::set_constant(const char* name, const DLTensor& tensor) {
  const ValueId id = graph_.find(name);
  const bool is_loaded = id && graph_.value(id).kind == ValueKind::constant &&
                         std::holds_alternative<std::monostate>(graph_.value(id).source);
  require(is_loaded, "constant '{}': expected a constant that graph '{}' declares without values, found {}", name,
          graph_.name, id ? "another value" : "none");
  constants_[name] = memory_of(name, graph_.type(id), tensor, handle_->context.computes());
}

ValueId GraphBuilder::value(cermet_value id, std::string_view what) const {
  require(id >= 0 && static_cast<std::size_t>(id) < graph_.values().size(),
          "{}: expected a value of graph '{}', of which there are {}, found {}", what, graph_.name,
          graph_.values().size(), id);
  return {id};
}

std::vector<ValueId> GraphBuilder::apply(const char* op, std::span<const cermet_value> inputs,
                                         std::span<const cermet_attribute> attributes, const char* const* names) {
  const OpDefinition& definition = operator_named(op);
  check_input_count(definition, inputs.size());
  std::vector<ValueId> operands;
  std::vector<std::optional<TensorType>> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_given = inputs[i] != CERMET_NO_VALUE;
    operands.push_back(is_given ? value(inputs[i], fmt::format("{}: input {} ({})", definition.name, i,
                                                               spec_name(definition.inputs, i)))
                                : ValueId{});
    types.push_back(is_given ? std::optional(graph_.type(operands.back())) : std::nullopt);
  }
  const Attributes given = without_defaults(attributes_of(attributes, definition), definition);
  if (!names) return graph_.apply_all(definition.kind, std::move(operands), given);
  const std::size_t count = make_problem(definition, std::move(types), given).outputs.size();
  return graph_.apply_all(definition.kind, std::move(operands), given,
                          free_names(graph_, definition.name, names, count));
}

void GraphBuilder::begin_scope(const char* name) {
  require(*name != '\0', "scope: expected a name, found an empty one");
  scopes_.push_back(std::make_unique<Graph::Scope>(graph_, name));
}

void GraphBuilder::end_scope() {
  require(!scopes_.empty(), "scope: expected one that was begun, found none");
  scopes_.pop_back();
}

void GraphBuilder::begin_super_kernel(const char* name, const char* options) {
  const std::string_view given = options ? options : "";
  require(name || given.empty(),
          "super-kernel without a name: expected no options, because its nodes are in none, found '{}'", given);
  const std::int32_t region = name ? graph_.add_super_kernel(name, given) : Node::excluded;
  super_kernels_.push_back(std::make_unique<Graph::SuperKernelScope>(graph_, region));
}

void GraphBuilder::end_super_kernel() {
  require(!super_kernels_.empty(), "super-kernel: expected one that was begun, found none");
  super_kernels_.pop_back();
}

}  // namespace cermet::api

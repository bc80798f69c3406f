// The C functions that build graphs.
#include <algorithm>

#include "api/graph.hpp"
#include "api/guard.hpp"
#include "graph/text.hpp"
#include "op/schema/type_text.hpp"

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_graph_create(cermet_handle* handle, const char* name, cermet_graph** graph) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(name, "name");
    api::require_pointer(graph, "graph");
    Graph empty;
    empty.name = name;
    *graph = new cermet_graph{api::GraphBuilder(handle->shared, std::move(empty))};
  });
}

cermet_status cermet_graph_parse(cermet_handle* handle, const char* text, cermet_graph** graph) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(text, "text");
    api::require_pointer(graph, "graph");
    *graph = new cermet_graph{api::GraphBuilder(handle->shared, parse_graph(text))};
  });
}

void cermet_graph_destroy(cermet_graph* graph) { delete graph; }

cermet_status cermet_graph_symbol(cermet_graph* graph, const char* name, int64_t least, int64_t greatest) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    graph->builder.graph().set_range(Symbol(name), {least, greatest});
  });
}

cermet_status cermet_graph_input(cermet_graph* graph, const char* name, const char* type, cermet_value* value) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    api::require_pointer(type, "type");
    api::require_pointer(value, "value");
    *value = graph->builder.graph().add_input(name, parse_tensor_type(type)).index;
  });
}

cermet_status cermet_graph_input_in_order(cermet_graph* graph, const char* name, const char* type, const int64_t* order,
                                          cermet_value* value) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    api::require_pointer(type, "type");
    api::require_pointer(order, "order");
    api::require_pointer(value, "value");
    const TensorType seen = parse_tensor_type(type);
    *value = graph->builder.add_input(name, seen, Ints(order, order + seen.rank())).index;
  });
}

cermet_status cermet_graph_constant(cermet_graph* graph, const char* name, const char* dtype, const DLTensor* tensor,
                                    cermet_value* value) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    api::require_pointer(tensor, "tensor");
    api::require_pointer(value, "value");
    *value = graph->builder.add_constant(name, dtype, *tensor).index;
  });
}

cermet_status cermet_graph_literal(cermet_graph* graph, const char* name, const char* dtype, const DLTensor* tensor,
                                   cermet_value* value) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    api::require_pointer(tensor, "tensor");
    api::require_pointer(value, "value");
    *value = graph->builder.add_literal(name, dtype, *tensor).index;
  });
}

cermet_status cermet_graph_set_constant(cermet_graph* graph, const char* name, const DLTensor* tensor) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    api::require_pointer(tensor, "tensor");
    graph->builder.set_constant(name, *tensor);
  });
}

cermet_status cermet_graph_apply(cermet_graph* graph, const char* op, const cermet_value* inputs, size_t input_count,
                                 const cermet_attribute* attributes, size_t attribute_count, const char* const* names,
                                 cermet_value* outputs, size_t capacity, size_t* count) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(op, "op");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (attribute_count > 0) api::require_pointer(attributes, "attributes");
    if (capacity > 0) api::require_pointer(outputs, "outputs");
    const std::vector<ValueId> made =
        graph->builder.apply(op, {inputs, input_count}, {attributes, attribute_count}, names);
    for (std::size_t i = 0; i < std::min(made.size(), capacity); ++i) outputs[i] = made[i].index;
    if (count) *count = made.size();
  });
}

cermet_status cermet_graph_output(cermet_graph* graph, const char* name, cermet_value value) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    graph->builder.graph().add_output(name, graph->builder.value(value, fmt::format("output '{}'", name)));
  });
}

cermet_status cermet_graph_output_in_order(cermet_graph* graph, const char* name, cermet_value value,
                                           const int64_t* order) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    api::require_pointer(order, "order");
    const ValueId id = graph->builder.value(value, fmt::format("output '{}'", name));
    graph->builder.add_output(name, id, Ints(order, order + graph->builder.graph().type(id).rank()));
  });
}

cermet_status cermet_graph_update(cermet_graph* graph, cermet_value input, cermet_value value) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    const ValueId to = graph->builder.value(input, "update: input");
    graph->builder.graph().add_update(to, graph->builder.value(value, "update: value"));
  });
}

cermet_status cermet_graph_scope_begin(cermet_graph* graph, const char* name) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(name, "name");
    graph->builder.begin_scope(name);
  });
}

cermet_status cermet_graph_scope_end(cermet_graph* graph) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    graph->builder.end_scope();
  });
}

cermet_status cermet_graph_super_kernel_begin(cermet_graph* graph, const char* name, const char* options) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    graph->builder.begin_super_kernel(name, options);
  });
}

cermet_status cermet_graph_super_kernel_end(cermet_graph* graph) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    graph->builder.end_super_kernel();
  });
}

cermet_status cermet_graph_value(cermet_graph* graph, cermet_value value, cermet_value_info* info) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(info, "info");
    const Value& found = graph->builder.graph().value(graph->builder.value(value, "value"));
    *info = graph->builder.described.of(found.name, found.type);
  });
}

cermet_value cermet_graph_find(const cermet_graph* graph, const char* name) {
  if (!graph || !name) return CERMET_NO_VALUE;
  const ValueId id = graph->builder.graph().find(name);
  return id ? id.index : CERMET_NO_VALUE;
}

const char* cermet_graph_text(cermet_graph* graph) {
  const char* text = nullptr;
  api::guarded([&] {
    api::require_pointer(graph, "graph");
    text = (graph->builder.text = to_text(graph->builder.graph())).c_str();
  });
  return text;
}

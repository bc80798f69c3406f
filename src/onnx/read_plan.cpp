#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "graph/text.hpp"
#include "io/digest.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"
#include "jit/cache.hpp"
#include "onnx/plan.hpp"
#include "onnx/plan_files.hpp"

namespace cermet::onnx {
namespace {

using plan_files::dtype_in;

constexpr std::int64_t largest_text = std::int64_t{1} << 30;

/// The head, whose last field is the digest of the others.
JsonDocument read_head(const std::filesystem::path& path) {
  const std::string text = read_file(path, largest_text);
  std::optional<JsonValue> value = JsonValue::parse(text);
  if (!value || !value->is_object() || !value->contains("digest"))
    fail(Status::invalid_file, "{}: expected a whole plan, found other text", path.string());
  const JsonValue digest = (*value)["digest"];
  value->erase("digest");
  if (!digest.is_string() || digest.get<std::string>() != cermet::digest(value->dump()))
    fail(Status::invalid_file, "{}: expected what the digest is of, found a file that was changed", path.string());
  return JsonDocument::parse(text, path.string());
}

std::vector<Tensor> read_weights(const std::filesystem::path& path, const Json& list) {
  const auto file = std::make_shared<const PosixFile>(PosixFile::open_for_reading(path));
  std::vector<Tensor> weights;
  std::vector<std::byte> elements;  // one after another: new memory would take longer than reading
  std::int64_t at = 0;
  for (const Json entry : list.as_array()) {
    TensorType type{dtype_in(entry.at("dtype")), {}};
    for (const Json d : entry.at("shape").as_array()) type.dims.emplace_back(d.as_integer(0));
    const std::int64_t offset = entry.at("offset").as_integer(0), bytes = type.bytes().constant();
    if (offset != at || bytes > file->stamp().bytes - offset)
      entry.unexpected(fmt::format("bytes inside {}", path.string()));
    at += bytes;
    const Tensor& tensor = weights.emplace_back(std::string(entry.at("name").as_string()), type, file, offset);
    elements.resize(static_cast<std::size_t>(bytes));
    tensor.read(elements);
    if (cermet::digest(elements) != entry.at("digest").as_string())
      fail(Status::invalid_file, "{}: tensor '{}': expected what the digest is of, found a file that was changed",
           path.string(), tensor.name());
  }
  if (at != file->stamp().bytes)
    fail(Status::invalid_file, "{}: expected {} bytes, found {}", path.string(), at, file->stamp().bytes);
  return weights;
}

Graph read_graph(const std::filesystem::path& path, const Json& digest) {
  const std::string text = read_file(path, largest_text);
  if (cermet::digest(text) != digest.as_string())
    fail(Status::invalid_file, "{}: expected what the digest is of, found a file that was changed", path.string());
  try {
    return parse_graph(text);
  } catch (const Error& error) {
    throw Error(Status::invalid_file, fmt::format("{}: {}", path.string(), error.what()));
  }
}

/// Slots of a plan: first the inputs, then one for each result.
class Slots {
 public:
  explicit Slots(Plan& plan) : plan_(plan) {}

  void add_input(const Json& entry, GraphDef& graph) {
    ValueInfo& input = graph.inputs.emplace_back(
        ValueInfo{.name = std::string(entry.at("name").as_string()), .dtype = dtype_in(entry.at("dtype")), .dims = {}});
    input.dims.emplace();
    for (const Json d : entry.at("dims").as_array()) {
      DeclaredDim& dim = input.dims->emplace_back();
      if (d.is(JsonKind::integer)) dim.value = d.as_integer(0);
      else dim.name = d.as_string();
    }
    const Operand x = add({.name = input.name, .type = {*input.dtype, {}}, .data = {}, .symbolic = {}});
    if (const std::optional<Json> value = entry.find("value"))
      plan_.part.inputs.emplace_back(x.slot, named(*value, ValueKind::input));
  }

  void add_sizes(const Json& entry) {
    const std::string name = named(entry.at("value"), ValueKind::input);
    SizeTensor tensor = plan_files::read_size_tensor(entry.at("is"));
    if (tensor.type != plan_.part.graph.type(plan_.part.graph.find(name)))
      entry.unexpected("the type that the graph has");
    plan_.part.sizes.emplace_back(name, std::move(tensor));
  }

  void add_result(const Json& entry, GraphDef& graph) {
    graph.outputs.push_back({.name = std::string(entry.at("name").as_string()), .dtype = {}, .dims = {}});
    if (const std::optional<Json> input = entry.find("input"))
      return plan_.part.results.push_back(
          {static_cast<std::int32_t>(input->as_integer(0, static_cast<std::int64_t>(graph.inputs.size()) - 1))});
    if (const std::optional<Json> sizes = entry.find("sizes")) {
      const SizeTensor tensor = plan_files::read_size_tensor(*sizes);
      Slot slot{.name = {}, .type = tensor.type, .data = {}, .symbolic = {}};
      if (tensor.elements.empty()) slot.counting = tensor.counting;
      else slot.symbolic = tensor.elements;
      return plan_.part.results.push_back(add(std::move(slot)));
    }
    if (const std::optional<Json> weight = entry.find("weight")) {
      const auto found = std::ranges::find(plan_.weights, weight->as_string(), &Tensor::name);
      if (found == plan_.weights.end()) weight->unexpected("a tensor of the plan");
      return plan_.part.results.push_back(
          add({.name = found->name(), .type = found->type(), .data = {}, .symbolic = {}, .tensor = &*found}));
    }
    const Json value = entry.at("value");
    const auto& outputs = plan_.part.graph.outputs();
    if (std::ranges::none_of(outputs, [&](const GraphOutput& o) { return o.name == value.as_string(); }))
      value.unexpected("a result of the graph");
    const auto known =
        std::ranges::find(plan_.part.outputs, value.as_string(), &std::pair<std::int32_t, std::string>::second);
    if (known != plan_.part.outputs.end()) return plan_.part.results.push_back({known->first});
    const Operand x = add({.name = std::string(value.as_string()), .type = {}, .data = {}, .symbolic = {}});
    plan_.part.outputs.emplace_back(x.slot, std::string(value.as_string()));
    plan_.part.results.push_back(x);
  }

 private:
  Operand add(Slot slot) {
    plan_.part.state.slots.push_back(std::move(slot));
    return {static_cast<std::int32_t>(plan_.part.state.slots.size()) - 1};
  }
  std::string named(const Json& value, ValueKind kind) const {
    const ValueId id = plan_.part.graph.find(value.as_string());
    if (!id || plan_.part.graph.value(id).kind != kind) value.unexpected("an input of the graph");
    return std::string(value.as_string());
  }
  Plan& plan_;
};

/// What the graph reads is there, with the types that it has there.
void check_names(const std::filesystem::path& path, const Plan& plan) {
  for (const cermet::Value& value : plan.part.graph.values()) {
    const bool is_given =
        std::ranges::any_of(plan.part.inputs, [&](const auto& i) { return i.second == value.name; }) ||
        std::ranges::any_of(plan.part.sizes, [&](const auto& i) { return i.first == value.name; });
    if (value.kind == ValueKind::input && !is_given)
      fail(Status::invalid_file, "{}: input '{}' of the graph: expected an input of the model, found none",
           path.string(), value.name);
    if (value.kind != ValueKind::constant || value.data() || value.expression()) continue;
    const auto found = std::ranges::find(plan.weights, value.name, &Tensor::name);
    if (found == plan.weights.end() || found->type() != value.type)
      fail(Status::invalid_file, "{}: constant '{}': expected a tensor {}, found {}", path.string(), value.name,
           value.type.to_string(), found == plan.weights.end() ? "none" : found->type().to_string());
  }
}

}  // namespace

bool is_plan(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / plan_files::head, ignored);
}

std::shared_ptr<const Plan> read_plan(const std::filesystem::path& folder, const Context& context) {
  const std::filesystem::path path = folder / plan_files::head;
  const JsonDocument document = read_head(path);
  const Json head = document.root();
  if (head.at("format").as_string() != "cermet onnx plan") head.at("format").unexpected("\"cermet onnx plan\"");
  if (head.at("version").as_integer() != plan_files::version)
    head.at("version").unexpected(std::to_string(plan_files::version), Status::unsupported);
  const std::string kind = plan_files::device_kind(context);
  if (head.at("device").as_string() != kind)
    head.at("device").unexpected(fmt::format("a plan for {}", kind), Status::unsupported);
  auto plan = std::make_shared<Plan>();
  for (const Json d : head.at("dims").as_array())
    plan->dims[std::string(d.at("name").as_string())] = {d.at("least").as_integer(0), d.at("greatest").as_integer(0)};
  if (const std::optional<Json> mode = head.find("mode"))
    plan->mode = fusion_mode_named(path.string() + ": mode", mode->as_string());
  plan->part.graph = read_graph(folder / plan_files::graph, head.at("graph_digest"));
  plan->weights = read_weights(folder / plan_files::weights, head.at("weights"));
  auto graph = std::make_shared<GraphDef>();
  graph->name = plan->part.graph.name;
  Slots slots(*plan);
  for (const Json input : head.at("inputs").as_array()) slots.add_input(input, *graph);
  if (const std::optional<Json> sizes = head.find("sizes"))
    for (const Json entry : sizes->as_array()) slots.add_sizes(entry);
  for (const Json result : head.at("results").as_array()) slots.add_result(result, *graph);
  check_names(path, *plan);
  auto model = std::make_shared<Model>();
  model->path = folder;
  model->graph = std::move(graph);
  plan->model = std::move(model);
  if (context.target()) jit::DiskCache::process().read_also(folder / plan_files::kernels);
  return plan;
}

}  // namespace cermet::onnx

#include "api/schema.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "api/guard.hpp"
#include "api/transposed.hpp"
#include "base/text.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/problem.hpp"

namespace cermet::api {
namespace {

using Json = JsonValue;

Json dtypes_json(DTypeSet set) {
  Json list = Json::array();
  for (int i = 0; i < dtype_count; ++i)
    if (set.contains(static_cast<DType>(i))) list.push_back(name_of(static_cast<DType>(i)));
  return list;
}

Json operand_json(const OperandSpec& spec, bool is_input) {
  Json json{{"name", spec.name}, {"dtypes", dtypes_json(spec.dtypes)}, {"shape", spec.shape},
            {"doc", spec.doc},   {"optional", spec.optional},          {"variadic", spec.variadic}};
  if (is_input) json["mapping"] = name_of(spec.mapping);
  return json;
}

/// Results that every call has; those after them depend on operands and attributes, which the cases show.
std::size_t least_results(const OpDefinition& op) {
  std::size_t least = op.outputs.size();
  for (const Case& recipe : op.cases()) {
    std::vector<std::optional<TensorType>> types;
    for (const std::optional<CaseOperand>& operand : recipe.inputs)
      types.push_back(operand ? std::optional(operand->type) : std::nullopt);
    least = std::min(least, make_problem(op, std::move(types), recipe.attributes).outputs.size());
  }
  return least;
}

/// Tensors and graphs, which JSON has no values for, are their texts.
Json value_json(const AttributeValue& value) {
  const auto json = [&]<class T>(const T& v) {
    if constexpr (std::is_same_v<T, TensorData> || std::is_same_v<T, Subgraph>) return Json(to_string(value));
    else return Json(v);
  };
  return std::visit(json, value);
}

Json attribute_json(const AttributeSpec& spec) {
  Json json{{"name", spec.name},
            {"type", type_name(spec.fallback)},
            {"default", value_json(spec.fallback)},
            {"doc", spec.doc}};
  if (!spec.choices.empty()) json["choices"] = spec.choices;
  return json;
}

Json kernels_json(const OpDefinition& op) {
  Json list = Json::array();
  for (const Kernel* kernel : cpu::kernels_of(op.kind))
    list.push_back({{"name", kernel->name}, {"summary", kernel->summary}, {"device", "cpu"}});
  for (const Kernel* kernel : cuda::kernels_of(op.kind))
    list.push_back({{"name", kernel->name}, {"summary", kernel->summary}, {"device", "cuda"}});
  return {{"cpu", list}};
}

/// Length of the longest common subsequence, as a measure of similarity for names.
std::size_t likeness(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1, 0);
  for (const char c : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = c == b[j] ? diagonal + 1 : std::max(row[j], above);
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

Json schema_json(const OpDefinition& op) {
  Json json{{"name", op.name}, {"category", op.category}, {"summary", op.summary}, {"semantics", op.semantics}};
  for (const char* list : {"attributes", "outputs", "inputs"}) json[list] = Json::array();
  for (const OperandSpec& spec : op.inputs) {
    Json operand = operand_json(spec, true);
    for (const TransposedOperand& transposed : transposed_operands(op))
      if (op.inputs[transposed.input].name == spec.name) operand["may_lie_transposed"] = true;
    if (may_have_any_strides(op, static_cast<std::size_t>(&spec - op.inputs.data())))
      operand["may_lie_transposed"] = true;
    json["inputs"].push_back(std::move(operand));
  }
  const std::size_t least = least_results(op);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    json["outputs"].push_back(operand_json(op.outputs[i], false));
    if (i >= least && !op.outputs[i].variadic) json["outputs"].back()["optional"] = true;
    if (i < op.aliases.size() && op.aliases[i] >= 0)
      json["outputs"].back()["shares_memory_of"] = op.inputs[static_cast<std::size_t>(op.aliases[i])].name;
  }
  for (const AttributeSpec& spec : op.attributes) json["attributes"].push_back(attribute_json(spec));
  json["properties"] = {
      {"associative", op.associative}, {"commutative", op.commutative}, {"distributive", op.distributive}};
  json["kernels"] = kernels_json(op);
  json["example"] = example_call(op);
  return json;
}

std::string example_call(const OpDefinition& op) {
  const std::vector<Case> cases = op.cases();
  if (cases.empty()) return "";
  std::string text;
  const Case& first = cases.front();
  for (std::size_t i = 0; i < first.inputs.size(); ++i)
    if (first.inputs[i])
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", op.inputs[std::min(i, op.inputs.size() - 1)].name,
                          first.inputs[i]->type.to_string());
  for (const auto& [name, value] : first.attributes) text += fmt::format(" {}={}", name, to_string(value));
  return text;
}

const OpDefinition& operator_named(std::string_view name) {
  if (const OpDefinition* found = find_operator(name)) return *found;
  std::vector<std::string_view> names;
  for (const OpDefinition& op : all_operators()) names.push_back(op.name);
  std::stable_sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return 2 * likeness(name, a) * (b.size() + name.size()) > 2 * likeness(name, b) * (a.size() + name.size());
  });
  names.resize(std::min<std::size_t>(names.size(), 4));
  fail(Status::invalid_argument, "operator: expected one of the {} that `cermet ops` lists (like {}), found {}",
       all_operators().size(), fmt::join(names, ", "), quote(name));
}

}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

size_t cermet_op_count(void) { return all_operators().size(); }

const char* cermet_op_name(size_t index) {
  return index < all_operators().size() ? all_operators()[index].name.data()
                                        : nullptr;  // names are string literals, so they end in a zero
}

const char* cermet_op_schema(const char* name) {
  const char* found = nullptr;
  api::guarded([&] {
    api::require_pointer(name, "name");
    static std::mutex mutex;
    static std::map<const OpDefinition*, std::string> texts;  // nodes stay where they are
    const OpDefinition& op = api::operator_named(name);
    const std::lock_guard lock(mutex);
    auto at = texts.find(&op);
    if (at == texts.end()) at = texts.emplace(&op, api::schema_json(op).dump()).first;
    found = at->second.c_str();
  });
  return found;
}

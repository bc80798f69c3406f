#include "graph/fold_constants.hpp"

#include <algorithm>
#include <unordered_map>

#include "graph/editor.hpp"
#include "graph/evaluate.hpp"
#include "graph/memory.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::int64_t most_elements = 1 << 16;  // of operands and results of an operator that is evaluated here
constexpr double most_evaluated = 1 << 24;       // elements and operations of all of them, 10 to 50 ns each
constexpr double always_kept = 16 << 20;         // bytes of a result, however small its operands are
constexpr double most_growth = 4;                // of results, in bytes of what they are computed of
constexpr double most_made = 1 << 28;            // bytes of all results, beyond what the graph's constants justify
constexpr std::size_t most_applications = 1000;  // in one expression: a shared operand is computed for each reader

bool broadcasts_operands(OpKind kind) {
  return kind == OpKind::cast || kind == OpKind::where || definition(kind).category == "Elementwise";
}
bool only_moves(OpKind kind) {
  return kind == OpKind::expand || kind == OpKind::reshape || kind == OpKind::transpose || kind == OpKind::slice;
}
double fixed_bytes(const TensorType& type) { return cermet::bytes_of(type, {}); }

std::string size_text(double bytes) {
  if (bytes < 0x1p30) return fmt::format("{:.1f} MiB", bytes / 0x1p20);
  return fmt::format("{:.1f} GiB", bytes / 0x1p30);
}

class Folding {
 public:
  explicit Folding(const Graph& graph) : graph_(graph), editor_(graph), folded_(graph.values().size()) {}

  FoldedConstants run() {
    for (std::size_t v = 0; v < graph_.values().size(); ++v) {
      const ValueId id{static_cast<std::int32_t>(v)};
      if (graph_.value(id).kind != ValueKind::constant) continue;
      folded_[v] = graph_.value(id).data() ? shared(id, *graph_.value(id).data()) : id;
      editor_.replace_uses(id, folded_[v]);
      if (!graph_.value(id).expression()) given_ += fixed_bytes(graph_.type(id));
    }
    for (const Node& node : graph_.nodes()) fold(node);
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) replace(static_cast<NodeId>(n));
    return {editor_.finish(), nodes_, std::move(left_)};
  }

 private:
  struct Facts {
    double leaves = 0;             ///< bytes of what an expression is computed of
    std::size_t applications = 0;  ///< of operators in it
    std::optional<ValueId> one = {};
  };
  Facts& facts(ValueId id) {
    const auto [found, is_new] = facts_.try_emplace(id.index);
    if (!is_new) return found->second;
    Facts made;
    if (const ConstantExpression* e = editor_.value(id).expression()) {
      made.applications = 1;
      for (const ValueId input : e->inputs)
        if (input) {
          made.leaves += facts(input).leaves;
          made.applications = std::min(made.applications + facts(input).applications, most_applications + 1);
        }
    } else {
      made.leaves = fixed_bytes(editor_.value(id).type);
    }
    return facts_[id.index] = made;
  }

  /// The first constant of this data.
  ValueId shared(ValueId id, const TensorData& data) {
    const std::string_view bytes(reinterpret_cast<const char*>(data.bytes().data()), data.bytes().size());
    std::vector<ValueId>& alike = by_data_[std::hash<std::string_view>()(bytes)];
    for (const ValueId other : alike)
      if (*editor_.value(other).data() == data) return other;
    alike.push_back(id);
    return id;
  }
  ValueId data_constant(std::string_view name, TensorData data) {
    const std::string_view bytes(reinterpret_cast<const char*>(data.bytes().data()), data.bytes().size());
    for (const ValueId other : by_data_[std::hash<std::string_view>()(bytes)])
      if (*editor_.value(other).data() == data) return other;
    const ValueId made = editor_.add_constant(name, std::move(data));
    return shared(made, *editor_.value(made).data());
  }
  ValueId expression_constant(std::string_view name, ConstantExpression expression) {
    std::string key = fmt::format("{}[{}]", definition(expression.op).name, expression.output);
    for (const ValueId id : expression.inputs) key += fmt::format(" {}", id.index);
    for (const auto& [attribute, value] : expression.attributes)
      key += fmt::format(" {}={}", attribute, to_string(value));
    const auto [found, is_new] = by_expression_.try_emplace(key);
    if (is_new) found->second = editor_.add_constant(name, std::move(expression));
    return found->second;
  }

  std::vector<std::optional<TensorType>> types_of(const std::vector<ValueId>& ids) const {
    std::vector<std::optional<TensorType>> types;
    for (const ValueId id : ids) types.push_back(id ? std::optional(editor_.value(id).type) : std::nullopt);
    return types;
  }

  /// The results of an operator on constants as constants; nothing where they stay in runs.
  std::optional<std::vector<ValueId>> apply(OpKind kind, const std::vector<ValueId>& inputs,
                                            const Attributes& attributes, const std::vector<std::string>& names) {
    const Problem problem = make_problem(definition(kind), types_of(inputs), attributes);
    double elements = 0;
    bool is_data = true;
    std::size_t applications = 1;
    std::vector<const TensorData*> data;
    for (const ValueId id : inputs) {
      data.push_back(id ? editor_.value(id).data() : nullptr);
      if (!id) continue;
      is_data = is_data && data.back();
      applications += facts(id).applications;
      elements += static_cast<double>(editor_.value(id).type.elements().constant());
    }
    for (const TensorType& type : problem.outputs) {
      if (!type.is_constant()) return {};
      elements += static_cast<double>(type.elements().constant());
    }
    if (applications > most_applications) return {};
    std::vector<ValueId> made;
    const auto name = [&](std::size_t o) { return o < names.size() ? names[o] : std::string("folded"); };
    if (is_data && elements <= most_elements) {
      const double work = work_of_definition(problem);
      if (evaluated_ + work <= most_evaluated) {
        evaluated_ += work;
        std::vector<TensorData> results;
        try {
          results = evaluate(problem, data);
        } catch (const Error&) {  // a run says what is wrong with the operands
          return {};
        }
        for (std::size_t o = 0; o < results.size(); ++o) made.push_back(data_constant(name(o), results[o]));
      }
    }
    for (std::size_t o = made.size(); o < problem.outputs.size(); ++o)
      made.push_back(expression_constant(name(o), {kind, inputs, attributes, static_cast<std::int32_t>(o)}));
    if (kind == OpKind::expand && made[0] != inputs[0]) expanded_from_.try_emplace(made[0].index, inputs[0]);
    return made;
  }

  /// The one element of a constant that is the same everywhere, as a constant without dimensions; ValueId{} where
  /// elements differ or are not seen to be alike.
  ValueId one_element(ValueId id) {
    if (facts(id).one) return *facts(id).one;
    const ValueId one = find_one(id);
    facts(id).one = one;
    return one;
  }
  ValueId find_one(ValueId id) {
    const Value value = editor_.value(id);
    if (value.type.dims.empty()) return id;
    if (const TensorData* data = value.data()) {
      const auto size = static_cast<std::size_t>(size_of(value.type.dtype));
      if (value.type.elements() != Dim(1) || data->bytes().size() != size) return {};
      return data_constant(value.name, TensorData({value.type.dtype, {}}, data->bytes()));
    }
    const ConstantExpression* e = value.expression();
    if (!e || e->output != 0 || (!only_moves(e->op) && !broadcasts_operands(e->op))) return {};
    if (only_moves(e->op)) return value.type.elements() == Dim(0) ? ValueId{} : one_element(e->inputs.at(0));
    std::vector<ValueId> ones;
    for (const ValueId input : e->inputs) {
      ones.push_back(input ? one_element(input) : ValueId{});
      if (input && !ones.back()) return {};
    }
    const auto made = apply(e->op, ones, e->attributes, {value.name});
    return made && editor_.value(made->at(0)).type.dims.empty() ? made->at(0) : ValueId{};
  }

  /// The operands of a node as constants where they are; of an elementwise operator, and biases and masks of attention,
  /// as they were before they were expanded, where that leaves the result's type.
  std::vector<ValueId> operands_of(const Node& node) {
    std::vector<ValueId> operands = node.inputs;
    for (ValueId& id : operands)
      if (id && folded_[id.at()]) id = folded_[id.at()];
    const bool is_attention = node.op == OpKind::flash_attention;
    if (!is_attention && (!broadcasts_operands(node.op) || node.outputs.size() != 1)) return operands;
    const auto take = [&](ValueId& id, ValueId narrow) {
      if (!narrow || narrow == id) return false;
      const ValueId before = std::exchange(id, narrow);
      const Problem problem = make_problem(definition(node.op), types_of(operands), node.attributes);
      if (problem.outputs[0] == graph_.type(node.outputs[0])) return true;
      id = before;
      return false;
    };
    for (std::size_t i = is_attention ? std::size_t{op::flash_attention::bias} : 0; i < operands.size(); ++i) {
      ValueId& id = operands[i];
      if (!id || editor_.value(id).kind != ValueKind::constant || editor_.value(id).type.elements() == Dim(1)) continue;
      if (!is_attention && take(id, one_element(id))) continue;
      while (take(id, before_expansion(id))) continue;
    }
    return operands;
  }
  ValueId before_expansion(ValueId id) const {
    if (const auto found = expanded_from_.find(id.index); found != expanded_from_.end()) return found->second;
    const ConstantExpression* e = editor_.value(id).expression();
    return e && e->op == OpKind::expand ? e->inputs[0] : ValueId{};
  }

  bool may_fold(const Node& node) const {
    const AttributeValue* ranks = node.attributes.find("ranks");
    if (ranks && std::get<std::int64_t>(*ranks) > 0) return false;
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (overwritten_by(node, o)) return false;
    return !node.outputs.empty();
  }

  void fold(const Node& node) {
    if (!may_fold(node)) return;
    const bool is_constant = std::ranges::all_of(node.inputs, [&](ValueId id) { return !id || folded_[id.at()]; });
    if (!is_constant) return;
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back(graph_.value(id).name);
    const auto made = apply(node.op, operands_of(node), node.attributes, names);
    if (!made) return;
    for (std::size_t o = 0; o < made->size(); ++o) {
      folded_[node.outputs[o].at()] = (*made)[o];
      if ((*made)[o].at() >= graph_.values().size()) named_for_.try_emplace((*made)[o].index, node.outputs[o]);
    }
  }

  /// Whether a constant is worth its memory. What is left out is named once.
  bool is_kept(ValueId constant, ValueId result) {
    const auto [found, is_new] = kept_.try_emplace(constant.index);
    if (!is_new) return found->second;
    const double bytes = fixed_bytes(editor_.value(constant).type), leaves = facts(constant).leaves;
    found->second =
        (bytes <= always_kept || bytes <= most_growth * leaves) && made_ + bytes <= most_made + most_growth * given_;
    if (found->second) made_ += bytes;
    else left_.push_back(fmt::format("'{}' would take {}", graph_.value(result).name, size_text(bytes)));
    return found->second;
  }

  bool is_read(ValueId id) const { return !editor_.uses(id).empty() || editor_.is_output(id); }

  /// Readers first: a node that stays may read less than it did.
  void replace(NodeId n) {
    const Node node = editor_.node(n);
    bool stays = node.outputs.empty();
    for (const ValueId id : node.outputs) {
      const ValueId constant = folded_[id.at()];
      if (constant && is_read(id) && is_kept(constant, id)) editor_.replace_uses(id, constant);
      stays = stays || !constant || is_read(id);
    }
    if (stays) return narrow(n, node);
    ++nodes_;
    editor_.erase(n);
    for (const ValueId id : node.outputs) {
      const auto named = named_for_.find(folded_[id.at()].index);
      if (named != named_for_.end() && named->second == id) editor_.rename(folded_[id.at()], graph_.value(id).name);
    }
  }

  void narrow(NodeId n, const Node& node) {
    const std::vector<ValueId> operands = operands_of(node);
    const auto is_same_type = [&](ValueId from, ValueId to) {
      return !from || editor_.value(from).type == editor_.value(to).type;
    };
    if (std::ranges::equal(node.inputs, operands, is_same_type)) return;
    std::vector<std::string> names;
    const std::vector<ValueId> made = editor_.insert_before(n, node.op, operands, node.attributes, node.scope);
    for (std::size_t o = 0; o < made.size(); ++o) {
      names.push_back(editor_.value(node.outputs[o]).name);
      editor_.replace_uses(node.outputs[o], made[o]);
    }
    editor_.erase(n);
    for (std::size_t o = 0; o < made.size(); ++o) editor_.rename(made[o], names[o]);
  }

  const Graph& graph_;
  GraphEditor editor_;
  std::vector<ValueId> folded_;                              ///< by value of the graph: the constant that it is
  std::unordered_map<std::int32_t, ValueId> named_for_;      ///< by new constant: the result whose name it takes
  std::unordered_map<std::int32_t, ValueId> expanded_from_;  ///< by constant: one that broadcasts to it
  std::unordered_map<std::int32_t, Facts> facts_;
  std::unordered_map<std::int32_t, bool> kept_;
  std::unordered_map<std::size_t, std::vector<ValueId>> by_data_;
  std::unordered_map<std::string, ValueId> by_expression_;
  double given_ = 0, made_ = 0, evaluated_ = 0;
  std::size_t nodes_ = 0;
  std::vector<std::string> left_;
};

}  // namespace

FoldedConstants fold_constants(const Graph& graph) { return Folding(graph).run(); }

}  // namespace cermet

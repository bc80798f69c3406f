#include "graph/rewrite/derive/attention_form.hpp"

#include <algorithm>
#include <cmath>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

bool has(const AxisList& list, Axis a) { return std::ranges::find(list, a) != list.end(); }
bool is_subset(const AxisList& part, const AxisList& whole) {
  return std::ranges::all_of(part, [&](Axis a) { return has(whole, a); });
}

class AttentionDerivation {
 public:
  AttentionDerivation(const GraphEditor& editor, Axes& axes, NodeId matmul, bool any_type)
      : editor_(editor), axes_(axes), matmul_(matmul), any_type_(any_type) {}

  AttentionOrReason run() {
    const Node& node = editor_.node(matmul_);
    for (const std::size_t side : {0, 1}) {
      form_ = {};
      form_.result = {node.outputs[0], axes_.fresh(editor_.value(node.outputs[0]).type.dims)};
      auto factors = factors_of(editor_, axes_, matmul_, form_.result, form_.keys);
      if (!factors) return {{}, "operands of the product do not fit its result"};
      const IndexedValue& weights = side == 0 ? factors->first : factors->second;
      form_.values = side == 0 ? factors->second : factors->first;
      if (from(weights)) return {std::move(form_), {}};
      if (is_softmax_) break;
    }
    return {{}, reason_};
  }

 private:
  bool stop(std::string why) {
    reason_ = std::move(why);
    return false;
  }

  bool from(const IndexedValue& weights) {
    if (axes_.extent(form_.keys) == Dim(1)) return stop("a product along a single key");
    RowCascade cascade = read_cascade(editor_, axes_, weights, form_.keys);
    const auto softmax = softmax_operand(cascade);
    if (!softmax) return is_softmax_ ? false : stop("neither operand is a softmax along the axis that is summed");
    is_softmax_ = true;
    auto scores = find_scores(editor_, axes_, *softmax);
    if (!scores.scores) return stop("scores: " + scores.reason);
    form_.scores = std::move(*scores.scores);
    form_.values = axes_.source(editor_, form_.values);
    if (!split_factors() || !name_axes() || !check_terms()) return false;
    multiply_and_add(cascade, form_.values);
    CascadeDerivation online = derive_online(editor_, cascade);
    if (!online.is_online) return stop(online.reason);
    tell(online);
    form_.nodes = form_.scores.nodes;
    form_.nodes.insert(form_.nodes.end(), cascade.nodes.begin(), cascade.nodes.end());
    form_.nodes.push_back(matmul_);
    add_views(weights);
    return is_alone() && has_types();
  }

  /// Which factor of the scores has the keys.
  bool split_factors() {
    Scores& s = form_.scores;
    const auto has_keys = [&](const IndexedValue& value) {
      const AxisList all = axes_.flat(value.dims);
      return std::ranges::any_of(axes_.resolve(form_.keys), [&](Axis a) { return has(all, a); });
    };
    if (has_keys(s.left) == has_keys(s.right)) return stop("the keys are not an axis of one factor of the scores");
    if (has_keys(s.left)) std::swap(s.left, s.right);
    s.left = scaled_source(editor_, axes_, s.left, s.factor);
    s.right = scaled_source(editor_, axes_, s.right, s.factor);
    return s.factor != 0 && std::isfinite(s.factor) ? true : stop("scores are 0 or infinite times the product");
  }

  bool name_axes() {
    const AxisList q = axes_.flat(form_.scores.left.dims), k = axes_.flat(form_.scores.right.dims),
                   v = axes_.flat(form_.values.dims);
    form_.keys = axes_.resolve(form_.keys);
    form_.elements = axes_.resolve(form_.scores.reduced);
    for (const Axis a : q) {
      if (has(form_.elements, a)) continue;
      if (has(k, a) != has(v, a))
        return stop("an axis of queries and keys is none of the values, or the other way round");
      (has(k, a) ? form_.batch : form_.queries).push_back(a);
    }
    for (const Axis a : v)
      if (!has(form_.batch, a) && !has(form_.keys, a)) form_.value_elements.push_back(a);
    const AxisList result = axes_.flat(form_.result.dims);
    const bool fits = is_subset(form_.keys, k) && is_subset(form_.keys, v) && is_subset(form_.elements, q) &&
                      is_subset(form_.elements, k) &&
                      k.size() == form_.batch.size() + form_.keys.size() + form_.elements.size() &&
                      is_subset(form_.value_elements, result) &&
                      result.size() == form_.batch.size() + form_.queries.size() + form_.value_elements.size();
    return fits || stop("queries, keys or values have an axis that the others do not explain");
  }

  bool check_terms() {
    AxisList all = form_.batch;
    all.insert(all.end(), form_.queries.begin(), form_.queries.end());
    all.insert(all.end(), form_.keys.begin(), form_.keys.end());
    for (std::vector<ScoreTerm>* terms : {&form_.scores.biases, &form_.scores.masks})
      for (ScoreTerm& term : *terms) {
        term.value = axes_.source(editor_, term.value);
        if (!is_subset(axes_.flat(term.value.dims), axes_.resolve(all)))
          return stop("a bias or mask has an axis that the scores do not have");
      }
    return true;
  }

  void tell(const CascadeDerivation& online) {
    const Scores& s = form_.scores;
    std::string line = fmt::format("x1 = {} * q . k", s.factor);
    for (const ScoreTerm& bias : s.biases)
      line += bias.factor == 1 ? fmt::format(" + {}", editor_.value(bias.value.value).name)
                               : fmt::format(" + {} * {}", bias.factor, editor_.value(bias.value.value).name);
    for (const ScoreTerm& mask : s.masks)
      line += fmt::format(" where {}{}, else {}", mask.inverted ? "not " : "", editor_.value(mask.value.value).name,
                          s.masked_score);
    form_.steps.push_back(std::move(line));
    form_.steps.insert(form_.steps.end(), online.steps.begin(), online.steps.end());
    for (const std::string& merge : online.merges) form_.steps.push_back("two parts: " + merge);
  }

  /// The reshapes, transpositions and expansions between softmax and matmul, and within the cascade.
  void add_views(const IndexedValue& weights) {
    std::vector<ValueId> waiting{weights.value};
    for (const NodeId n : std::vector(form_.nodes))
      for (const ValueId id : editor_.node(n).inputs)
        if (id) waiting.push_back(id);
    // A view belongs to the block where what it shows does.
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      std::vector<NodeId> views;
      ValueId id = waiting[i];
      for (NodeId n = editor_.producer(id); n != no_node; n = editor_.producer(id)) {
        if (std::ranges::find(form_.nodes, n) != form_.nodes.end()) {
          form_.nodes.insert(form_.nodes.end(), views.begin(), views.end());
          break;
        }
        const OpKind op = editor_.node(n).op;
        if (op != OpKind::reshape && op != OpKind::transpose && op != OpKind::expand) break;
        views.push_back(n);
        id = editor_.node(n).inputs[0];
      }
    }
    std::ranges::sort(form_.nodes);
    form_.nodes.erase(std::unique(form_.nodes.begin(), form_.nodes.end()), form_.nodes.end());
  }

  bool is_alone() {
    for (const NodeId n : form_.nodes) {
      if (n == matmul_) continue;
      for (const ValueId id : editor_.node(n).outputs) {
        const bool elsewhere = std::ranges::any_of(
            editor_.uses(id), [&](Use use) { return !std::ranges::binary_search(form_.nodes, use.node); });
        if (elsewhere || editor_.is_output(id))
          return stop(fmt::format("'{}' is also read elsewhere", editor_.value(id).name));
      }
    }
    return true;
  }

  bool has_types() {
    for (const NodeId n : form_.nodes) {
      if (n == matmul_ || any_type_) continue;
      for (const ValueId id : editor_.node(n).outputs)
        if (editor_.value(id).type.dtype != DType::f32 && editor_.value(id).type.dtype != DType::boolean)
          return stop(
              fmt::format("'{}' is rounded to {}", editor_.value(id).name, name_of(editor_.value(id).type.dtype)));
    }
    const auto type = [&](const IndexedValue& value) { return editor_.value(value.value).type.dtype; };
    const DType q = type(form_.scores.left);
    if (!dtypes::real.contains(q) || type(form_.scores.right) != q || type(form_.values) != q ||
        !dtypes::real.contains(type(form_.result)))
      return stop("queries, keys and values of unlike types");
    return std::ranges::all_of(form_.scores.biases,
                               [&](const ScoreTerm& bias) { return dtypes::real.contains(type(bias.value)); }) ||
           stop("a bias of a type that attention does not take");
  }

  const GraphEditor& editor_;
  Axes& axes_;
  NodeId matmul_;
  bool any_type_, is_softmax_ = false;
  AttentionForm form_;
  std::string reason_;
};

}  // namespace

AttentionOrReason derive_attention(const GraphEditor& editor, Axes& axes, NodeId matmul, bool any_type) {
  return AttentionDerivation(editor, axes, matmul, any_type).run();
}

}  // namespace cermet

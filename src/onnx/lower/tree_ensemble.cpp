// ai.onnx.ml's ensembles of trees.
#include <algorithm>
#include <cmath>
#include <map>

#include "onnx/lower/scores.hpp"
#include "onnx/lower/trees.hpp"

namespace cermet::onnx {
namespace {

/// Rows in the type that thresholds have: float64 where they are, else float32.
Operand rows_of_trees(Lowering& l) {
  const Operand x = l.in(0);
  l.expect(l.rank(x) == 1 || l.rank(x) == 2, "expected [rows, columns], found {}", l.type(x).to_string());
  const Operand rows = l.dtype(x) == DType::f64 ? x : l.cast(x, DType::f32);
  return l.rank(x) == 1 ? l.unsqueeze(rows, {0}) : rows;
}

Floats tensor_numbers(Lowering& l, const Tensor* tensor) {
  return tensor ? l.numbers_in(l.constant(tensor->data())) : Floats{};
}

/// A list of numbers, or NAME_as_tensor.
Floats numbers_or_tensor(Lowering& l, const std::string& name) {
  const Tensor* tensor = l.tensor(name + "_as_tensor");
  return tensor ? tensor_numbers(l, tensor) : l.numbers(name);
}

Ints integers_of(Lowering& l, const std::string& name, std::size_t count) {
  Ints values = l.integers(name);
  l.expect(values.size() == count, "attribute {}: expected {}, found {}", name, count, values.size());
  return values;
}

std::size_t position(Lowering& l, std::string_view what, std::int64_t at, std::size_t count) {
  l.expect(at >= 0 && at < static_cast<std::int64_t>(count), "{}: expected some in [0, {}), found {}", what, count, at);
  return static_cast<std::size_t>(at);
}

// ---- TreeEnsemble

/// A node that asks whether a feature is one of `members` is a chain of nodes that each ask for one.
void set_membership(Forest& f, std::size_t node, const Floats& members) {
  const std::int64_t yes = f.yes[node], no = f.no[node];
  for (std::size_t i = 0; i < members.size(); ++i) {
    f.branch[node] = Branch::equal;
    f.split[node] = members[i];
    f.yes[node] = yes;
    f.no[node] = no;
    if (i + 1 == members.size()) return;
    const std::size_t next = f.add();
    f.is_leaf[next] = false;
    f.feature[next] = f.feature[node];
    f.missing_is_yes[next] = f.missing_is_yes[node];
    f.no[node] = static_cast<std::int64_t>(next);
    node = next;
  }
  f.branch[node] = Branch::less;  // of no members: never
  f.split[node] = -INFINITY;
}

Forest forest_of_ensemble(Lowering& l) {
  constexpr double member = 6;
  Forest f;
  const Ints features = l.integers("nodes_featureids");
  const std::size_t nodes = features.size();
  const Floats splits = tensor_numbers(l, l.tensor("nodes_splits")), modes = tensor_numbers(l, l.tensor("nodes_modes"));
  const Floats weights = tensor_numbers(l, l.tensor("leaf_weights")),
               members = tensor_numbers(l, l.tensor("membership_values"));
  l.expect(splits.size() == nodes && modes.size() == nodes,
           "attributes nodes_splits and nodes_modes: expected {}, found {} and {}", nodes, splits.size(), modes.size());
  const Ints yes = integers_of(l, "nodes_truenodeids", nodes), no = integers_of(l, "nodes_falsenodeids", nodes);
  const Ints yes_leaf = integers_of(l, "nodes_trueleafs", nodes), no_leaf = integers_of(l, "nodes_falseleafs", nodes);
  const Ints missing = l.integers("nodes_missing_value_tracks_true", Ints(nodes));
  const Ints targets = integers_of(l, "leaf_targetids", weights.size());
  l.expect(missing.size() == nodes, "attribute nodes_missing_value_tracks_true: expected {}, found {}", nodes,
           missing.size());
  for (std::size_t n = 0; n < nodes + weights.size(); ++n) f.add();
  for (std::size_t i = 0; i < weights.size(); ++i) f.weights[nodes + i].emplace_back(targets[i], weights[i]);
  const auto next = [&](std::int64_t id, bool leaf) {
    return static_cast<std::int64_t>(leaf ? nodes + position(l, "leaves", id, weights.size())
                                          : position(l, "nodes", id, nodes));
  };
  std::size_t member_at = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    l.expect(modes[n] >= 0 && modes[n] <= member, "attribute nodes_modes: expected 0 to 6, found {}", modes[n]);
    f.is_leaf[n] = false;
    f.feature[n] = features[n];
    f.split[n] = splits[n];
    f.yes[n] = next(yes[n], yes_leaf[n] != 0);
    f.no[n] = next(no[n], no_leaf[n] != 0);
    f.missing_is_yes[n] = missing[n] != 0;
    if (modes[n] < member) {
      f.branch[n] = static_cast<Branch>(static_cast<int>(modes[n]));
      continue;
    }
    Floats own;
    while (member_at < members.size() && !std::isnan(members[member_at])) own.push_back(members[member_at++]);
    ++member_at;
    set_membership(f, n, own);
  }
  for (const std::int64_t root : l.integers("tree_roots"))
    f.roots.push_back(static_cast<std::int64_t>(position(l, "attribute tree_roots", root, nodes)));
  return f;
}

// ---- TreeEnsembleRegressor and TreeEnsembleClassifier

using NodeKey = std::pair<std::int64_t, std::int64_t>;  ///< tree and node
using NodeIndices = std::map<NodeKey, std::size_t>;

std::size_t index_of(Lowering& l, const NodeIndices& indices, std::int64_t tree, std::int64_t node) {
  const auto found = indices.find({tree, node});
  l.expect(found != indices.end(), "nodes: expected node {} of tree {}, found none", node, tree);
  return found->second;
}

void set_branch(Lowering& l, Forest& f, std::size_t n, const std::string& mode) {
  const std::string names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};
  const auto found = std::ranges::find(names, mode);
  l.expect(found != std::end(names) || mode == "LEAF",
           "attribute nodes_modes: expected LEAF, BRANCH_LEQ, .._LT, .._GTE, .._GT, .._EQ or .._NEQ, found {}", mode);
  f.is_leaf[n] = mode == "LEAF";
  if (!f.is_leaf[n]) f.branch[n] = static_cast<Branch>(found - std::begin(names));
}

/// `weights`: prefix of the attributes that say what leaves give, "target" or "class".
Forest forest_of_lists(Lowering& l, const std::string& weights) {
  Forest f;
  const Ints ids = l.integers("nodes_nodeids");
  const std::size_t nodes = ids.size();
  const Ints trees = integers_of(l, "nodes_treeids", nodes), features = integers_of(l, "nodes_featureids", nodes);
  const Ints yes = integers_of(l, "nodes_truenodeids", nodes), no = integers_of(l, "nodes_falsenodeids", nodes);
  const Ints missing = l.integers("nodes_missing_value_tracks_true", Ints(nodes));
  const Strings modes = l.texts("nodes_modes");
  const Floats splits = numbers_or_tensor(l, "nodes_values");
  l.expect(splits.size() == nodes && modes.size() == nodes,
           "attributes nodes_values and nodes_modes: expected {}, found {} and {}", nodes, splits.size(), modes.size());
  NodeIndices indices;
  for (std::size_t n = 0; n < nodes; ++n) {
    l.expect(indices.emplace(NodeKey{trees[n], ids[n]}, f.add()).second,
             "nodes: expected each once, found node {} of tree {} twice", ids[n], trees[n]);
    set_branch(l, f, n, modes[n]);
  }
  std::vector<bool> below(nodes);
  for (std::size_t n = 0; n < nodes; ++n) {
    if (f.is_leaf[n]) continue;
    const std::size_t ways[] = {index_of(l, indices, trees[n], yes[n]), index_of(l, indices, trees[n], no[n])};
    for (const std::size_t way : ways) below[way] = true;
    f.feature[n] = features[n];
    f.split[n] = splits[n];
    f.yes[n] = static_cast<std::int64_t>(ways[0]);
    f.no[n] = static_cast<std::int64_t>(ways[1]);
    f.missing_is_yes[n] = n < missing.size() && missing[n] != 0;
  }
  for (std::size_t n = 0; n < nodes; ++n)
    if (!below[n]) f.roots.push_back(static_cast<std::int64_t>(n));
  const Floats given = numbers_or_tensor(l, weights + "_weights");
  const Ints to = integers_of(l, weights + "_ids", given.size()),
             of_tree = integers_of(l, weights + "_treeids", given.size()),
             of_node = integers_of(l, weights + "_nodeids", given.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    f.weights[index_of(l, indices, of_tree[i], of_node[i])].emplace_back(to[i], given[i]);
  return f;
}

Operand with_base_values(Lowering& l, Operand scores) {
  const Floats base = numbers_or_tensor(l, "base_values");
  if (base.empty()) return scores;
  const std::int64_t targets = l.size(scores, 1);
  l.expect(base.size() == 1 || base.size() == static_cast<std::size_t>(targets),
           "attribute base_values: expected {}, found {}", targets, base.size());
  return l.binary(OpKind::add, scores,
                  base.size() == 1 ? l.scalar(l.dtype(scores), base[0]) : l.vector(l.dtype(scores), base));
}

/// The two scores that stand for one: its complement to 1 where all weights are positive, else its negative.
Operand both_scores(Lowering& l, Operand score, bool positive) {
  if (l.text("post_transform", "NONE") == "LOGISTIC")
    return l.unary(OpKind::sigmoid, l.concat({l.unary(OpKind::neg, score), score}, 1));
  const Operand other =
      positive ? l.binary(OpKind::sub, l.scalar(l.dtype(score), 1), score) : l.unary(OpKind::neg, score);
  return l.concat({other, score}, 1);
}

/// Label and scores of two classes, whose trees may give the score of one alone: as ONNX Runtime has them, where ONNX
/// does not say.
void set_two_classes(Lowering& l, Operand scores, const Ints& labels) {
  const Floats base = numbers_or_tensor(l, "base_values"), weights = numbers_or_tensor(l, "class_weights");
  const Ints ids = l.integers("class_ids");
  l.expect(base.size() <= 2, "attribute base_values: expected at most 2, found {}", base.size());
  const bool one = std::ranges::all_of(ids, [&](std::int64_t id) { return id == ids[0]; }),
             second = std::ranges::find(ids, 1) != ids.end();
  const bool positive = std::ranges::all_of(weights, [](double w) { return w >= 0; });
  Operand first = l.slice(scores, 1, 0, 1), other = l.slice(scores, 1, 1, 2);
  if (base.size() == 2 && second) {
    other = l.binary(OpKind::add, first, base[1]);
    first = l.unary(OpKind::neg, other);
  } else if (!base.empty()) {
    first = l.binary(OpKind::add, first, base[0]);
  }
  const Operand decisive = second ? other : first;
  l.set(0, label_where(l, l.binary(OpKind::greater, decisive, one && positive ? 0.5 : 0.0), labels));
  const bool alone = !second && base.size() < 2;
  l.set(1, l.cast(alone ? both_scores(l, first, positive) : transformed_scores(l, l.concat({first, other}, 1)),
                  DType::f32));
}

}  // namespace

void lower_tree_ensemble(Lowering& l) {
  const std::int64_t kind = l.integer("aggregate_function", 1), transformation = l.integer("post_transform", 0);
  constexpr Aggregate kinds[] = {Aggregate::average, Aggregate::sum, Aggregate::least, Aggregate::most};
  constexpr std::string_view names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  l.expect(kind >= 0 && kind < 4 && transformation >= 0 && transformation < 5,
           "attributes aggregate_function and post_transform: expected 0 to 3 and 0 to 4, found {} and {}", kind,
           transformation);
  const Operand rows = rows_of_trees(l);
  const Operand y =
      reached(l, forest_of_ensemble(l), rows, l.integer("n_targets", 1), kinds[kind], l.dtype(rows)).scores;
  l.set(0, l.cast(transformed_scores(l, y, names[transformation]), l.dtype(l.in(0))));
}

void lower_tree_ensemble_regressor(Lowering& l) {
  const std::map<std::string, Aggregate> kinds{
      {"SUM", Aggregate::sum}, {"AVERAGE", Aggregate::average}, {"MIN", Aggregate::least}, {"MAX", Aggregate::most}};
  const auto kind = kinds.find(l.text("aggregate_function", "SUM"));
  l.expect(kind != kinds.end(), "attribute aggregate_function: expected SUM, AVERAGE, MIN or MAX, found {}",
           l.text("aggregate_function", ""));
  const Operand rows = rows_of_trees(l);
  const Reached r =
      reached(l, forest_of_lists(l, "target"), rows, l.integer("n_targets", 1), kind->second, l.dtype(rows));
  Operand y = with_base_values(l, r.scores);
  if (r.any)
    y = l.op(
        OpKind::where,
        {r.any, y, l.scalar(l.dtype(y), 0)});  // as ONNX Runtime has it: no base value where no leaf gives anything
  l.set(0, l.cast(transformed_scores(l, y), DType::f32));
}

void lower_tree_ensemble_classifier(Lowering& l) {
  if (!l.texts("classlabels_strings").empty()) refuse_strings(l, "classlabels_strings");
  const Ints labels = l.integers("classlabels_int64s");
  l.expect(!labels.empty(), "attribute classlabels_int64s: expected some, found none");
  const Operand rows = rows_of_trees(l);
  const Reached r = reached(l, forest_of_lists(l, "class"), rows, static_cast<std::int64_t>(labels.size()),
                            Aggregate::sum, l.dtype(rows));
  if (labels.size() == 2) return set_two_classes(l, r.scores, labels);
  const Operand all = with_base_values(l, r.scores);
  const bool any_class = !r.any || !numbers_or_tensor(l, "base_values").empty();
  l.set(0,
        best_label(l, any_class ? all : l.op(OpKind::where, {r.any, all, l.scalar(l.dtype(all), -INFINITY)}), labels));
  l.set(1, l.cast(transformed_scores(l, all), DType::f32));
}

}  // namespace cermet::onnx

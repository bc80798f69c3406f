#include "onnx/lower/trees.hpp"

#include <algorithm>
#include <limits>

namespace cermet::onnx {
namespace {

/// Steps from a root to the farthest leaf. Throws Error where a node leads back to one before it.
std::int64_t depth_of(Lowering& l, const Forest& forest) {
  std::vector<std::int64_t> depth(forest.feature.size(), -1);
  std::int64_t deepest = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> left;
  for (const std::int64_t root : forest.roots) left.emplace_back(root, 0);
  while (!left.empty()) {
    const auto [node, at] = left.back();
    left.pop_back();
    const auto n = static_cast<std::size_t>(node);
    deepest = std::max(deepest, at);
    if (forest.is_leaf[n]) continue;
    l.expect(depth[n] < 0, "nodes: expected trees, found node {} below two others", node);
    depth[n] = at;
    left.emplace_back(forest.yes[n], at + 1);
    if (forest.no[n] != forest.yes[n]) left.emplace_back(forest.no[n], at + 1);
  }
  return deepest;
}

Operand taken(Lowering& l, Operand table, Operand at) {
  return l.op(OpKind::gather, {table, at}, {{"axis", std::int64_t{0}}});
}

/// Comparisons of rows' features with thresholds, each by its node's branch.
class Comparison {
 public:
  Comparison(Lowering& l, const Forest& forest, DType dtype) : l_(l), split_(l.vector(dtype, forest.split)) {
    for (std::size_t n = 0; n < forest.branch.size(); ++n)
      if (!forest.is_leaf[n] && std::ranges::find(kinds_, forest.branch[n]) == kinds_.end())
        kinds_.push_back(forest.branch[n]);
    if (kinds_.empty()) kinds_.push_back(Branch::less_equal);
    for (const Branch kind : kinds_) {
      Floats is(forest.branch.size());
      for (std::size_t n = 0; n < is.size(); ++n) is[n] = forest.branch[n] == kind;
      of_kind_.push_back(l.cast(l.vector(DType::u8, is), DType::boolean));
    }
    if (std::ranges::find(forest.missing_is_yes, true) == forest.missing_is_yes.end()) return;
    Floats is(forest.missing_is_yes.begin(), forest.missing_is_yes.end());
    missing_ = l.cast(l.vector(DType::u8, is), DType::boolean);
  }

  /// Whether values take the first way at their nodes.
  Operand operator()(Operand values, Operand nodes) const {
    const Operand split = taken(l_, split_, nodes);
    Operand yes;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      Operand holds = l_.binary(kind_of(kinds_[k]), values, split);
      if (kinds_.size() > 1) holds = l_.binary(OpKind::logical_and, holds, taken(l_, of_kind_[k], nodes));
      yes = yes ? l_.binary(OpKind::logical_or, yes, holds) : holds;
    }
    if (!missing_) return yes;
    return l_.binary(
        OpKind::logical_or, yes,
        l_.binary(OpKind::logical_and, l_.binary(OpKind::not_equal, values, values), taken(l_, missing_, nodes)));
  }

 private:
  static OpKind kind_of(Branch branch) {
    switch (branch) {
      case Branch::less_equal: return OpKind::less_equal;
      case Branch::less: return OpKind::less;
      case Branch::greater_equal: return OpKind::greater_equal;
      case Branch::greater: return OpKind::greater;
      case Branch::equal: return OpKind::equal;
      case Branch::not_equal: break;
    }
    return OpKind::not_equal;
  }

  Lowering& l_;
  Operand split_, missing_;
  std::vector<Branch> kinds_;
  std::vector<Operand> of_kind_;  ///< bool [nodes]
};

/// The leaves that rows reach, i64 [N, trees].
Operand leaves(Lowering& l, const Forest& forest, Operand rows) {
  const std::int64_t columns = l.size(rows, 1);
  l.expect(columns > 0, "expected at least one column, found {}", l.type(rows).to_string());
  for (std::size_t n = 0; n < forest.feature.size(); ++n)
    l.expect(forest.is_leaf[n] || (forest.feature[n] >= 0 && forest.feature[n] < columns),
             "nodes_featureids: expected some in [0, {}), found {}", columns, forest.feature[n]);
  const Comparison compare(l, forest, l.dtype(rows));
  const Operand feature = l.ints(forest.feature), yes = l.ints(forest.yes), no = l.ints(forest.no);
  const auto step = [&](Operand nodes, Operand values) {
    return l.op(OpKind::where, {compare(values, nodes), taken(l, yes, nodes), taken(l, no, nodes)});
  };
  const Operand roots = l.ints(forest.roots);
  Operand nodes = step(roots, l.op(OpKind::gather, {rows, taken(l, feature, roots)}, {{"axis", std::int64_t{1}}}));
  for (std::int64_t left = depth_of(l, forest) - 1; left > 0; --left)
    nodes = step(nodes, l.op(OpKind::gather_elements, {rows, taken(l, feature, nodes)}, {{"axis", std::int64_t{1}}}));
  return nodes;
}

}  // namespace

std::size_t Forest::add() {
  const auto at = static_cast<std::int64_t>(feature.size());
  branch.push_back(Branch::less_equal);
  feature.push_back(0);
  yes.push_back(at);
  no.push_back(at);
  split.push_back(0);
  missing_is_yes.push_back(false);
  is_leaf.push_back(true);
  weights.emplace_back();
  return feature.size() - 1;
}

Reached reached(Lowering& l, const Forest& forest, Operand rows, std::int64_t targets, Aggregate aggregate,
                DType weights) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  l.expect(!forest.roots.empty() && targets > 0 && targets <= (1 << 20), "expected trees and targets, found {} and {}",
           forest.roots.size(), targets);
  const double nothing = aggregate == Aggregate::least ? infinity : aggregate == Aggregate::most ? -infinity : 0;
  Floats table(l.listed(static_cast<std::int64_t>(forest.weights.size()) * targets), nothing), given(table.size(), 0);
  bool all_given = true;
  for (std::size_t n = 0; n < forest.weights.size(); ++n) {
    for (const auto& [target, weight] : forest.weights[n]) {
      l.expect(target >= 0 && target < targets, "targets of leaves: expected some in [0, {}), found {}", targets,
               target);
      const std::size_t place = n * static_cast<std::size_t>(targets) + static_cast<std::size_t>(target);
      double& at = table[place];
      at = aggregate == Aggregate::least  ? std::min(at, weight)
           : aggregate == Aggregate::most ? std::max(at, weight)
                                          : at + weight;
      given[place] = 1;
    }
    for (std::int64_t t = 0; t < targets && forest.is_leaf[n]; ++t)
      all_given = all_given && given[n * static_cast<std::size_t>(targets) + static_cast<std::size_t>(t)] != 0;
  }
  const Dims dims{static_cast<std::int64_t>(forest.weights.size()), targets};
  const Operand at = leaves(l, forest, rows);
  const auto of_leaves = [&](OpKind kind, DType dtype, const Floats& values) {
    return l.reduce(kind, taken(l, l.reshape(l.vector(dtype, values), dims), at), {1}, false);
  };
  Reached r;
  r.scores = of_leaves(aggregate == Aggregate::least  ? OpKind::reduce_min
                       : aggregate == Aggregate::most ? OpKind::reduce_max
                                                      : OpKind::reduce_sum,
                       weights, table);
  if (!all_given) r.any = l.binary(OpKind::greater, of_leaves(OpKind::reduce_max, DType::i32, given), 0.0);
  if (aggregate == Aggregate::average)
    r.scores = l.binary(OpKind::div, r.scores, static_cast<double>(forest.roots.size()));
  if (nothing != 0 && r.any) r.scores = l.op(OpKind::where, {r.any, r.scores, l.scalar(weights, 0)});
  return r;
}

}  // namespace cermet::onnx

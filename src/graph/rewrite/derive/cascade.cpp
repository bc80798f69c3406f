#include "graph/rewrite/derive/cascade.hpp"

#include <algorithm>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

using Kind = RowExpr::Kind;

bool is_call(const RowExprPtr& e, OpKind op) { return e->kind == Kind::call && e->op == op; }
bool is_statistic(const RowExprPtr& e, std::size_t r) { return e->kind == Kind::statistic && e->index == r; }
bool depends_on(const RowExprPtr& e, std::size_t r) {
  return is_statistic(e, r) ||
         std::ranges::any_of(e->operands, [&](const RowExprPtr& operand) { return depends_on(operand, r); });
}

/// The expression with the new value of every statistic that a step renews.
std::string text(const RowExprPtr& e, bool renewed) {
  const auto part = [&](std::size_t i) { return text(e->operands[i], renewed); };
  if (e->kind == Kind::operand) return fmt::format("x{}", e->index + 1);
  if (e->kind == Kind::statistic) return fmt::format("r{}{}", e->index + 1, renewed ? "'" : "");
  switch (e->op) {
    case OpKind::add: return fmt::format("({} + {})", part(0), part(1));
    case OpKind::sub: return fmt::format("({} - {})", part(0), part(1));
    case OpKind::mul: return fmt::format("{} * {}", part(0), part(1));
    case OpKind::div:
      return fmt::format("{} / {}", part(0),
                         e->operands[1]->kind == Kind::call ? fmt::format("({})", part(1)) : part(1));
    case OpKind::square: return fmt::format("({})^2", part(0));
    default: break;
  }
  std::string list;
  for (std::size_t i = 0; i < e->operands.size(); ++i) {
    const bool in_parentheses = is_call(e->operands[i], OpKind::add) || is_call(e->operands[i], OpKind::sub);
    list += (i == 0 ? "" : ", ") + (in_parentheses ? part(i).substr(1, part(i).size() - 2) : part(i));
  }
  return fmt::format("{}({})", definition(e->op).name, list);
}

struct Repair {
  std::string factor, inverse;  ///< in place of t it is t * factor; empty: t itself
  bool positive = true;         ///< known to be
};

/// "a * b", either of which may be empty.
std::string times(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : fmt::format("{} * {}", a, b);
}

class OnlineDerivation {
 public:
  OnlineDerivation(const GraphEditor& editor, const RowCascade& cascade) : editor_(editor), cascade_(cascade) {}

  CascadeDerivation run() {
    CascadeDerivation derivation;
    for (std::size_t s = 0; s < cascade_.statistics.size(); ++s) {
      std::string step = step_of(s);
      if (!reason_.empty()) {
        derivation.reason = std::move(reason_);
        return derivation;
      }
      derivation.steps.push_back(std::move(step));
    }
    derivation.steps.push_back("y = " + to_string(cascade_.result));
    derivation.merges = std::move(merges_);
    derivation.is_online = true;
    return derivation;
  }

 private:
  std::string step_of(std::size_t s) {
    const RowStatistic& statistic = cascade_.statistics[s];
    const std::string name = fmt::format("r{}", s + 1), term = text(statistic.of, true);
    std::string kept = name;
    for (std::size_t r = 0; r < s; ++r) {
      if (!depends_on(statistic.of, r)) continue;
      if (is_squared_distance(statistic, r)) {
        merges_.push_back(
            fmt::format("n * {0} = na * {0}a + nb * {0}b + (r{1}b - r{1}a)^2 * na * nb / n", name, r + 1));
        return chan(name, statistic, r);
      }
      const auto repair = repair_of(statistic.of, r);
      const bool ordered = statistic.reduction == OpKind::reduce_max || statistic.reduction == OpKind::reduce_min;
      if (!repair || (ordered && !repair->positive)) {
        reason_ = fmt::format("{} = {}({}): {}", name, definition(statistic.reduction).name, to_string(statistic.of),
                              repair ? fmt::format("the factor {} may be negative", repair->factor)
                                     : fmt::format("no repair for a new r{}", r + 1));
        return {};
      }
      if (!repair->factor.empty()) kept += " * " + repair->factor;
    }
    merges_.push_back(merge(statistic.reduction, name, kept));
    switch (statistic.reduction) {
      case OpKind::reduce_max: return fmt::format("{} <- max({}, {})", name, kept, term);
      case OpKind::reduce_min: return fmt::format("{} <- min({}, {})", name, kept, term);
      case OpKind::reduce_mean: return fmt::format("{} <- {} + ({} - {}) / n", name, kept, term, kept);
      default: return fmt::format("{} <- {} + {}", name, kept, term);
    }
  }

  /// "r2 * exp(r1 - r1')" of one part: "r2a * exp(r1a - r1)".
  static std::string of_part(const std::string& kept, char part) {
    std::string text;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      text += kept[i];
      const bool is_index = std::isdigit(static_cast<unsigned char>(kept[i])) &&
                            (i + 1 == kept.size() || !std::isdigit(static_cast<unsigned char>(kept[i + 1])));
      std::size_t first = i;
      while (first > 0 && std::isdigit(static_cast<unsigned char>(kept[first]))) --first;
      if (!is_index || kept[first] != 'r' || (first > 0 && std::isalpha(static_cast<unsigned char>(kept[first - 1]))))
        continue;
      if (i + 1 < kept.size() && kept[i + 1] == '\'') ++i;
      else text += part;
    }
    return text;
  }
  static std::string merge(OpKind reduction, const std::string& name, const std::string& kept) {
    const std::string a = of_part(kept, 'a'), b = of_part(kept, 'b');
    if (reduction == OpKind::reduce_max) return fmt::format("{} = max({}, {})", name, a, b);
    if (reduction == OpKind::reduce_min) return fmt::format("{} = min({}, {})", name, a, b);
    if (reduction == OpKind::reduce_mean) return fmt::format("n * {} = na * {} + nb * {}", name, a, b);
    return fmt::format("{} = {} + {}", name, a, b);
  }

  /// (c - r)^2 with r the mean of c.
  bool is_squared_distance(const RowStatistic& statistic, std::size_t r) const {
    const bool adds = statistic.reduction == OpKind::reduce_sum || statistic.reduction == OpKind::reduce_mean;
    const RowStatistic& mean = cascade_.statistics[r];
    if (!adds || mean.reduction != OpKind::reduce_mean || !is_call(statistic.of, OpKind::square)) return false;
    const RowExprPtr& distance = statistic.of->operands[0];
    return is_call(distance, OpKind::sub) && is_statistic(distance->operands[1], r) &&
           to_string(distance->operands[0]) == to_string(mean.of);
  }
  static std::string chan(const std::string& name, const RowStatistic& statistic, std::size_t r) {
    const std::string c = text(statistic.of->operands[0]->operands[0], true), mean = fmt::format("r{}", r + 1);
    return fmt::format("n * {0} <- n * {0} + ({1} - {2}) * ({1} - {2}')", name, c, mean);
  }

  /// By what a term is multiplied when statistic r changes.
  std::optional<Repair> repair_of(const RowExprPtr& e, std::size_t r) const {
    if (!depends_on(e, r)) return Repair{};
    if (!has_element(e))
      return Repair{fmt::format("({} / {})", renewed(e, r), to_string(e)),
                    fmt::format("({} / {})", to_string(e), renewed(e, r)), is_positive(e)};
    if (e->kind != Kind::call) return {};
    if (e->op == OpKind::exp && is_call(e->operands[0], OpKind::sub) && is_statistic(e->operands[0]->operands[1], r) &&
        !depends_on(e->operands[0]->operands[0], r))
      return Repair{fmt::format("exp(r{0} - r{0}')", r + 1), fmt::format("exp(r{0}' - r{0})", r + 1), true};
    if (e->op == OpKind::abs || e->op == OpKind::square) {
      auto inner = repair_of(e->operands[0], r);
      if (inner && e->op == OpKind::abs && !inner->positive)
        *inner = {fmt::format("abs({})", inner->factor), fmt::format("abs({})", inner->inverse), true};
      if (inner && e->op == OpKind::square)
        *inner = {times(inner->factor, inner->factor), times(inner->inverse, inner->inverse), true};
      return inner;
    }
    if (e->op == OpKind::neg) return repair_of(e->operands[0], r);
    if (e->op != OpKind::mul && e->op != OpKind::div) return {};
    const auto left = repair_of(e->operands[0], r);
    auto right = repair_of(e->operands[1], r);
    if (!left || !right) return {};
    if (e->op == OpKind::div) std::swap(right->factor, right->inverse);
    return Repair{times(left->factor, right->factor), times(left->inverse, right->inverse),
                  left->positive && right->positive};
  }

  /// Whether something in it differs between the elements of a row.
  bool has_element(const RowExprPtr& e) const {
    if (e->kind == Kind::operand) {
      for (const AxisList& list : cascade_.operands[e->index].dims)
        for (const Axis a : list)
          if (std::ranges::count(cascade_.axis, a) > 0) return true;
      return false;
    }
    return std::ranges::any_of(e->operands, [&](const RowExprPtr& operand) { return has_element(operand); });
  }

  /// The expression with one statistic renewed.
  static std::string renewed(const RowExprPtr& e, std::size_t r) {
    std::string with = to_string(e);
    const std::string name = fmt::format("r{}", r + 1);
    for (std::size_t at = with.find(name); at != std::string::npos; at = with.find(name, at + name.size() + 1))
      if (at + name.size() == with.size() || !std::isdigit(static_cast<unsigned char>(with[at + name.size()])))
        with.insert(at + name.size(), "'");
    return with;
  }

  bool is_positive(const RowExprPtr& e) const {
    if (e->kind == Kind::statistic) {
      const RowStatistic& statistic = cascade_.statistics[e->index];
      return statistic.reduction != OpKind::reduce_min && is_positive(statistic.of);
    }
    if (e->kind == Kind::operand) {
      const Value& value = editor_.value(cascade_.operands[e->index].value);
      const TensorData* data = value.data();
      return data && value.type.dtype == DType::f32 && data->bytes().size() == sizeof(float) &&
             *reinterpret_cast<const float*>(data->bytes().data()) >= 0;
    }
    if (e->op == OpKind::square || e->op == OpKind::abs || e->op == OpKind::exp || e->op == OpKind::sqrt ||
        e->op == OpKind::rsqrt)
      return true;
    const bool keeps = e->op == OpKind::add || e->op == OpKind::mul || e->op == OpKind::div ||
                       e->op == OpKind::reciprocal || e->op == OpKind::max;
    return keeps && std::ranges::all_of(e->operands, [&](const RowExprPtr& operand) { return is_positive(operand); });
  }

  const GraphEditor& editor_;
  const RowCascade& cascade_;
  std::string reason_;
  std::vector<std::string> merges_;
};

void multiply(std::map<std::string, int>& powers, const RowExprPtr& e, int power) {
  if (is_call(e, OpKind::mul) || is_call(e, OpKind::div)) {
    multiply(powers, e->operands[0], power);
    multiply(powers, e->operands[1], e->op == OpKind::mul ? power : -power);
  } else if (is_call(e, OpKind::reciprocal)) {
    multiply(powers, e->operands[0], -power);
  } else {
    powers[to_string(e)] += power;
  }
}

}  // namespace

std::string to_string(const RowExprPtr& expression) { return text(expression, false); }

CascadeDerivation derive_online(const GraphEditor& editor, const RowCascade& cascade) {
  return OnlineDerivation(editor, cascade).run();
}

std::map<std::string, int> powers_of(const RowExprPtr& expression) {
  std::map<std::string, int> powers;
  multiply(powers, expression, 1);
  std::erase_if(powers, [](const auto& factor) { return factor.second == 0; });
  return powers;
}

std::optional<IndexedValue> softmax_operand(const RowCascade& cascade) {
  if (cascade.statistics.size() != 2) return {};
  const RowStatistic &largest = cascade.statistics[0], &sum = cascade.statistics[1];
  if (largest.reduction != OpKind::reduce_max || largest.of->kind != Kind::operand ||
      sum.reduction != OpKind::reduce_sum)
    return {};
  const std::string weight = fmt::format("exp(x{} - r1)", largest.of->index + 1);
  if (powers_of(sum.of) != std::map<std::string, int>{{weight, 1}}) return {};
  if (powers_of(cascade.result) != std::map<std::string, int>{{weight, 1}, {"r2", -1}}) return {};
  return cascade.operands[largest.of->index];
}

}  // namespace cermet

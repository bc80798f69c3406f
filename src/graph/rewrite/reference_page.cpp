#include "graph/rewrite/reference_page.hpp"

#include <algorithm>
#include <map>

#include "base/markdown.hpp"
#include "graph/rewrite/rule.hpp"

namespace cermet {
std::string rule_reference_markdown() {
  std::map<RuleClass, std::string> tables;
  std::map<RuleClass, int> counts;
  for (const Rule& rule : rewrite_rules()) {
    tables[rule.rule_class] += fmt::format("| {} | {} | `{}` | {} |\n", rule.name, name_of(rule.rounding),
                                           table_cell(rule.summary), table_cell(rule.when));
    ++counts[rule.rule_class];
  }
  std::string text = fmt::format(
      "# Rewrite rules\n\n"
      "The {} rules that rewrite graphs, generated from their rows in `src/graph/rewrite` (`cermet rules` prints "
      "them). Rules of algebra are applied where "
      "they\n"
      "save most bytes and operations, and only where they save any; rules of whole operators follow.\n\n"
      "- exact: every result keeps its bits. So it is with every rule marked `number` where elements are integers, "
      "which wrap.\n"
      "- strict: the same formula; float32 steps may be done in another order or not be stored. NaN, infinities and "
      "signed zeros "
      "of\n"
      "  operands, and steps that overflow, give what they gave; open are only the sign of a zero that max, min, relu, "
      "clip or a sum of one element gives, "
      "and\n"
      "  steps of an activation or a normalization that is put together from its formula. The default.\n"
      "- fast: another formula of the same value in exact arithmetic, or a value in between that was rounded to a "
      "narrower type is not any more. What "
      "infinities\n"
      "  and NaN give may change, and near a type's limits a step may overflow; f16 is left alone. "
      "`CERMET_ROUNDING=fast` takes these, too.\n\n"
      "In patterns, `c#` is a constant whose elements are one known number, `w@` any constant, `-` an operand that is "
      "not given, and `[..]` a number computed "
      "of\n"
      "captured ones (of another value it reads the length of a row). Operands of a commutative operator stand in "
      "either order. Elements are floating unless "
      "the\n"
      "condition says `number` (or integers), `integer` or `any`; comparisons with values must follow from the "
      "operators that made them, for all elements "
      "that\n"
      "are not NaN.\n",
      rewrite_rules().size());
  for (const auto& [rule_class, table] : tables)
    text += fmt::format("\n## {} ({})\n\n| rule | rounding | before and after | when |\n|---|---|---|---|\n{}",
                        name_of(rule_class), counts[rule_class], table);
  return text;
}

}  // namespace cermet

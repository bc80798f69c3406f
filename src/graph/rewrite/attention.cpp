#include "graph/rewrite/derive/attention_form.hpp"
#include "graph/rewrite/replace.hpp"

namespace cermet {

bool derive_attention(const Rule& rule, GraphEditor& editor, NodeId anchor) {
  Axes axes;
  const AttentionOrReason found = derive_attention(editor, axes, anchor, rule.rounding == RoundingClass::fast);
  return found.form && place_attention(editor, axes, *found.form);
}

}  // namespace cermet

// Scores of the models of ai.onnx.ml, and the labels that they choose.
#pragma once

#include "onnx/lowering.hpp"

namespace cermet::onnx {

/// Scores [N, E] after the transformation that attribute post_transform names.
Operand transformed_scores(Lowering& l, Operand scores);
/// The same by name: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT.
Operand transformed_scores(Lowering& l, Operand scores, std::string_view transformation);
/// The label of each row's largest score, i64 [N].
Operand best_label(Lowering& l, Operand scores, const Ints& labels);
/// labels[1] where the condition [N, 1] holds, else labels[0]: i64 [N].
Operand label_where(Lowering& l, Operand condition, const Ints& labels);

/// Refuses an attribute of strings by name.
[[noreturn]] void refuse_strings(const Lowering& l, std::string_view attribute);

}  // namespace cermet::onnx

// ai.onnx.ml: features of tables, and linear models.
#include <algorithm>
#include <cmath>

#include "onnx/lower/scores.hpp"

namespace cermet::onnx {
namespace {

/// Numbers of an attribute, one or as many as x has columns, as a row.
Operand columns_of(Lowering& l, Operand x, std::string_view name) {
  const Floats values = l.numbers(name);
  const bool fits =
      values.size() == 1 || (l.rank(x) >= 1 && l.dim(x, -1) == Dim(static_cast<std::int64_t>(values.size())));
  l.expect(fits, "attribute {}: expected 1 number or one for each column of {}, found {}", name, l.type(x).to_string(),
           values.size());
  return values.size() == 1 ? l.scalar(DType::f32, values[0]) : l.vector(DType::f32, values);
}

/// Rows of a table in float32: [N, C], or one row [C] as [1, C].
Operand table_of(Lowering& l, Operand x) {
  l.expect(l.rank(x) == 1 || l.rank(x) == 2, "expected [rows, columns] or [columns], found {}", l.type(x).to_string());
  x = l.cast(x, DType::f32);
  return l.rank(x) == 1 ? l.unsqueeze(x, {0}) : x;
}

/// x times coefficients [targets, C] plus intercepts, [N, targets].
Operand linear_model(Lowering& l, Operand x, std::int64_t targets) {
  const Floats coefficients = l.numbers("coefficients"), intercepts = l.numbers("intercepts");
  const std::int64_t columns = l.size(x, 1);
  l.expect(targets > 0 && columns > 0 && static_cast<std::size_t>(targets) <= coefficients.size() &&
               coefficients.size() == static_cast<std::size_t>(targets) * static_cast<std::size_t>(columns),
           "attribute coefficients: expected {} for each of {} columns, found {}", targets, columns,
           coefficients.size());
  l.expect(intercepts.empty() || intercepts.size() == static_cast<std::size_t>(targets),
           "attribute intercepts: expected {}, found {}", targets, intercepts.size());
  std::vector<Operand> operands{x, l.reshape(l.vector(DType::f32, coefficients), {targets, columns})};
  if (!intercepts.empty()) operands.push_back(l.vector(DType::f32, intercepts));
  return l.op(OpKind::linear, operands);
}

}  // namespace

void lower_scaler(Lowering& l) {
  const Operand x = l.cast(l.in(0), DType::f32);
  l.set(0, l.binary(OpKind::mul, l.binary(OpKind::sub, x, columns_of(l, x, "offset")), columns_of(l, x, "scale")));
}

void lower_binarizer(Lowering& l) {
  const Operand x = l.in(0);
  l.set(0, l.cast(l.binary(OpKind::greater, x, l.number("threshold", 0)), l.dtype(x)));
}

void lower_normalizer(Lowering& l) {
  const Operand x = l.cast(l.in(0), DType::f32);
  const std::string norm = l.text("norm", "MAX");
  const Ints last{l.rank(x) - 1};
  Operand divisor;
  if (norm == "MAX") divisor = l.reduce(OpKind::reduce_max, x, last, true);
  else if (norm == "L1") divisor = l.reduce(OpKind::reduce_sum, l.unary(OpKind::abs, x), last, true);
  else if (norm == "L2")
    divisor = l.unary(OpKind::sqrt, l.reduce(OpKind::reduce_sum, l.unary(OpKind::square, x), last, true));
  else l.unsupported("attribute norm: expected MAX, L1 or L2, found {}", norm);
  l.set(0, l.binary(OpKind::div, x,
                    l.op(OpKind::where, {l.binary(OpKind::equal, divisor, 0.0), l.scalar(DType::f32, 1), divisor})));
}

/// Elements of the last axis; of one row it gives one row.
void lower_array_feature_extractor(Lowering& l) {
  Operand x = l.in(0);
  if (l.rank(x) == 1) x = l.unsqueeze(x, {0});
  const Operand at = l.in(1);
  l.set(0, l.op(OpKind::gather, {x, l.reshape(l.cast(at, DType::i64), {product(l.dims(at))})},
                {{"axis", std::int64_t{l.rank(x) - 1}}}));
}

void lower_imputer(Lowering& l) {
  const Operand x = l.in(0);
  const bool whole = is_integer(l.dtype(x));
  Operand missing, value;
  if (whole) {
    const Ints values = l.integers("imputed_value_int64s");
    l.expect(!values.empty(), "attribute imputed_value_int64s: expected some for operands of {}, found none",
             name_of(l.dtype(x)));
    missing =
        l.binary(OpKind::equal, x, l.cast(l.reshape(l.ints({l.integer("replaced_value_int64", 0)}), {}), l.dtype(x)));
    value = values.size() == 1 ? l.reshape(l.ints(values), {}) : l.ints(values);
  } else {
    const double replaced = l.number("replaced_value_float", 0);
    missing = std::isnan(replaced) ? l.unary(OpKind::is_nan, x) : l.binary(OpKind::equal, x, replaced);
    value = columns_of(l, x, "imputed_value_floats");
  }
  l.set(0, l.op(OpKind::where, {missing, l.cast(value, l.dtype(x)), x}));
}

/// One more axis: 1 at the category of each element.
void lower_one_hot_encoder(Lowering& l) {
  if (!l.texts("cats_strings").empty()) refuse_strings(l, "cats_strings");
  if (l.integer("zeros", 1) == 0)
    l.unsupported("attribute zeros: 0 is not supported: a category that is not listed gives zeros");
  const Operand x = l.cast(l.in(0), DType::i64);
  l.set(0, l.cast(l.binary(OpKind::equal, l.unsqueeze(x, {l.rank(x)}), l.ints(l.integers("cats_int64s"))), DType::f32));
}

void lower_feature_vectorizer(Lowering& l) {
  const Ints sizes = l.integers("inputdimensions");
  l.expect(sizes.size() == l.inputs(), "attribute inputdimensions: expected {}, one for each operand, found {}",
           l.inputs(), sizes.size());
  std::vector<Operand> columns;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Operand x = l.in(i);
    if (l.rank(x) > 2) x = l.reshape(x, {l.dim(x, 0), product({l.dims(x).begin() + 1, l.dims(x).end()})});
    x = table_of(l, x);
    const std::int64_t found = l.size(x, 1);
    l.expect(sizes[i] >= 0 && sizes[i] < (1 << 30), "attribute inputdimensions: expected sizes, found {}", sizes[i]);
    if (found > sizes[i]) x = l.slice(x, 1, 0, sizes[i]);
    if (found < sizes[i]) x = l.op(OpKind::pad, {x}, {{"pads", Ints{0, 0, 0, sizes[i] - found}}});
    columns.push_back(x);
  }
  l.set(0, l.concat(columns, 1));
}

void lower_linear_regressor(Lowering& l) {
  l.set(0, transformed_scores(l, linear_model(l, table_of(l, l.in(0)), l.integer("targets", 1))));
}

void lower_linear_classifier(Lowering& l) {
  if (l.has_attribute("classlabels_strings") && !l.texts("classlabels_strings").empty())
    refuse_strings(l, "classlabels_strings");
  const Ints labels = l.integers("classlabels_ints");
  const auto targets = static_cast<std::int64_t>(std::max<std::size_t>(1, l.numbers("intercepts").size()));
  Operand scores = linear_model(l, table_of(l, l.in(0)), targets);
  const bool added = targets == 1 && labels.size() == 2;  // the score of the second class alone
  if (added) {
    const bool fraction = l.text("post_transform", "NONE") == "LOGISTIC";
    const Operand sure = fraction ? l.unary(OpKind::sigmoid, scores) : scores;
    l.set(0, label_where(l, l.binary(OpKind::greater, sure, fraction ? 0.5 : 0.0), labels));
    if (fraction) return l.set(1, l.concat({l.unary(OpKind::sigmoid, l.unary(OpKind::neg, scores)), sure}, 1));
    return l.set(1, l.concat({l.binary(OpKind::sub, l.scalar(DType::f32, 1), scores), scores}, 1));
  }
  l.expect(labels.size() == static_cast<std::size_t>(targets), "attribute classlabels_ints: expected {}, found {}",
           targets, labels.size());
  l.set(0, best_label(l, scores, labels));
  l.set(1, transformed_scores(l, scores));
}

}  // namespace cermet::onnx

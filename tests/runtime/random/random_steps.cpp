// What a step of a random graph may be.
#include "tests/runtime/random/maker.hpp"

namespace cermet::test {

void Maker::unary() {
  static const std::vector<OpKind> smooth{OpKind::neg,       OpKind::abs,        OpKind::relu,       OpKind::sigmoid,
                                          OpKind::silu,      OpKind::gelu,       OpKind::tanh,       OpKind::erf,
                                          OpKind::gelu_tanh, OpKind::softplus,   OpKind::square,     OpKind::hard_swish,
                                          OpKind::clip,      OpKind::exp,        OpKind::sqrt,       OpKind::mish,
                                          OpKind::softsign,  OpKind::reciprocal, OpKind::leaky_relu, OpKind::cos};
  static const std::vector<OpKind> steps{OpKind::floor, OpKind::round, OpKind::sign, OpKind::ceil};
  const ValueId x = pick();
  if (type(x).dtype == DType::boolean) return keep(apply(OpKind::logical_not, {x}));
  if (!is_float(x)) return keep(apply(any(std::vector<OpKind>{OpKind::neg, OpKind::abs, OpKind::relu}), {x}));
  if (one_in(40)) {
    made_.is_continuous = false;
    return keep(apply(any(steps), {x}));
  }
  const OpKind op = any(smooth);
  if (op == OpKind::reciprocal) made_.is_continuous = false;  // near 0 errors have no bound
  keep(apply(op, {x}, op == OpKind::clip ? Attributes{{"low", -1.0}, {"high", 2.0}} : Attributes{}));
}

void Maker::binary() {
  const ValueId x = pick();
  if (type(x).dtype == DType::boolean)
    return keep(
        apply(any(std::vector<OpKind>{OpKind::logical_and, OpKind::logical_or, OpKind::logical_xor}), {x, like(x)}));
  static const std::vector<OpKind> ops{OpKind::add, OpKind::add, OpKind::add, OpKind::mul, OpKind::mul,
                                       OpKind::mul, OpKind::sub, OpKind::max, OpKind::min, OpKind::div};
  ValueId y = partner(x);
  const OpKind op = any(ops);
  if (op == OpKind::div && is_float(x) && !one_in(4))
    y = apply(OpKind::add, {apply(OpKind::abs, {y}), number(type(y).dtype, 1)});
  else if (op == OpKind::div) made_.is_continuous = false;
  keep(op != OpKind::div && one_in(3) ? apply(op, {y, x}) : apply(op, {x, y}));
}

/// Something of i32 or bool, of f32 by way of a cast.
ValueId Maker::whole_number() {
  const ValueId x = pick();
  if (type(x).dtype == DType::boolean)
    return apply(OpKind::cast, {x}, {{"out_dtype", one_in(2) ? "i32" : std::string(name_of(dtype_))}});
  if (!is_float(x))
    return one_in(2) ? apply(any(std::vector<OpKind>{OpKind::equal, OpKind::less}), {x, partner(x)})
                     : apply(OpKind::cast, {x}, {{"out_dtype", "f32"}});
  if (one_in(4)) {
    made_.is_continuous = false;
    return apply(any(std::vector<OpKind>{OpKind::less, OpKind::greater_equal, OpKind::equal}), {x, partner(x)});
  }
  return apply(OpKind::cast, {x}, {{"out_dtype", any(std::vector<std::string>{"f32", "f16", "bf16"})}});
}

void Maker::choice() {
  std::vector<ValueId> conditions;
  for (const ValueId y : values_)
    if (type(y).dtype == DType::boolean) conditions.push_back(y);
  const ValueId x = pick();
  if (!conditions.empty()) return keep(apply(OpKind::where, {any(conditions), x, partner(x)}));
  return keep(apply(OpKind::add, {x, like(x)}));  // a residual
}

void Maker::shape() {
  const ValueId x = pick();
  const Dims& dims = type(x).dims;
  switch (below(4)) {
    case 0: {
      Ints permutation;
      for (int i = 0; i < rank(x); ++i) permutation.push_back(i);
      std::ranges::shuffle(permutation, random_);
      return keep(apply(OpKind::transpose, {x}, {{"permutation", permutation}}));
    }
    case 1: {  // joins or splits dimensions after the first, or all
      Ints to{0, -1};
      if (rank(x) == 2 && dims[1].is_constant() && dims[1].constant() % 2 == 0)
        to = one_in(2) ? Ints{0, 2, dims[1].constant() / 2} : Ints{0, dims[1].constant() / 2, 2};
      if (one_in(4)) to = {-1};
      if (one_in(4)) {
        to.clear();
        for (int i = 0; i < rank(x); ++i) to.push_back(0);
        to.insert(to.begin() + below(rank(x) + 1), 1);
      }
      return keep(apply(OpKind::reshape, {x}, {{"shape", to}}));
    }
    case 2: {
      Ints to;
      for (const Dim& d : dims) to.push_back(d == Dim(1) ? 1 + below(4) : -1);
      if (one_in(2)) to.insert(to.begin(), 2);
      return keep(apply(OpKind::expand, {x}, {{"shape", to}}));
    }
    default: return keep(apply(OpKind::concat, {x, like(x)}, {{"axis", axis_of(x)}}));
  }
}

void Maker::part() {
  const ValueId x = pick();
  const std::int64_t axis = axis_of(x);
  if (rank(x) == 0) return;
  const Dim& d = type(x).dims[static_cast<std::size_t>(axis)];
  if (!d.is_constant()) return unary();
  const std::int64_t n = d.constant();
  if (one_in(2) && n > 1) {
    const std::int64_t first = 1 + below(n - 1);
    for (const ValueId y : graph().apply_all(OpKind::split, {x}, {{"axis", axis}, {"sizes", Ints{first, n - first}}}))
      keep(y);
    return;
  }
  if (one_in(4)) {
    Ints pads(static_cast<std::size_t>(2 * rank(x)));
    pads[static_cast<std::size_t>(axis)] = 1;
    pads[static_cast<std::size_t>(axis + rank(x))] = below(3);
    return keep(apply(OpKind::pad, {x}, {{"pads", pads}}));
  }
  const std::int64_t start = below(n + 1), end = one_in(2) ? std::numeric_limits<std::int64_t>::max() : below(n + 1);
  keep(apply(OpKind::slice, {x},
             {{"starts", Ints{start}}, {"ends", Ints{end}}, {"axes", Ints{axis}}, {"steps", Ints{1 + below(2)}}}));
}

void Maker::reduction() {
  const ValueId x = pick();
  if (type(x).dtype == DType::boolean) return;
  if (one_in(6))
    return keep(apply(OpKind::cumsum, {x}, {{"axis", axis_of(x)}, {"reverse", one_in(2)}, {"exclusive", one_in(3)}}));
  if (is_float(x) && one_in(2)) {
    const ValueId y = apply(OpKind::softmax, {x}, {{"log", one_in(5)}});
    return keep(y);
  }
  static const std::vector<OpKind> ops{OpKind::reduce_sum, OpKind::reduce_mean, OpKind::reduce_max, OpKind::reduce_min,
                                       OpKind::reduce_prod};
  keep(apply(any(ops), {x},
             {{"axes", one_in(6)   ? Ints{}
                       : one_in(2) ? Ints{-1}
                                   : Ints{axis_of(x)}},
              {"keepdims", !one_in(3)}}));
}

void Maker::norm() {
  const ValueId x = pick_float();
  if (rank(x) == 0 || !type(x).dims.back().is_constant()) return unary();
  const Dims last{type(x).dims.back()};
  const DType t = type(x).dtype;
  switch (below(5)) {
    case 0: {
      const Dims channels{type(x).dims.at(rank(x) > 1 ? 1 : 0)};
      if (rank(x) < 3 || !channels[0].is_constant()) return unary();
      return keep(apply(OpKind::instance_norm, {x, weight(t, channels), weight(t, channels)}));
    }
    case 1:
    case 2:
      return keep(one_in(4) ? apply(OpKind::layer_norm, {x})
                            : apply(OpKind::layer_norm, {x, weight(t, last), one_in(3) ? ValueId{} : weight(t, last)}));
    default: return keep(apply(OpKind::rms_norm, {x, weight(t, last)}));
  }
}

void Maker::product() {
  const ValueId x = pick_float();
  if (rank(x) == 0) return unary();
  const DType t = type(x).dtype;
  if (rank(x) >= 2 && one_in(3)) {  // of two values
    const ValueId y = one_in(2) ? like(x) : x;
    const bool first = one_in(2);
    return keep(apply(OpKind::matmul, {x, y}, {{"transpose_a", first}, {"transpose_b", !first}}));
  }
  if (!type(x).dims.back().is_constant()) return unary();
  const Dim n = one_in(2) ? base_.back() : Dim(1 + below(40));
  if (one_in(4)) return keep(apply(OpKind::matmul, {x, weight(t, {type(x).dims.back(), n})}));
  std::vector<ValueId> operands{x, weight(t, {n, type(x).dims.back()})};
  if (one_in(2)) operands.push_back(weight(t, {n}));
  ValueId y = apply(OpKind::linear, operands);
  keep(y);
  if (one_in(2)) {  // what compilers look for after a product
    if (one_in(2)) y = apply(OpKind::add, {y, weight(t, {n})});
    if (one_in(2)) y = apply(any(std::vector<OpKind>{OpKind::relu, OpKind::silu, OpKind::gelu}), {y});
    keep(y);
  }
}

void Maker::window() {
  const ValueId x = pick_float();
  if (rank(x) != 4) return product();
  const DType t = type(x).dtype;
  const Dims& dims = type(x).dims;
  if (!dims[1].is_constant()) return unary();
  if (one_in(3)) {
    const Attributes attributes{{"kernel", Ints{2, 2}}, {"strides", one_in(2) ? Ints{2, 2} : Ints{1, 1}}};
    return keep(apply(one_in(2) ? OpKind::max_pool : OpKind::average_pool, {x}, attributes));
  }
  const std::int64_t k = one_in(2) ? 1 : 3, channels = dims[1].constant(), made = 1 + below(9);
  const bool depthwise = one_in(3);
  const Dims w{depthwise ? channels : made, depthwise ? Dim(1) : Dim(channels), k, k};
  const std::int64_t pad = one_in(3) ? 0 : k / 2, stride = one_in(4) ? 2 : 1;
  std::vector<ValueId> operands{x, weight(t, w)};
  if (one_in(2)) operands.push_back(weight(t, {w[0]}));
  const ValueId y = apply(OpKind::conv, operands,
                          {{"pads", Ints{pad, pad, pad, pad}},
                           {"strides", Ints{stride, stride}},
                           {"group", depthwise ? channels : std::int64_t{1}}});
  keep(y);
  if (one_in(2)) keep(apply(OpKind::relu, {y}));
}

void Maker::lookup() {
  const ValueId x = pick();
  const std::int64_t axis = axis_of(x);
  if (rank(x) == 0) return;
  const Dim& d = type(x).dims[static_cast<std::size_t>(axis)];
  if (!d.is_constant() || d == Dim(0)) return unary();
  std::vector<std::int32_t> indices;
  for (std::int64_t i = 0, n = 1 + below(6); i < n; ++i)
    indices.push_back(static_cast<std::int32_t>(below(d.constant())));
  const ValueId list = graph().add_constant(fmt::format("i{}", graph().values().size()),
                                            TensorData::of({DType::i32, {std::ssize(indices)}}, indices));
  keep(apply(OpKind::gather, {x, list}, {{"axis", axis}}));
}

/// Two products of one value, one of which the other opens.
void Maker::gate() {
  const ValueId x = pick_float();
  if (rank(x) == 0 || !type(x).dims.back().is_constant()) return unary();
  const Dims w{1 + below(24), type(x).dims.back()};
  const DType t = type(x).dtype;
  const ValueId open = apply(one_in(2) ? OpKind::silu : OpKind::gelu, {apply(OpKind::linear, {x, weight(t, w)})}),
                up = apply(OpKind::linear, {x, weight(t, w)});
  keep(one_in(2) ? apply(OpKind::mul, {open, up}) : apply(OpKind::mul, {up, open}));
}

/// Products with the weights of a softmax, with a scale and a bias now and then.
void Maker::attention() {
  const ValueId q = pick_float();
  if (rank(q) < 2) return unary();
  const ValueId k = like(q), v = like(q);
  ValueId scores = apply(OpKind::matmul, {q, k}, {{"transpose_a", false}, {"transpose_b", true}});
  const DType t = type(q).dtype;
  if (one_in(2)) scores = apply(OpKind::mul, {scores, number(t, 0.5)});
  if (one_in(3)) scores = apply(OpKind::add, {scores, partner(scores)});
  if (one_in(6)) keep(scores);
  keep(apply(OpKind::matmul, {apply(OpKind::softmax, {scores}), v}));
}

/// An image with its channels last, or first again.
void Maker::image() {
  const ValueId x = pick_float();
  if (rank(x) != 4) return shape();
  keep(apply(OpKind::transpose, {x}, {{"permutation", one_in(2) ? Ints{0, 2, 3, 1} : Ints{0, 3, 1, 2}}}));
}

/// Operators as exporters write them out, which rules put back together.
void Maker::written_out() {
  const ValueId x = pick_float();
  const DType t = type(x).dtype;
  const Attributes last{{"axes", Ints{-1}}, {"keepdims", true}};
  if (rank(x) == 0) return unary();
  switch (below(5)) {
    case 0: return keep(apply(OpKind::mul, {x, apply(OpKind::sigmoid, {x})}));
    case 1: {
      const ValueId half = apply(
          OpKind::add, {apply(OpKind::erf, {apply(OpKind::div, {x, number(t, 1.4142135623730951)})}), number(t, 1)});
      return keep(apply(OpKind::mul, {apply(OpKind::mul, {x, half}), number(t, 0.5)}));
    }
    case 2: {
      const ValueId e = apply(OpKind::exp, {apply(OpKind::sub, {x, apply(OpKind::reduce_max, {x}, last)})});
      return keep(apply(OpKind::div, {e, apply(OpKind::reduce_sum, {e}, last)}));
    }
    case 3: {
      const ValueId mean = apply(OpKind::reduce_mean, {apply(OpKind::square, {x})}, last);
      return keep(apply(OpKind::div, {x, apply(OpKind::sqrt, {apply(OpKind::add, {mean, number(t, 1e-3)})})}));
    }
    default: {
      const ValueId centered = apply(OpKind::sub, {x, apply(OpKind::reduce_mean, {x}, last)});
      const ValueId variance = apply(OpKind::reduce_mean, {apply(OpKind::mul, {centered, centered})}, last);
      return keep(
          apply(OpKind::div, {centered, apply(OpKind::sqrt, {apply(OpKind::add, {variance, number(t, 1e-3)})})}));
    }
  }
}

}  // namespace cermet::test

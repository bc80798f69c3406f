// Attention as an exporter or a person may write it: every choice that leaves the mathematics alone is drawn at random.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "graph/graph.hpp"

namespace cermet {

class Spelling {
 public:
  explicit Spelling(unsigned seed) : random_(seed) {
    batch_ = 1 + draw(2), kv_heads_ = 1 + draw(3), group_ = draw(3) == 0 ? 2 : 1, queries_ = 3 + draw(3),
    keys_ = 5 + draw(3), size_ = 4, value_size_ = draw(2) ? 4 : 3;
    graph_.name = "spelling";
    build();
  }
  const Graph& graph() const { return graph_; }
  /// Longest chain of float32 roundings times the magnitudes of values (1) and scores (9, with biases of both signs).
  double allowed() const {
    return (2 * (static_cast<double>(size_) + 8) + static_cast<double>(keys_)) * std::ldexp(1.0, -24) * 10;
  }

 private:
  std::int64_t draw(std::int64_t count) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(count)); }
  std::int64_t heads() const { return kv_heads_ * group_; }

  ValueId reshape(ValueId x, const Ints& shape) { return graph_.apply(OpKind::reshape, {x}, {{"shape", shape}}); }
  ValueId transpose(ValueId x, const Ints& permutation) {
    return graph_.apply(OpKind::transpose, {x}, {{"permutation", permutation}});
  }
  ValueId number(double value) {
    return graph_.add_constant(fmt::format("number{}", ++count_),
                               TensorData::of<float>({DType::f32, {}}, {static_cast<float>(value)}));
  }
  ValueId times(ValueId x, double factor) {
    if (draw(2)) return graph_.apply(OpKind::div, {x, number(1 / factor)});
    return draw(2) ? graph_.apply(OpKind::mul, {x, number(factor)}) : graph_.apply(OpKind::mul, {number(factor), x});
  }

  /// An input [B, H, tokens, size], kept in any order of its axes, the inner ones joined or not.
  ValueId operand(const char* name, std::int64_t heads, std::int64_t tokens, std::int64_t size) {
    const Ints logical{batch_, heads, tokens, size};
    Ints axes{0, 1, 2, 3};
    if (draw(3) == 0) std::ranges::shuffle(axes, random_);
    else if (draw(2)) axes = {0, 2, 1, 3};
    Dims dims;
    Ints shape, back(4);
    for (std::size_t i = 0; i < 4; ++i) {
      shape.push_back(logical[static_cast<std::size_t>(axes[i])]);
      back[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
    }
    const bool joins = draw(2);
    for (const std::int64_t d : joins ? Ints{shape[0], shape[1], shape[2] * shape[3]} : shape) dims.push_back(d);
    ValueId x = graph_.apply(OpKind::neg, {graph_.add_input(name, {DType::f32, dims})});
    if (joins) x = reshape(x, shape);
    return transpose(x, back);
  }

  /// Key-value heads repeated for their groups.
  ValueId repeated(ValueId x, std::int64_t tokens, std::int64_t size) {
    if (group_ == 1) return x;
    x = reshape(x, {batch_, kv_heads_, 1, tokens, size});
    x = graph_.apply(OpKind::expand, {x}, {{"shape", Ints{-1, -1, group_, -1, -1}}});
    return reshape(x, {batch_, heads(), tokens, size});
  }
  /// [B, H, a, b] as the products see it.
  ValueId stacked(ValueId x, std::int64_t a, std::int64_t b) {
    return joins_heads_ ? reshape(x, {batch_ * heads(), a, b}) : x;
  }
  ValueId unstacked(ValueId x, std::int64_t a, std::int64_t b) {
    return joins_heads_ ? reshape(x, {batch_, heads(), a, b}) : x;
  }
  ValueId flipped(ValueId x) { return joins_heads_ ? transpose(x, {0, 2, 1}) : transpose(x, {0, 1, 3, 2}); }

  ValueId product(ValueId a, ValueId b) {
    const bool ta = draw(3) == 0, tb = draw(2);
    if (ta) a = flipped(a);
    if (tb) b = flipped(b);
    return graph_.apply(OpKind::matmul, {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
  }
  /// Either a b or (b' a')'.
  ValueId either_product(ValueId a, ValueId b) {
    return draw(2) ? product(a, b) : flipped(product(flipped(b), flipped(a)));
  }

  Dims mask_dims() {
    const Dims all[] = {{batch_, 1, 1, keys_},
                        {1, 1, queries_, keys_},
                        {queries_, keys_},
                        {batch_, heads(), queries_, keys_},
                        {keys_},
                        {heads(), 1, keys_},
                        {batch_, 1, queries_, keys_},
                        {heads(), queries_, 1}};
    return all[draw(8)];
  }
  /// A mask whose rows all see key 0.
  ValueId mask() {
    const Dims dims = mask_dims();
    std::vector<std::uint8_t> bits;
    for (std::int64_t i = 0; i < cermet::product(dims).constant(); ++i)
      bits.push_back(dims.back() == Dim(1) || i % keys_ == 0 || draw(2) != 0);
    return graph_.add_constant(fmt::format("mask{}", ++count_),
                               TensorData::of<std::uint8_t>({DType::boolean, dims}, bits));
  }
  ValueId positions(std::int64_t count, const Dims& dims) {
    std::vector<std::int32_t> list;
    for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<std::int32_t>(i));
    return graph_.add_constant(fmt::format("positions{}", ++count_),
                               TensorData::of<std::int32_t>({DType::i32, dims}, list));
  }

  /// Something added to scores [B, H, S, T], or a mask.
  ValueId changed(ValueId x) {
    const double least[] = {-std::numeric_limits<double>::infinity(), -1e9, -3.4028234663852886e38};
    const double excluded = least[draw(3)];
    switch (draw(7)) {
      case 0: return x;
      case 1: {
        const ValueId bias =
            graph_.apply(OpKind::neg, {graph_.add_input(fmt::format("bias{}", ++count_), {DType::f32, mask_dims()})});
        return draw(2)   ? graph_.apply(OpKind::add, {x, bias})
               : draw(2) ? graph_.apply(OpKind::add, {bias, x})
                         : graph_.apply(OpKind::sub, {x, bias});
      }
      case 2: return graph_.apply(OpKind::where, {mask(), x, number(excluded)});
      case 3: return graph_.apply(OpKind::where, {graph_.apply(OpKind::logical_not, {mask()}), number(excluded), x});
      case 4: return graph_.apply(OpKind::add, {x, graph_.apply(OpKind::where, {mask(), number(0), number(excluded)})});
      case 5: {
        const ValueId seen = graph_.apply(OpKind::cast, {mask()}, {{"out_dtype", "f32"}});
        return graph_.apply(
            OpKind::sub, {x, graph_.apply(OpKind::mul, {graph_.apply(OpKind::sub, {number(1), seen}), number(1e4)})});
      }
      default: {
        const ValueId sees =
            graph_.apply(OpKind::greater_equal, {positions(queries_, {queries_, 1}), positions(keys_, {1, keys_})});
        return graph_.apply(OpKind::where, {sees, x, number(excluded)});
      }
    }
  }

  /// Softmax along the last axis, or along the one before where `before`.
  ValueId softmax(ValueId x) {
    const auto axis = static_cast<std::int64_t>(graph_.type(x).dims.size()) - 1;
    const auto over = [&](OpKind op, ValueId y) {
      if (draw(2)) return graph_.apply(op, {y}, {{"axes", Ints{axis}}, {"keepdims", true}});
      Ints shape;
      for (const Dim& d : graph_.type(x).dims) shape.push_back(d.constant());
      shape.back() = 1;
      return reshape(graph_.apply(op, {y}, {{"axes", Ints{-1}}}), shape);
    };
    if (draw(2)) return graph_.apply(OpKind::softmax, {x});
    const ValueId weight = graph_.apply(OpKind::exp, {graph_.apply(OpKind::sub, {x, over(OpKind::reduce_max, x)})}),
                  sum = over(OpKind::reduce_sum, weight);
    return draw(2) ? graph_.apply(OpKind::div, {weight, sum})
                   : graph_.apply(OpKind::mul, {graph_.apply(OpKind::reciprocal, {sum}), weight});
  }

  void build() {
    joins_heads_ = draw(3) == 0;
    ValueId q = operand("q", heads(), queries_, size_), k = operand("k", kv_heads_, keys_, size_),
            v = operand("v", kv_heads_, keys_, value_size_);
    const double scale = 1 / std::sqrt(static_cast<double>(size_));
    const std::int64_t place = draw(5);
    if (place == 0 || place == 2) q = times(q, place == 2 ? std::sqrt(scale) : scale);
    if (place == 1 || place == 2) k = times(k, place == 2 ? std::sqrt(scale) : scale);
    k = repeated(k, keys_, size_), v = repeated(v, keys_, value_size_);
    q = stacked(q, queries_, size_), k = stacked(k, keys_, size_), v = stacked(v, keys_, value_size_);
    ValueId scores = either_product(q, flipped(k));
    if (place == 3) scores = times(scores, scale);
    scores = unstacked(scores, queries_, keys_);
    scores = changed(scores);
    if (place == 4 && draw(2)) scores = times(scores, 0.75);
    ValueId weights = softmax(scores);
    weights = stacked(weights, queries_, keys_);
    ValueId o = unstacked(either_product(weights, v), queries_, value_size_);
    if (draw(3) != 0) o = reshape(transpose(o, {0, 2, 1, 3}), {batch_, queries_, heads() * value_size_});
    graph_.add_output("o", o);
  }

  std::mt19937 random_;
  Graph graph_;
  std::int64_t batch_, kv_heads_, group_, queries_, keys_, size_, value_size_;
  int count_ = 0;
  bool joins_heads_ = false;
};

}  // namespace cermet

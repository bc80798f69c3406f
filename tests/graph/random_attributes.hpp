// Random attributes of the operators that rules are about; a later node of a pattern often has what an earlier one had,
// or its inverse.
#pragma once

#include <algorithm>
#include <optional>
#include <random>

#include "graph/rewrite/pattern.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

class RandomAttributes {
 protected:
  RandomAttributes(std::string_view rule, std::uint32_t seed) : random_(seed), rule_(rule) {}

  bool one_in(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)) == 0; }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(most - least + 1));
  }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(random_()) / 4294967295.0; }

  /// Before the first node of a pattern.
  void begin() {
    own_axes_.reset();
    drawn_permutation_.clear();
    slices_ = 0;
    groups_ = false;
  }

  Attributes draw_attributes(const PatternNode& node, const TensorType& x) {
    const int rank = x.rank();
    Attributes a;
    switch (node.op) {
      case OpKind::reduce_sum:
      case OpKind::reduce_mean:
      case OpKind::reduce_prod:
      case OpKind::reduce_max:
      case OpKind::reduce_min: {
        if (!own_axes_ || one_in(2)) own_axes_ = {between(0, std::max(0, rank - 1)) - (one_in(2) ? rank : 0)};
        if (one_in(8)) own_axes_ = Ints{};
        a.set("axes", *own_axes_);
        a.set("keepdims", one_in(2));
        terms_ = 1;
        if (own_axes_->empty()) terms_ = static_cast<double>(x.elements().constant());
        else if (rank > 0)
          terms_ = static_cast<double>(
              x.dims[static_cast<std::size_t>((own_axes_->front() % rank + rank) % rank)].constant());
        if (one_in(2)) terms_ = 1 / terms_;
        break;
      }
      case OpKind::transpose: {
        Ints permutation;
        for (int axis = 0; axis < rank; ++axis) permutation.push_back(axis);
        if (!drawn_permutation_.empty() && static_cast<int>(drawn_permutation_.size()) == rank && one_in(2)) {
          if (one_in(2)) permutation = drawn_permutation_;
          else  // the inverse
            for (std::size_t axis = 0; axis < permutation.size(); ++axis)
              permutation[static_cast<std::size_t>(drawn_permutation_[axis])] = static_cast<int>(axis);
        } else if (rank >= 2 && one_in(2)) {
          std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
        } else if (!one_in(4)) {
          std::shuffle(permutation.begin(), permutation.end(), random_);
        }
        a.set("permutation", drawn_permutation_ = permutation);
        break;
      }
      case OpKind::reshape: {
        Ints shape;
        if (rule_ == "group-norm") return {{"shape", groups_ ? Ints{2, 4, 2, 3} : Ints{2, 2, -1}}};
        if (one_in(3))
          for (const Dim& dim : x.dims) shape.push_back(dim.constant());
        else if (one_in(2)) shape = {-1};
        else shape = {1, -1};
        a.set("shape", shape);
        break;
      }
      case OpKind::concat:
      case OpKind::split: {
        a.set("axis", one_in(3) || rank == 0 ? std::int64_t{-1} : between(0, rank - 1));
        if (node.op == OpKind::split) a.set("parts", static_cast<std::int64_t>(node.results.size()));
        break;
      }
      case OpKind::slice: {
        const std::int64_t axis =
            slices_++ == 0 || one_in(2) ? sliced_axis_ = between(0, std::max(0, rank - 1)) : sliced_axis_;
        const std::int64_t size = rank > axis ? x.dims[static_cast<std::size_t>(axis)].constant() : 1, half = size / 2;
        Ints starts{0}, ends{half};
        if (slices_ == 2 || one_in(2))
          starts = {half}, ends = {one_in(2) ? size : std::numeric_limits<std::int64_t>::max()};
        if (one_in(4)) starts = {0}, ends = {size};
        a.set("starts", starts);
        a.set("ends", ends);
        a.set("axes", Ints{axis});
        break;
      }
      case OpKind::expand: {
        Ints shape;
        for (const Dim& dim : one_in(2) ? base_ : x.dims) shape.push_back(dim.constant());
        a.set("shape", shape);
        break;
      }
      case OpKind::pad: a.set("pads", Ints(2 * static_cast<std::size_t>(rank), one_in(2) ? 0 : 1)); break;
      case OpKind::cast: {
        static constexpr DType types[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                                          DType::i32, DType::i64, DType::u8};
        a.set("out_dtype", std::string(name_of(one_in(3) ? dtype_ : types[random_() % std::size(types)])));
        break;
      }
      case OpKind::clip: {
        const double low = uniform(-2, 1);
        a.set("low", low);
        a.set("high", low + uniform(0, 3));
        break;
      }
      case OpKind::hard_sigmoid: return {{"alpha", 1.0 / 6}, {"beta", 0.5}};
      case OpKind::dequantize: return {{"granularity", std::string(one_in(2) ? "tensor" : "channel")}};
      case OpKind::conv: return {{"pads", Ints{1, 1, 1, 1}}};
      case OpKind::group_norm: return {{"groups", std::int64_t{2}}};
      case OpKind::instance_norm: groups_ = true; break;
      default: break;
    }
    return a;
  }

  std::mt19937 random_;
  DType dtype_{};
  Dims base_;         ///< of the operands, before some are narrowed
  double terms_ = 1;  ///< of the last reduction, or one over their number

 private:
  std::string_view rule_;
  std::optional<Ints> own_axes_;
  Ints drawn_permutation_;
  std::int64_t sliced_axis_ = 0;
  int slices_ = 0;
  bool groups_ = false;
};

}  // namespace cermet

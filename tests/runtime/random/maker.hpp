// Draws a graph step by step.
#pragma once

#include <algorithm>
#include <random>

#include "base/error.hpp"
#include "format/element.hpp"
#include "tests/runtime/random/random_graph.hpp"

namespace cermet::test {

inline constexpr std::int64_t most_elements = 2048;  ///< of a value

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 7) {
    made_.graph.name = fmt::format("random.{}", seed);
    const DType types[] = {DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16};
    dtype_ = types[below(5)];
    symbolic_ = one_in(2);
    if (symbolic_) made_.graph.set_range(Symbol("T"), {0, most_tokens});
    made_.sizes = symbolic_ ? std::vector<std::int64_t>{most_tokens, 1, 3, 0} : std::vector<std::int64_t>{0};
    const bool is_image = one_in(5);
    columns_ = is_image ? 1 + below(6) : std::int64_t{1} << below(6);
    if (one_in(4)) columns_ = 1 + below(20);
    base_ = is_image    ? Dims{rows(), 1 + below(8), 2 + below(6), columns_}
            : one_in(3) ? Dims{rows(), 1 + below(4), columns_}
                        : Dims{rows(), columns_};
    for (std::int64_t i = 0, count = 1 + below(2); i < count; ++i) input(dtype_, base_);
    if (one_in(2)) input(dtype_, narrowed(base_));
    if (one_in(4)) input(DType::i32, base_);
    if (one_in(6)) input(DType::boolean, base_);
    for (std::int64_t i = 0, count = 3 + below(14); i < count; ++i) try_step();
    finish();
  }
  RandomGraph take() { return std::move(made_); }

 private:
  Graph& graph() { return made_.graph; }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  Dim rows() { return symbolic_ ? Dim::symbol("T") : one_in(20) ? Dim(0) : Dim(1 + below(8)); }
  const TensorType& type(ValueId x) { return graph().type(x); }
  int rank(ValueId x) { return static_cast<int>(type(x).dims.size()); }
  std::int64_t axis_of(ValueId x) { return rank(x) == 0 ? 0 : below(rank(x)); }
  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(std::ssize(list)))];
  }
  bool is_float(ValueId x) { return is_floating(type(x).dtype); }

  void input(DType dtype, const Dims& dims) {
    values_.push_back(graph().add_input(fmt::format("x{}", values_.size()), {dtype, dims}));
  }

  /// Dimensions that broadcast to these.
  Dims narrowed(Dims dims) {
    for (Dim& d : dims)
      if (one_in(2)) d = 1;
    while (dims.size() > 1 && one_in(4)) dims.erase(dims.begin());
    return dims;
  }

  /// One of the last values, mostly; now and then any: a residual.
  ValueId pick() {
    if (one_in(3)) return any(values_);
    return values_[values_.size() - 1 -
                   static_cast<std::size_t>(below(std::min<std::int64_t>(3, std::ssize(values_))))];
  }
  ValueId pick_float() {
    for (int i = 0; i < 8; ++i)
      if (const ValueId x = pick(); is_float(x)) return x;
    return values_[0];
  }
  /// Another value that fits, or none.
  ValueId like(ValueId x) {
    std::vector<ValueId> fitting;
    for (const ValueId y : values_)
      if (type(y) == type(x)) fitting.push_back(y);
    return fitting.empty() ? x : any(fitting);
  }
  ValueId weight(DType dtype, const Dims& dims) {
    return graph().add_constant(fmt::format("w{}", graph().values().size()), TensorType{dtype, dims});
  }
  ValueId number(DType dtype, double value, const Dims& dims = {}) {
    const TensorType type{dtype, dims};
    const auto count = static_cast<std::size_t>(type.elements().constant());
    std::vector<std::byte> bytes(count * size_of(dtype));
    for (std::size_t i = 0; i < count; ++i)
      format::store_element(bytes.data(), dtype, static_cast<std::int64_t>(i), value);
    return graph().add_constant(fmt::format("k{}", graph().values().size()), TensorData(type, bytes));
  }
  double draw_number(DType dtype) {
    if (!is_floating(dtype)) return static_cast<double>(below(5)) - 1;
    const double numbers[] = {1, 2, 0.5, -1, 0.125, 3, 0.044715, 1e-5, -0.5, 1.702, 0.70710678};
    return numbers[below(11)];
  }
  /// What a binary operator may have beside x: x itself, a value like it, one that broadcasts, constants.
  ValueId partner(ValueId x) {
    const TensorType& t = type(x);
    switch (below(7)) {
      case 0: return number(t.dtype, draw_number(t.dtype), one_in(3) ? Dims{1} : Dims{});
      case 1: {
        Dims dims = t.dims;
        for (Dim& d : dims)
          if (!d.is_constant() || one_in(3)) d = 1;
        while (!dims.empty() && one_in(3)) dims.erase(dims.begin());
        return is_floating(t.dtype) ? weight(t.dtype, dims) : number(t.dtype, draw_number(t.dtype), dims);
      }
      case 2: {
        std::vector<ValueId> fitting;
        for (const ValueId y : values_)
          if (type(y).dtype == t.dtype && type(y).dims.size() <= t.dims.size()) fitting.push_back(y);
        return any(fitting);  // may not broadcast: then the step is drawn again
      }
      default: return like(x);
    }
  }

  void try_step() {
    for (int i = 0; i < 20; ++i) {
      const std::size_t before = values_.size();
      const bool continuous = made_.is_continuous;
      try {
        step();
        return;
      } catch (const Error&) {  // an operator does not take what was drawn
        values_.resize(before);
        made_.is_continuous = continuous;
      }
    }
  }
  void keep(ValueId y) {
    if (type(y).elements().value(made_.maximum()) <= most_elements) values_.push_back(y);
  }
  ValueId apply(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes = {}) {
    return graph().apply(op, std::move(inputs), attributes);
  }

  void step() {
    switch (below(31)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: return unary();
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10: return binary();
      case 11: return keep(whole_number());
      case 12:
      case 13: return choice();
      case 14:
      case 15: return shape();
      case 16:
      case 17: return part();
      case 18:
      case 19: return reduction();
      case 20:
      case 21: return norm();
      case 22:
      case 23:
      case 24: return product();
      case 25: return window();
      case 26: return lookup();
      case 27: return gate();
      case 28: return attention();
      case 29: return image();
      default: return written_out();
    }
  }

  // ---- Steps, in random_steps.cpp
  void unary();
  void binary();
  ValueId whole_number();
  void choice();
  void shape();
  void part();
  void reduction();
  void norm();
  void product();
  void window();
  void lookup();
  void gate();
  void attention();
  void image();
  void written_out();

  /// Unread values are results, and some others.
  void finish() {
    std::erase_if(made_.sizes, [this](std::int64_t size) {  // windows may need more
      SymbolValues symbols;
      symbols.set(Symbol("T"), size);
      const auto is_negative = [&](const Dim& d) { return d.value(symbols) < 0; };
      return std::ranges::any_of(graph().values(),
                                 [&](const Value& value) { return std::ranges::any_of(value.type.dims, is_negative); });
    });
    int count = 0;
    for (const ValueId x : values_) {
      const bool is_input = graph().value(x).kind == ValueKind::input;
      if (!is_input && (graph().uses(x).empty() || one_in(10))) graph().add_output(fmt::format("y{}", count++), x);
    }
    if (count == 0) graph().add_output("y", graph().apply(OpKind::neg, {values_[0]}));
  }

  std::mt19937_64 random_;
  RandomGraph made_;
  std::vector<ValueId> values_;
  Dims base_;
  std::int64_t columns_ = 1;
  DType dtype_{};
  bool symbolic_ = false;
};

}  // namespace cermet::test

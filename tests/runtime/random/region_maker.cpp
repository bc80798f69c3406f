#include "tests/runtime/random/region_maker.hpp"

#include <cmath>

#include "format/element.hpp"

namespace cermet::test {
namespace {

constexpr std::int64_t narrow = 256, wide = 512, row = 64, keys = 600, pages = 40;

class RegionMaker {
 public:
  RegionMaker(std::uint64_t seed, RegionKind kind, const std::string& options)
      : random_(seed * 0x9e3779b97f4a7c15u + 11), kind_(kind), options_(options) {
    graph().name = fmt::format("region.{}", seed);
    graph().set_range(Symbol("T"), {0, most_region_rows});
    made_.rows = one_in(5) ? 0 : 1 + below(most_region_rows);
    for (const char* name : {"x0", "x1"}) narrow_.push_back(graph().add_input(name, {DType::f32, {1, narrow}}));
    rows_.push_back(graph().add_input("r", {DType::f32, {Dim::symbol("T"), row}}));
    constants();
    const std::int64_t regions = one_in(4) ? 2 + below(2) : 1;
    for (std::int64_t i = 0; i < regions; ++i) {
      if (i > 0) exclude();
      region();
    }
    finish();
  }
  RandomRegion take() { return std::move(made_); }

 private:
  using Values = std::vector<ValueId>;

  Graph& graph() { return made_.graph; }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  /// The last one (a chain), or any (diamonds, branches).
  ValueId pick(const Values& list) {
    return one_in(2) ? list.back() : list[static_cast<std::size_t>(below(std::ssize(list)))];
  }
  ValueId apply(OpKind op, Values inputs, const Attributes& attributes = {}) {
    return graph().apply(op, std::move(inputs), attributes);
  }

  void constants() {
    const DType weight = kind_ == RegionKind::int8 ? DType::i8 : DType::bf16;
    for (const char* name : {"up0", "up1"}) up_.push_back(graph().add_constant(name, {weight, {wide, narrow}}));
    for (const char* name : {"down0", "down1"}) down_.push_back(graph().add_constant(name, {weight, {narrow, wide}}));
    scale_ = graph().add_constant("scale", {DType::f32, {narrow}});
    if (kind_ == RegionKind::int8) wide_scale_ = graph().add_constant("wide_scale", {DType::f32, {wide}});
    for (const char* name : {"keys", "values"})
      caches_.push_back(graph().add_constant(name, {DType::bf16, {pages, 2, 16, 64}}));
    pages_ = graph().add_constant("pages", {DType::i32, {1, pages}});
    lengths_ = graph().add_constant("lengths", {DType::i32, {1}});
  }

  // ---- One node each, of a body of its own; wherever it reads from
  void up() {
    if (kind_ == RegionKind::bf16) return wide_.push_back(apply(OpKind::linear, {pick(narrow_), pick(up_)}));
    const Values quantized = graph().apply_all(OpKind::rms_norm_quant, {pick(narrow_), scale_});
    wide_.push_back(apply(OpKind::scaled_mm, {quantized[0], pick(up_), quantized[1], wide_scale_}));
  }
  void down() {
    if (kind_ == RegionKind::bf16) return narrow_.push_back(apply(OpKind::linear, {pick(wide_), pick(down_)}));
    const Values quantized = graph().apply_all(OpKind::dynamic_quant, {pick(wide_)});
    narrow_.push_back(apply(OpKind::scaled_mm, {quantized[0], pick(down_), quantized[1], scale_}));
  }
  void activation() { wide_.push_back(apply(OpKind::gelu, {pick(wide_)})); }
  void sum() { narrow_.push_back(apply(OpKind::add, {pick(narrow_), pick(narrow_)})); }
  void norm() { narrow_.push_back(apply(OpKind::rms_norm, {pick(narrow_), scale_})); }
  void weights() { wide_.push_back(apply(OpKind::softmax, {pick(wide_)})); }
  void heads() {
    const ValueId q = apply(OpKind::reshape, {pick(narrow_)}, {{"shape", Ints{0, 4, 64}}});
    const ValueId o = apply(OpKind::incre_flash_attention, {q, pick(caches_), pick(caches_), pages_, lengths_});
    narrow_.push_back(apply(OpKind::reshape, {o}, {{"shape", Ints{0, narrow}}}));
  }
  void few_rows() { rows_.push_back(apply(OpKind::softmax, {pick(rows_)})); }
  void row_sum() { rows_.push_back(apply(OpKind::sub, {pick(rows_), pick(rows_)})); }

  void node(std::int64_t body) {
    switch (body) {
      case 0: return up();
      case 1: return activation();
      case 2: return down();
      case 3: return sum();
      case 4: return norm();
      case 5: return weights();
      case 6: return heads();
      case 7: return few_rows();
      default: return row_sum();
    }
  }
  static constexpr std::int64_t bodies = 9;

  void region() {
    const auto scope = graph().super_kernel("all", options_);
    for (std::int64_t body = 0; body < bodies; ++body) node(body);
    for (std::int64_t i = 0, more = below(20); i < more; ++i) node(below(bodies));
  }
  /// What follows reads what it makes, and nothing before but rows.
  void exclude() {
    const auto apart = graph().super_kernel();
    results_.insert(results_.end(), narrow_.begin(), narrow_.end());
    results_.insert(results_.end(), wide_.begin(), wide_.end());
    narrow_ = {apply(OpKind::tanh, {pick(narrow_)})};
    wide_.clear();
    ++made_.breaks;
  }

  /// An unread value is a result.
  void finish() {
    int count = 0;
    for (const Values* list : {&results_, &narrow_, &wide_, &rows_})
      for (const ValueId x : *list)
        if (graph().value(x).kind != ValueKind::input && graph().uses(x).empty())
          graph().add_output(fmt::format("y{}", count++), x);
  }

  std::mt19937_64 random_;
  RandomRegion made_;
  RegionKind kind_;
  std::string options_;
  Values results_, narrow_, wide_, rows_, up_, down_, caches_;
  ValueId scale_{}, wide_scale_{}, pages_{}, lengths_{};
};

}  // namespace

RandomRegion random_region(std::uint64_t seed, RegionKind kind, const std::string& options) {
  return RegionMaker(seed, kind, options).take();
}

void fill_region_operand(const std::string& name, int run, const TensorView& to) {
  std::mt19937 random(
      static_cast<std::mt19937::result_type>(std::hash<std::string>()(name) + static_cast<std::size_t>(run)));
  for (std::int64_t i = 0; i < to.elements(); ++i) {
    const double unit = static_cast<double>(random() % 2001) / 1000 - 1;
    double value = unit;
    if (name == "pages") value = static_cast<double>(pages - 1 - i);
    else if (name == "lengths") value = keys;
    else if (to.dtype == DType::i8) value = std::round(unit * 127);
    else if (name.ends_with("scale")) value = 0.01 + 0.001 * unit;
    store(to, i, value);
  }
}

}  // namespace cermet::test

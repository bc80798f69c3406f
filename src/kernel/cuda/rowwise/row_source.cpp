// Prints row programs as CUDA source: tests/kernel_cuda/golden/rms_norm.cu is what it prints for rms_norm.
#include "kernel/cuda/rowwise/row_source.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/step_source.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {
namespace {

using Extent = TileProgram::Extent;
using Source = TileProgram::Source;
using Kind = RowProgram::Reduction::Kind;

/// "Element<cermet::DType::bf16>"
std::string element_source(DType dtype) { return fmt::format("Element<{}>", device_name(dtype)); }

/// Whether an operand has one number for a whole row, or for all.
bool is_number(const TileProgram::Extra& extra) {
  return extra.extent == Extent::scalar || extra.extent == Extent::row;
}

/// The row that a kernel keeps between its passes: what is loaded of it, and how its values follow from that.
class RegisterRow {
 public:
  explicit RegisterRow(const RowProgram& program)
      : p_(program), extras_(p_.extras_of(p_.steps_behind(std::span(&p_.row, 1), {}), std::span(&p_.row, 1), {})) {
    for (std::size_t i = 0; i < extras_.size(); ++i) has_halves_ = has_halves_ || (extras_[i] && extra(i).takes_part());
  }

  /// The first extra with the same memory: two may read different elements of one operand.
  std::size_t leader(std::size_t i) const {
    const auto shares = [&](const TileProgram::Extra& e) {
      return e.operand == extra(i).operand && e.extent == extra(i).extent;
    };
    return static_cast<std::size_t>(std::ranges::find_if(p_.tile.extras, shares) - p_.tile.extras.begin());
  }

  /// The definition of its type, "struct Source {..};"; none where the row is an operand as it is.
  std::string definition() const {
    if (is_plain()) return "";
    std::string fields, members, loads, body;
    for (std::size_t i = 0; i < extras_.size(); ++i) {
      if (!extras_[i]) continue;
      const std::string type = element_source(extra(i).dtype);
      if (is_number(extra(i))) {
        members += fmt::format("  float x{};\n", i);
        continue;
      }
      if (leader(i) == i) members += fmt::format("  const {}* at{};\n", type, i);
      if (is_loaded_late(i) || (extra(i).step == 2 && leader(i) != i)) continue;
      fields += fmt::format("    {}<{}, width> x{};\n", extra(i).step == 2 ? "PairsOfElements" : "Vector", type, i);
      loads += (loads.empty() ? "" : ", ") + load(i);
    }
    const Source row = p_.row;
    const std::string value = fmt::format("      v[k] = {};\n", value_source(row));
    if (p_.gate) {
      const TileProgram::Step& gate = p_.tile.steps[*p_.gate];
      const Source activated{Source::From::step, static_cast<std::int32_t>(*p_.gate)};
      body = "    float gates[width];\n" +
             loop(std::span(&gate.a, 1), {}, "", fmt::format("      gates[k] = {};\n", value_source(gate.a))) +
             "    gated::silu(gates);\n    {\n" +
             loop(std::span(&row, 1), std::span(&activated, 1),
                  fmt::format("      const float {} = gates[k];\n", value_source(activated)), value) +
             "    }\n";
    } else {
      body = loop(std::span(&row, 1), {}, "", value);
    }
    return fmt::format(R"(template <RowLayout L>
struct Source {{
  static constexpr int width = L.width;
  struct Raw {{
{}  }};
{}
  CERMET_DEVICE Raw fetch(int64_t column) const {{ return {{{}}}; }}
  CERMET_DEVICE void values(const Raw& raw, [[maybe_unused]] int64_t column, float (&v)[width]) const {{
{}  }}
}};

)",
                       fields, members, loads, body);
  }

  /// "    const Source<L> source{at0, x1};\n", of pointers and numbers that are named so.
  std::string declaration() const {
    std::string of;
    for (std::size_t i = 0; i < extras_.size(); ++i) {
      if (!extras_[i] || (!is_number(extra(i)) && leader(i) != i)) continue;
      const Extent extent = extra(i).extent;
      of += fmt::format("{}{}", of.empty() ? "" : ", ",
                        is_number(extra(i))         ? fmt::format("x{}", i)
                        : extent == Extent::element ? fmt::format("at{}", i)
                                                    : fmt::format("static_cast<const {}*>(p.operands[{}].data)",
                                                                  element_source(extra(i).dtype), i));
    }
    const std::string type =
        is_plain()
            ? fmt::format("PlainSource<{}, width>", element_source(extra(static_cast<std::size_t>(p_.row.index)).dtype))
            : "Source<L>";
    return fmt::format("    const {} source{{{}}};\n", type, of);
  }

 private:
  bool is_plain() const { return p_.row.from == Source::From::extra; }
  const TileProgram::Extra& extra(std::size_t i) const { return p_.tile.extras[i]; }
  /// Whether it is loaded where it is used: beside the halves of a gate, whose values are computed once, a vector of
  /// the columns is not worth its registers.
  bool is_loaded_late(std::size_t i) const { return has_halves_ && extra(i).extent == Extent::column; }

  /// Whether a result that is the row goes where this operand was, after all of the row was read: of rows that are
  /// quantized it goes there before.
  bool is_overwritten(std::size_t i) const {
    const auto stores_row = [&](const TileProgram::Result& r) {
      return r.value == p_.row && r.dtype == extra(i).dtype;
    };
    return p_.overwritten == i && !p_.quantization && std::ranges::any_of(p_.tile.results, stores_row);
  }

  std::string load(std::size_t i) const {
    const std::size_t at = leader(i);
    if (extra(i).step == 2) return fmt::format("load_pairs<width>(at{} + 2 * column)", at);
    const std::string first = extra(i).first == 0 ? "" : fmt::format(" + {}", extra(i).first);
    return fmt::format("{}(at{}{} + column)", is_overwritten(i) ? "load_overwritten<L>" : "load_vector<width>", at,
                       first);
  }

  /// What is made of whole vectors before the loop over their elements.
  std::string vectors(const std::vector<bool>& extras) const {
    std::string text;
    for (std::size_t i = 0; i < extras.size(); ++i) {
      if (!extras[i] || is_number(extra(i)) || extra(i).step == 2) continue;
      const std::string raw = is_loaded_late(i) ? load(i) : fmt::format("raw.x{}", i);
      if (extra(i).dtype == DType::i32) text += fmt::format("    const auto c{} = {};\n", i, raw);
      else text += fmt::format("    float c{0}[width];\n    to_floats({1}, c{0});\n", i, raw);
    }
    return text;
  }

  std::string elements(const std::vector<bool>& extras) const {
    std::string text;
    for (std::size_t i = 0; i < extras.size(); ++i) {
      if (!extras[i] || is_number(extra(i))) continue;
      const char* const type = extra(i).dtype == DType::i32 ? "int32_t" : "float";
      if (extra(i).step == 2)
        text +=
            fmt::format("      const {} x{} = to_float(raw.x{}.at(2 * k + {}));\n", type, i, leader(i), extra(i).first);
      else text += fmt::format("      const {0} x{1} = c{1}[k];\n", type, i);
    }
    return text;
  }

  /// Computes values from known ones, at each place of a vector.
  std::string loop(std::span<const Source> values, std::span<const Source> known, const std::string& before,
                   const std::string& after) const {
    const std::vector<bool> steps = p_.steps_behind(values, known), read = p_.extras_of(steps, values, known);
    const bool any = std::ranges::find(steps, true) != steps.end();
    return fmt::format("{}#pragma unroll\n    for (int k = 0; k < width; ++k) {{\n{}{}{}{}    }}\n", vectors(read),
                       before, elements(read), any ? step_source(p_.tile, "      ", steps) : "", after);
  }

  const RowProgram& p_;
  std::vector<bool> extras_;  ///< those whose elements are loaded with the row
  bool has_halves_ = false;
};

/// The step that multiplies by what the only reduction gave, where a quantized value is a product of that and of what a
/// row may be quantized without.
std::optional<std::size_t> factor_of(const RowProgram& p) {
  if (!p.quantization || p.reductions.size() != 1) return std::nullopt;
  constexpr Source factor{Source::From::input, 0};
  for (Source v = p.quantization->value; v.from == Source::From::step;) {
    const TileProgram::Step& step = p.tile.steps[static_cast<std::size_t>(v.index)];
    if (step.function != OpKind::mul || step.round != DType::f32) break;
    if (step.b == factor) return static_cast<std::size_t>(v.index);
    v = step.a;
  }
  return std::nullopt;
}

/// The same with the value that a step multiplies in place of its product.
RowProgram without_factor(RowProgram p, std::size_t factor) {
  const Source product{Source::From::step, static_cast<std::int32_t>(factor)}, plain = p.tile.steps[factor].a;
  for (TileProgram::Step& step : p.tile.steps)
    if (step.a == product) step.a = plain;
  if (p.quantization->value == product) p.quantization->value = plain;
  return p;
}

class Printer {
 public:
  Printer(RowProgram program, bool factors_out)
      : p_(std::move(program)), row_(p_), factors_out_(factors_out), printed_(p_.tile.steps.size()) {}

  std::string text(const std::string& quantization) {
    std::string body = rows_and_columns();
    const bool early = p_.quantization && !p_.tile.results.empty() && stores_only_row();
    if (early) body += store_lambda() + "    if constexpr (Partition::in_registers) store();\n";
    for (std::size_t i = 0; i < p_.reductions.size(); ++i) body += reduction(i);
    body += ending(quantization, early);
    const char* const width = body.find("width") == std::string::npos
                                  ? ""
                                  : "    constexpr int width = L.width;\n";  // all of it is in the source of the row
    return includes() + fmt::format(R"(namespace cermet::row_region {{
namespace {{

// {}
{}struct Body {{
  template <RowLayout L, class Team, class Parameters>
  static CERMET_DEVICE void run(const Parameters& p, uint32_t item, char* smem) {{
    using Partition = RowPartition<L, Team>;
{}    RowReducer<Partition> reduce(smem);
    // Phase 1: which row, which of its elements
    const RowCoord<Partition> coord(item, p.dims, p.rows);
    const Partition partition(p.length);
{}    reduce.finish();
  }}
}};

}}  // namespace
}}  // namespace cermet::row_region
)",
                                    p_.to_string(), row_.definition(), width, body);
  }

 private:
  std::string includes() const {
    std::string text;
    if (!p_.tile.steps.empty()) text += fmt::format("#include \"{}\"\n", step_header);
    if (p_.gate) text += "#include \"kernel/cuda/device/pointwise/activations.cuh\"\n";
    return text.empty() ? text : text + "\n";
  }
  const TileProgram::Extra& extra(std::size_t i) const { return p_.tile.extras[i]; }

  /// Everything that is loaded before the first reduction.
  std::string rows_and_columns() const {
    std::string text = "    // Phase 2: load\n";
    for (std::size_t i = 0; i < p_.tile.extras.size(); ++i) {
      const std::string type = element_source(extra(i).dtype);
      if (is_number(extra(i)))
        text += fmt::format("    const float x{0} = number_of<{1}>(p.operands[{0}], coord);\n", i, type);
      else if (extra(i).extent == Extent::element && row_.leader(i) == i)
        text += fmt::format("    const {1}* at{0} = coord.template of<const {1}>(p.operands[{0}]);\n", i, type);
    }
    text += row_.declaration() + "    RawRow raw(partition, source, coord.active);\n";
    const std::vector<bool> later = pass_extras();
    for (std::size_t i = 0; i < p_.tile.extras.size(); ++i)
      if (later[i] && extra(i).extent == Extent::column)
        text += fmt::format(
            "    const ColumnParameter<{1}, Partition> column{0}(partition, p.operands[{0}].data, coord.active);\n", i,
            element_source(extra(i).dtype));
    return text + "    auto row = make_row(partition, source, raw);\n";
  }

  // ---- Passes ----
  /// Extras that some pass reads beside the row.
  std::vector<bool> pass_extras() const {
    std::vector<Source> values;
    for (const auto& reduction : p_.reductions) values.push_back(reduction.value);
    for (const auto& result : p_.tile.results) values.push_back(result.value);
    if (p_.quantization) values.push_back(p_.quantization->value);
    const std::span<const Source> row(&p_.row, 1);
    return p_.extras_of(p_.steps_behind(values, row), values, row);
  }
  /// Steps that are the same for a whole row and lead to these values, where they were not printed before.
  std::string row_steps_behind(std::span<const Source> values) {
    std::vector<bool> steps = p_.steps_behind(values, std::span(&p_.row, 1));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i] = steps[i] && p_.row_steps[i] && !printed_[i];
      if (steps[i]) printed_[i] = true;
    }
    return std::ranges::find(steps, true) == steps.end() ? "" : step_source(p_.tile, "    ", steps);
  }

  /// What a pass does at its places before it uses the values: loads of a vector, and the statements of each place.
  struct Pass {
    std::string loads, steps;
  };
  Pass pass(std::span<const Source> values) const {
    std::vector<bool> steps = p_.steps_behind(values, std::span(&p_.row, 1));
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = steps[i] && !p_.row_steps[i];
    const std::vector<bool> extras = p_.extras_of(steps, values, std::span(&p_.row, 1));
    Pass made;
    for (std::size_t i = 0; i < extras.size(); ++i) {
      if (!extras[i] || is_number(extra(i))) continue;
      const bool column = extra(i).extent == Extent::column;
      made.loads +=
          column ? fmt::format("      float c{0}[width];\n      column{0}.get(i, column, c{0});\n", i)
                 : fmt::format("      float c{0}[width];\n      to_floats(load_vector<width>(at{0} + column), c{0});\n",
                               i);
      made.steps += fmt::format("        const float x{0} = c{0}[k];\n", i);
    }
    made.steps += fmt::format("        [[maybe_unused]] const float {} = v[k];\n", value_source(p_.row));
    if (std::ranges::find(steps, true) != steps.end()) made.steps += step_source(p_.tile, "        ", steps);
    return made;
  }
  /// Between passes: makes the second convert the row again, which takes fewer registers than to keep its values. Not
  /// where both compute the same functions of it, nor between two short passes over it.
  std::string forget(std::span<const Source> first, std::span<const Source> second, bool stores) const {
    const std::span<const Source> row(&p_.row, 1);
    const std::vector<bool> a = p_.steps_behind(first, row), b = p_.steps_behind(second, row);
    bool is_long = stores;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const OpKind function = p_.tile.steps[i].function;
      const bool cheap =
          function == OpKind::add || function == OpKind::sub || function == OpKind::mul || function == OpKind::cast;
      if (!b[i] || p_.row_steps[i] || cheap) continue;
      if (a[i]) return "";
      is_long = true;
    }
    return is_long ? "    row.forget_values();\n" : "";
  }
  static std::string each(const Pass& pass, const std::string& declarations, const std::string& statements,
                          const std::string& after) {
    return fmt::format(
        R"(    row.each([&]([[maybe_unused]] int i, [[maybe_unused]] int64_t column, const float (&v)[width]) {{
{}{}#pragma unroll
      for (int k = 0; k < width; ++k) {{
{}{}      }}
{}    }});
)",
        pass.loads, declarations, pass.steps, statements, after);
  }

  std::string reduction(std::size_t i) {
    const RowProgram::Reduction& r = p_.reductions[i];
    const std::span<const Source> values(&r.value, 1);
    const std::string value = value_source(r.value);
    std::string text = "    // Phase 3: reduce\n" + row_steps_behind(values);
    if (i > 0) text += forget(std::span(&p_.reductions[i - 1].value, 1), values, false);
    const bool maximum = r.kind == Kind::max;
    const int chains =
        r.kind == Kind::mean || r.kind == Kind::inverse_root ? 2 : 1;  // as the kernels of the operators alone
    const std::string partial = fmt::format("partial{}.at(i, k)", i), reducing = maximum ? "Maximum" : "Sum";
    text += fmt::format("    RowPartials<{}, Partition, {}> partial{};\n", reducing, chains, i);
    const std::string statement = r.kind == Kind::inverse_root ? fmt::format("fmaf({0}, {0}, {1})", value, partial)
                                  : maximum                    ? fmt::format("Maximum::combine({}, {})", partial, value)
                                                               : fmt::format("__fadd_rn({}, {})", partial, value);
    text += each(pass(values), "", fmt::format("        {} = {};\n", partial, statement), "");
    if (factors_out_) return text;
    return text + fmt::format("    const float in{} = {};\n", i,
                              given(r, fmt::format("reduce.template operator()<{}>(partial{})", reducing, i)));
  }

  /// What a reduction gives of the reduced number.
  static std::string given(const RowProgram::Reduction& r, const std::string& all) {
    if (r.kind == Kind::mean) return all + " / static_cast<float>(partition.length)";
    if (r.kind != Kind::inverse_root) return all;
    return fmt::format("norm::inverse_root({}, partition.length, {})", all,
                       value_source({Source::From::number, 0, r.eps}));
  }

  /// Whether results need no reduction.
  bool stores_only_row() const {
    return std::ranges::all_of(p_.tile.results, [&](const TileProgram::Result& r) { return r.value == p_.row; });
  }
  std::string store_lambda() const {
    return "    const auto store = [&] {\n    if (!coord.active) return;\n" + stores() + "    };\n";
  }

  /// is_stored: the results of a row that is held.
  std::string ending(const std::string& quantization, bool is_stored) {
    std::vector<Source> values;
    for (const auto& result : p_.tile.results) values.push_back(result.value);
    if (p_.quantization) values.push_back(p_.quantization->value);
    std::string text = "    // Phase 4: store\n" + row_steps_behind(values);
    if (!p_.reductions.empty() && !factors_out_)
      text += forget(std::span(&p_.reductions.back().value, 1), values, true);
    if (p_.tile.results.empty()) return text + quantize(quantization);
    if (!is_stored) text += store_lambda();
    if (!p_.quantization) return text + "    store();\n";
    if (!is_stored) text += "    if constexpr (Partition::in_registers) store();\n";
    // Of a row that is read again, results come last: they may overwrite what is read.
    return text + quantize(quantization) +
           "    if constexpr (!Partition::in_registers) {\n      Team::sync();\n      store();\n    }\n";
  }

  std::string stores() const {
    std::vector<Source> values;
    std::string pointers, declarations, statements, after, by_row;
    for (std::size_t j = 0; j < p_.tile.results.size(); ++j) {
      const TileProgram::Result& result = p_.tile.results[j];
      const std::size_t operand = p_.tile.extras.size() + j;
      const std::string type = element_source(result.dtype);
      if (p_.results_by_row[j]) {
        by_row += fmt::format("    if (partition.lane == 0) *coord.template of<{}>(p.operands[{}]) = {};\n", type,
                              operand, result_source(p_.tile, result));
        continue;
      }
      values.push_back(result.value);
      declarations += fmt::format("      float y{}[width];\n", j);
      statements += fmt::format("        y{}[k] = {};\n", j, value_source(result.value));
      pointers += fmt::format("    {0}* const to{1} = coord.template of<{0}>(p.operands[{2}]);\n", type, j, operand);
      after += fmt::format("      store_vector(to{1} + column, from_floats<{0}>(y{1}));\n", type, j);
    }
    return pointers + (values.empty() ? "" : each(pass(values), declarations, statements, after)) + by_row;
  }

  std::string quantize(const std::string& quantization) const {
    const Source value = p_.quantization->value;
    const std::string row = value == p_.row ? "row" : "quantized";
    std::string text;
    if (value != p_.row) {
      const Pass made = pass(std::span(&value, 1));
      text = fmt::format(
          R"(    auto&& quantized = row.then(
        [&]([[maybe_unused]] int i, [[maybe_unused]] int64_t column, float (&v)[width]) {{
{}#pragma unroll
      for (int k = 0; k < width; ++k) {{
{}        v[k] = {};
      }}
    }});
)",
          made.loads, made.steps, value_source(value));
    }
    if (!factors_out_)
      return text + fmt::format("    quantize_row<Quantization{}>({}, p.out, coord, reduce);\n", quantization, row);
    return text +
           fmt::format(
               "    quantize_row_and_factor<Quantization{}>({}, p.out, coord, reduce, partial0, [&](float all) {{ "
               "return {}; }});\n",
               quantization, row, given(p_.reductions[0], "all"));
  }

  const RowProgram p_;
  const RegisterRow row_;
  const bool factors_out_;     ///< the only reduction, whose result enters the scale and not the quantized values
  std::vector<bool> printed_;  ///< steps of whole rows
};

}  // namespace

bool leaves_factor_out(const RowProgram& program) {
  return factor_of(program) && program.reductions[0].kind == Kind::inverse_root;
}

std::string row_source(const RowProgram& program, const std::string& quantization, bool factors_out) {
  return factors_out ? Printer(without_factor(program, *factor_of(program)), true).text(quantization)
                     : Printer(program, false).text(quantization);
}

}  // namespace cermet::cuda

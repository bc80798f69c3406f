#include "kernel/cuda/rowwise/row_source.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/step_source.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {
namespace {

using Extent = TileProgram::Extent;
using Source = TileProgram::Source;
using Kind = RowProgram::Reduction::Kind;

std::string element(DType dtype) { return fmt::format("Element<{}>", device_name(dtype)); }

class Printer {
 public:
  explicit Printer(const RowProgram& program) : p_(program), printed_(program.tile.steps.size()) {}

  std::string text(const std::string& quantization) {
    std::string body = rows_and_columns();
    for (std::size_t i = 0; i < p_.reductions.size(); ++i) body += reduction(i);
    body += ending(quantization);
    return fmt::format(R"(namespace cermet::row_region {{
namespace {{

// {}
{}struct Body {{
  template <RowShape S, class Team>
  static __device__ __forceinline__ void run(const Params& p, uint32_t item, char* smem) {{
    using Map = RowMap<S, Team>;
    constexpr int width = S.width;
    RowReducer<Map> reduce(smem);
    const RowPlace<Map> place(item, p.dims, p.rows);
    const Map map(p.length);
{}    reduce.finish();
  }}
}};

}}  // namespace
}}  // namespace cermet::row_region
)",
                       p_.to_string(), source_type(), body);
  }

 private:
  const TileProgram::Extra& extra(std::size_t i) const { return p_.tile.extras[i]; }
  bool goes_by_row(std::size_t i) const { return extra(i).extent == Extent::scalar || extra(i).extent == Extent::row; }

  /// Extras that steps or values read.
  std::vector<bool> extras_of(const std::vector<bool>& steps, std::span<const Source> values, std::span<const Source> known) const {
    std::vector<bool> read(p_.tile.extras.size());
    const auto note = [&](const Source& s) {
      if (s.from == Source::From::extra && std::ranges::find(known, s) == known.end()) read[static_cast<std::size_t>(s.index)] = true;
    };
    for (const Source& value : values) note(value);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i]) continue;
      note(p_.tile.steps[i].a);
      if (TileProgram::is_binary(p_.tile.steps[i])) note(p_.tile.steps[i].b);
    }
    return read;
  }

  // ---- The row that is kept ----
  std::vector<bool> row_steps() const { return p_.steps_behind(std::span(&p_.row, 1), {}); }
  std::vector<bool> row_extras() const { return extras_of(row_steps(), std::span(&p_.row, 1), {}); }
  bool is_plain() const { return p_.row.from == Source::From::extra; }

  /// Whether a result of this type is the row itself.
  bool stores_row(DType dtype) const {
    return std::ranges::any_of(p_.tile.results, [&](const TileProgram::Result& r) { return r.value == p_.row && r.dtype == dtype; });
  }

  std::string source_type() const {
    if (is_plain()) return "";
    std::string members, fields, loads, values;
    const std::vector<bool> extras = row_extras();
    for (std::size_t i = 0; i < extras.size(); ++i) {
      if (!extras[i]) continue;
      if (goes_by_row(i)) {
        members += fmt::format("  float x{};\n", i);
        continue;
      }
      members += fmt::format("  const {}* at{};\n", element(extra(i).dtype), i);
      fields += fmt::format("    Vector<{}, width> x{};\n", element(extra(i).dtype), i);
      const bool shared = p_.overwritten == i && stores_row(extra(i).dtype);
      loads += fmt::format("{}{}(at{} + column)", loads.empty() ? "" : ", ", shared ? "load_overwritten<S>" : "load_vector<width>", i);
      values += fmt::format("      const float x{0} = to_float(raw.x{0}[k]);\n", i);
    }
    return fmt::format(R"(template <RowShape S>
struct Source {{
  static constexpr int width = S.width;
  struct Raw {{
{}  }};
{}
  __device__ __forceinline__ Raw fetch(int64_t column) const {{ return {{{}}}; }}
  __device__ __forceinline__ void values(const Raw& raw, int64_t, float (&v)[width]) const {{
#pragma unroll
    for (int k = 0; k < width; ++k) {{
{}{}      v[k] = {};
    }}
  }}
}};

)",
                       fields, members, loads, values, step_source(p_.tile, "      ", row_steps()), value_source(p_.row));
  }

  /// Everything that is loaded before the first reduction.
  std::string rows_and_columns() const {
    std::string text, source;
    const std::vector<bool> of_row = row_extras();
    for (std::size_t i = 0; i < p_.tile.extras.size(); ++i) {
      const std::string type = element(extra(i).dtype);
      if (goes_by_row(i)) text += fmt::format("    const float x{0} = number_of<{1}>(p.operands[{0}], place);\n", i, type);
      else if (extra(i).extent == Extent::element) text += fmt::format("    const {1}* at{0} = place.template of<const {1}>(p.operands[{0}]);\n", i, type);
      if (of_row[i])
        source += fmt::format("{}{}", source.empty() ? "" : ", ",
                              goes_by_row(i)                       ? fmt::format("x{}", i)
                              : extra(i).extent == Extent::element ? fmt::format("at{}", i)
                                                                   : fmt::format("static_cast<const {}*>(p.operands[{}].data)", type, i));
    }
    const std::string type = is_plain() ? fmt::format("PlainSource<{}, width>", element(extra(static_cast<std::size_t>(p_.row.index)).dtype)) : "Source<S>";
    text += fmt::format("    const {} source{{{}}};\n    RawRow raw(map, source, place.active);\n", type, source);
    const std::vector<bool> later = pass_extras();
    for (std::size_t i = 0; i < p_.tile.extras.size(); ++i)
      if (later[i] && extra(i).extent == Extent::column)
        text += fmt::format("    const AlongRow<Along::each, {1}, Map> column{0}(map, p.operands[{0}].data, place.active);\n", i, element(extra(i).dtype));
    return text + "    auto row = make_row(map, source, raw);\n";
  }

  // ---- Passes ----
  /// Extras that some pass reads beside the row.
  std::vector<bool> pass_extras() const {
    std::vector<Source> values;
    for (const auto& reduction : p_.reductions) values.push_back(reduction.value);
    for (const auto& result : p_.tile.results) values.push_back(result.value);
    if (p_.quantization) values.push_back(p_.quantization->value);
    const std::span<const Source> row(&p_.row, 1);
    return extras_of(p_.steps_behind(values, row), values, row);
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
    const std::vector<bool> extras = extras_of(steps, values, std::span(&p_.row, 1));
    Pass made;
    for (std::size_t i = 0; i < extras.size(); ++i) {
      if (!extras[i] || goes_by_row(i)) continue;
      const bool column = extra(i).extent == Extent::column;
      made.loads += column ? fmt::format("      float c{0}[width];\n      column{0}.get(i, column, c{0});\n", i)
                           : fmt::format("      float c{0}[width];\n      to_floats(load_vector<width>(at{0} + column), c{0});\n", i);
      made.steps += fmt::format("        const float x{0} = c{0}[k];\n", i);
    }
    made.steps += fmt::format("        [[maybe_unused]] const float {} = v[k];\n", value_source(p_.row));
    if (std::ranges::find(steps, true) != steps.end()) made.steps += step_source(p_.tile, "        ", steps);
    return made;
  }
  /// Between passes: makes the second convert the row again, which takes fewer registers than to keep its values. Not where both compute the same functions
  /// of it, nor between two short passes over it.
  std::string forget(std::span<const Source> first, std::span<const Source> second, bool stores) const {
    const std::span<const Source> row(&p_.row, 1);
    const std::vector<bool> a = p_.steps_behind(first, row), b = p_.steps_behind(second, row);
    bool is_long = stores;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const OpKind function = p_.tile.steps[i].function;
      const bool cheap = function == OpKind::add || function == OpKind::sub || function == OpKind::mul || function == OpKind::cast;
      if (!b[i] || p_.row_steps[i] || cheap) continue;
      if (a[i]) return "";
      is_long = true;
    }
    return is_long ? "    row.forget_values();\n" : "";
  }
  static std::string each(const Pass& pass, const std::string& declarations, const std::string& statements, const std::string& after) {
    return fmt::format(R"(    row.each([&]([[maybe_unused]] int i, [[maybe_unused]] int64_t column, const float (&v)[width]) {{
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
    std::string text = row_steps_behind(values);
    if (i > 0) text += forget(std::span(&p_.reductions[i - 1].value, 1), values, false);
    const bool maximum = r.kind == Kind::max;
    const int chains = r.kind == Kind::mean || r.kind == Kind::inverse_root ? 2 : 1;  // as the kernels of the operators alone
    const std::string part = fmt::format("part{}[k % {}]", i, chains), first = maximum ? "-infinity()" : "0";
    text += fmt::format("    float part{}[{}] = {{{}{}}};\n", i, chains, first, chains == 2 ? ", " + first : "");
    const std::string statement = r.kind == Kind::inverse_root ? fmt::format("fmaf({0}, {0}, {1})", value, part)
                                  : maximum                    ? fmt::format("Maximum::combine({}, {})", part, value)
                                                               : fmt::format("__fadd_rn({}, {})", part, value);
    text += each(pass(values), "", fmt::format("        {} = {};\n", part, statement), "");
    const std::string all =
        fmt::format("reduce.template operator()<{}>(part{}[0]{})", maximum ? "Maximum" : "Sum", i, chains == 2 ? fmt::format(" + part{}[1]", i) : "");
    const std::string given = r.kind == Kind::mean ? all + " / static_cast<float>(map.length)"
                              : r.kind == Kind::inverse_root
                                  ? fmt::format("norm::inverse_root({}, map.length, {})", all, value_source({Source::From::number, 0, r.eps}))
                                  : all;
    return text + fmt::format("    const float in{} = {};\n", i, given);
  }

  std::string ending(const std::string& quantization) {
    std::vector<Source> values;
    for (const auto& result : p_.tile.results) values.push_back(result.value);
    if (p_.quantization) values.push_back(p_.quantization->value);
    const std::vector<Source> last = values;
    std::string text = row_steps_behind(values);
    if (p_.quantization) values.pop_back();
    if (!p_.reductions.empty()) text += forget(std::span(&p_.reductions.back().value, 1), last, true);
    if (values.empty()) return text + quantize(quantization);
    text += "    const auto store = [&] {\n    if (!place.active) return;\n" + stores() + "    };\n";
    if (!p_.quantization) return text + "    store();\n";
    // Of a row that is read again, results come last: they may overwrite what is read.
    return text + "    if constexpr (Map::held) store();\n" + quantize(quantization) +
           "    if constexpr (!Map::held) {\n      Team::sync();\n      store();\n    }\n";
  }

  std::string stores() const {
    std::vector<Source> values;
    std::string pointers, declarations, statements, after, by_row;
    for (std::size_t j = 0; j < p_.tile.results.size(); ++j) {
      const TileProgram::Result& result = p_.tile.results[j];
      const std::size_t operand = p_.tile.extras.size() + j;
      const std::string type = element(result.dtype);
      if (p_.results_by_row[j]) {
        by_row += fmt::format("    if (map.lane == 0) *place.template of<{}>(p.operands[{}]) = {};\n", type, operand, result_source(p_.tile, result));
        continue;
      }
      values.push_back(result.value);
      declarations += fmt::format("      float y{}[width];\n", j);
      statements += fmt::format("        y{}[k] = {};\n", j, value_source(result.value));
      pointers += fmt::format("    {0}* const to{1} = place.template of<{0}>(p.operands[{2}]);\n", type, j, operand);
      after += fmt::format("      store_vector(to{1} + column, from_floats<{0}>(y{1}));\n", type, j);
    }
    return pointers + (values.empty() ? "" : each(pass(values), declarations, statements, after)) + by_row;
  }

  std::string quantize(const std::string& quantization) const {
    const Source value = p_.quantization->value;
    if (value == p_.row) return fmt::format("    quantize_row<Quantization{}>(row, p.out, place, reduce);\n", quantization);
    const Pass made = pass(std::span(&value, 1));
    return fmt::format(R"(    auto&& quantized = row.then([&]([[maybe_unused]] int i, [[maybe_unused]] int64_t column, float (&v)[width]) {{
{}#pragma unroll
      for (int k = 0; k < width; ++k) {{
{}        v[k] = {};
      }}
    }});
    quantize_row<Quantization{}>(quantized, p.out, place, reduce);
)",
                       made.loads, made.steps, value_source(value), quantization);
  }

  const RowProgram& p_;
  std::vector<bool> printed_;  ///< steps of whole rows
};

}  // namespace

std::string row_source(const RowProgram& program, const std::string& quantization) { return Printer(program).text(quantization); }

}  // namespace cermet::cuda

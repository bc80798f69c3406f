// docs/reference/support.md is written from the tables that decide what is supported. CERMET_APPROVE=1 rewrites it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "model/arch/architecture.hpp"
#include "model/linear_scheme.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

struct ElementTypeRow {
  std::string_view name, stored_name;
  int bytes;
  char kind;
};

constexpr std::array element_type_rows = std::to_array<ElementTypeRow>({
#define X(enumerator, name, stored_name, bytes, kind) {name, stored_name, bytes, kind},
#include "base/dtype.inc"
#undef X
});

struct OnnxRow {
  std::string_view name, domain;
  int first, last;
};

constexpr std::array onnx_rows = std::to_array<OnnxRow>({
#define ROW(name, domain, first, last, function) {#name, domain, first, last},
#include "onnx/ops.inc"
#undef ROW
});

std::string kind_text(char kind) {
  switch (kind) {
    case 'b': return "boolean";
    case 'u': return "unsigned integer";
    case 'i': return "signed integer";
    default: return "floating point";
  }
}

std::string architecture_table() {
  std::string text = "## Architectures\n\n| `architectures` in config.json | `model_type` |\n|---|---|\n";
  for (const ArchitectureDefinition* architecture : all_architectures())
    text += fmt::format("| {} | `{}` |\n", architecture->class_name, architecture->model_type);
  return text;
}

std::string scheme_table() {
  constexpr std::array weight_texts = {"16 or 32 bits", "int8", "fp8 (e4m3)"},
                       input_texts = {"unquantized", "quantized at run time, per token",
                                      "quantized with a stored scale"};
  std::string text = "\n## Schemes of linear modules\n\n| scheme | weights | inputs |\n|---|---|---|\n";
  for (std::size_t weight = 0; weight < weight_texts.size(); ++weight)
    for (std::size_t input = 0; input < input_texts.size(); ++input) {
      const LinearScheme scheme{static_cast<LinearScheme::Weight>(weight), static_cast<LinearScheme::Input>(input)};
      if (scheme.weight == LinearScheme::Weight::real && scheme.input != LinearScheme::Input::real) continue;
      EXPECT_EQ(scheme_named(name_of(scheme)), scheme);
      text += fmt::format("| `{}` | {} | {} |\n", name_of(scheme), weight_texts[weight], input_texts[input]);
    }
  return text;
}

std::string element_type_table() {
  std::string text = "\n## Element types\n\n| type | in safetensors | bytes | kind |\n|---|---|---|---|\n";
  for (const ElementTypeRow& row : element_type_rows)
    text += fmt::format("| `{}` | {} | {} | {} |\n", row.name, row.stored_name.empty() ? "-" : row.stored_name,
                        row.bytes, kind_text(row.kind));
  return text;
}

/// "Attention (23), Resize (7 to 9)", sorted, an operator once.
std::string operators_of(std::string_view domain, std::size_t& count) {
  std::map<std::string_view, OnnxRow> operators;
  for (const OnnxRow& row : onnx_rows) {
    if (row.domain != domain) continue;
    OnnxRow& kept = operators.try_emplace(row.name, row).first->second;
    kept.first = std::min(kept.first, row.first);
    kept.last = kept.last == 0 || row.last == 0 ? 0 : std::max(kept.last, row.last);
  }
  count = operators.size();
  std::string text;
  for (const auto& [name, row] : operators)
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", name, row.first,
                        row.last == 0 ? "" : fmt::format(" to {}", row.last));
  return text;
}

std::string onnx_section() {
  std::map<std::string_view, int> domains;
  for (const OnnxRow& row : onnx_rows) ++domains[row.domain];
  std::string text =
      "\n## ONNX operators\n\nIn parentheses: the first opset of the domain in which the operator is imported; 1: "
      "every opset that has it.\n";
  for (const auto& [domain, rows] : domains) {
    std::size_t count = 0;
    const std::string operators = operators_of(domain, count);
    text += fmt::format("\n### {}: {}\n\n{}\n", domain.empty() ? "ai.onnx" : domain, count, operators);
  }
  return text;
}

TEST(SupportPage, IsUpToDate) {
  expect_golden("../docs/reference/support.md",
                "# Support tables\n\nGenerated from the tables in the source. [support.md](../support.md) says what "
                "runs where.\n\n" +
                    architecture_table() + scheme_table() + element_type_table() + onnx_section());
}

}  // namespace
}  // namespace cermet

#include <algorithm>

#include "onnx/lowering.hpp"

namespace cermet::onnx {

#define ROW(op, domain, first, last, function) void lower_##function(Lowering&);
#include "onnx/ops.inc"
#undef ROW

namespace {

constexpr OpRow rows[] = {
#define ROW(op, domain, first, last, function) {#op, domain, first, last, lower_##function},
#include "onnx/ops.inc"
#undef ROW
};

}  // namespace

std::span<const OpRow> op_rows() { return rows; }

const OpRow* find_row(std::string_view op, std::string_view domain, std::int64_t opset) {
  const auto found = std::ranges::find_if(rows, [&](const OpRow& row) {
    return row.name == op && row.domain == domain && opset >= row.first && (row.last == 0 || opset <= row.last);
  });
  return found == std::end(rows) ? nullptr : &*found;
}

}  // namespace cermet::onnx

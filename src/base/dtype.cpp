#include "base/dtype.hpp"

#include <array>

namespace cermet {
namespace {

struct Row {
  std::string_view name, stored_name;
  std::size_t bytes;
  char kind;
};

constexpr std::array<Row, dtype_count> rows{{
#define X(enumerator, name, stored_name, bytes, kind) {name, stored_name, bytes, kind},
#include "base/dtype.inc"
#undef X
}};

const Row& row(DType dtype) { return rows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(DType dtype) { return row(dtype).bytes; }
std::string_view name_of(DType dtype) { return row(dtype).name; }
std::string_view stored_name_of(DType dtype) { return row(dtype).stored_name; }
bool is_floating(DType dtype) { return row(dtype).kind == 'f'; }
bool is_integer(DType dtype) { return row(dtype).kind == 'i' || row(dtype).kind == 'u'; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> dtype_from_stored_name(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].stored_name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::string DTypeSet::to_string() const {
  std::string text;
  std::size_t left = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) left += contains(static_cast<DType>(i)) ? 1 : 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!contains(static_cast<DType>(i))) continue;
    text += rows[i].name;
    if (--left > 0) text += left == 1 ? " or " : ", ";
  }
  return text;
}

}  // namespace cermet

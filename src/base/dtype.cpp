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

struct Alias {
  std::string_view alias, name;
};

/// Names that NumPy, PyTorch, vLLM and llama.cpp have for the same types. No word that a kernel's manifest may well
/// call a dimension, as "half" is.
constexpr Alias aliases[] = {
    {"float16", "f16"},
    {"fp16", "f16"},
    {"bfloat16", "bf16"},
    {"float32", "f32"},
    {"fp32", "f32"},
    {"float64", "f64"},
    {"fp64", "f64"},
    {"int8", "i8"},
    {"uint8", "u8"},
    {"int16", "i16"},
    {"uint16", "u16"},
    {"int32", "i32"},
    {"uint32", "u32"},
    {"int64", "i64"},
    {"uint64", "u64"},
    {"fp8", "f8_e4m3"},
    {"fp8_e4m3", "f8_e4m3"},
    {"fp8_e5m2", "f8_e5m2"},
    {"float8_e4m3fn", "f8_e4m3"},
    {"float8_e5m2", "f8_e5m2"},
};

const Row& row(DType dtype) { return rows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(DType dtype) { return row(dtype).bytes; }
std::int64_t byte_size(DType dtype) { return static_cast<std::int64_t>(row(dtype).bytes); }
std::string_view name_of(DType dtype) { return row(dtype).name; }
std::string_view stored_name_of(DType dtype) { return row(dtype).stored_name; }
bool is_floating(DType dtype) { return row(dtype).kind == 'f'; }
bool is_integer(DType dtype) { return row(dtype).kind == 'i' || row(dtype).kind == 'u'; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Alias& each : aliases)
    if (each.alias == name) name = each.name;
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

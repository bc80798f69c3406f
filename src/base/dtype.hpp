// Element types of tensors: a table (dtype.inc) and queries on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace cermet {

enum class DType : std::uint8_t {
#define X(enumerator, name, stored_name, bytes, kind) enumerator,
#include "base/dtype.inc"
#undef X
};

inline constexpr int dtype_count = 0
#define X(enumerator, name, stored_name, bytes, kind) +1
#include "base/dtype.inc"
#undef X
    ;

/// Size of one element in bytes.
std::size_t size_of(DType dtype);
/// The same as a number of bytes to count with: tensors have signed sizes.
std::int64_t byte_size(DType dtype);
/// Short lower-case name: "bf16", "i8", "f8_e4m3".
std::string_view name_of(DType dtype);
/// Name in a safetensors header: "BF16".
std::string_view stored_name_of(DType dtype);
bool is_floating(DType dtype);
bool is_integer(DType dtype);  ///< signed or unsigned; not boolean
/// Inverse of name_of; nothing when no type has the name.
std::optional<DType> dtype_from_name(std::string_view name);
/// Inverse of stored_name_of.
std::optional<DType> dtype_from_stored_name(std::string_view name);

/// A set of element types, as operand specifications state them.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> types) {
    for (DType t : types) bits_ |= 1u << static_cast<unsigned>(t);
  }
  constexpr bool contains(DType t) const { return (bits_ >> static_cast<unsigned>(t)) & 1u; }
  constexpr DTypeSet operator|(DTypeSet other) const {
    DTypeSet r;
    r.bits_ = bits_ | other.bits_;
    return r;
  }
  std::string to_string() const;  ///< "f32, bf16 or f16"

 private:
  std::uint32_t bits_ = 0;
};

namespace dtypes {
inline constexpr DTypeSet real{DType::f32, DType::bf16, DType::f16};
inline constexpr DTypeSet fp8{DType::f8_e4m3, DType::f8_e5m2};
inline constexpr DTypeSet index{DType::i32, DType::i64};
inline constexpr DTypeSet integer{DType::i8,  DType::u8,  DType::i16, DType::u16,
                                  DType::i32, DType::u32, DType::i64, DType::u64};
inline constexpr DTypeSet any = real | fp8 | integer | DTypeSet{DType::boolean, DType::f64};
/// Only cast and bitcast take these: formats that files have and no operator computes in.
inline constexpr DTypeSet stored_only{DType::f8_e4m3fnuz, DType::f8_e5m2fnuz, DType::f8_e8m0};
inline constexpr DTypeSet all = any | stored_only;
}  // namespace dtypes

}  // namespace cermet

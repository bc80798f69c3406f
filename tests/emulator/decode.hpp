// What tables of instructions take a statement apart with.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/emulator/machine.hpp"

namespace cermet::emulator {

enum class Type : std::uint8_t {
  pred,
  b8,
  u8,
  s8,
  b16,
  u16,
  s16,
  b32,
  u32,
  s32,
  b64,
  u64,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  e4m3x2,
  e5m2x2,
  tf32,
  f32,
  f64,
};

class Decoder {
 public:
  Decoder(Program& program, const Function& function);
  /// Decodes the function's statements behind those that the program has.
  void run();

  // Of the statement at hand:
  std::string_view operation() const { return words_[0]; }
  /// Whether it has this modifier, which is understood then.
  bool has(std::string_view modifier);
  /// Drops modifiers that change nothing here.
  void ignore(std::initializer_list<std::string_view> modifiers);
  void ignore_prefix(std::string_view prefix);
  /// The last modifier of those that are left, which must be a type.
  Type type();
  bool has_type() const;
  /// The first modifier that is left, which is understood then; empty where there is none.
  std::string_view word();
  const std::vector<Operand>& operands() const { return statement_->operands; }
  std::size_t count() const { return statement_->operands.size(); }
  /// Register of an operand; constants have one, too.
  std::uint32_t reg(const Operand& operand);
  std::uint32_t reg(std::size_t i) { return reg(at(i)); }
  const Operand& at(std::size_t i) const;
  std::uint32_t constant(std::uint64_t value);
  std::uint64_t number(std::size_t i) const;
  /// All operands in their order, lists and pairs as one after the other; at most 6.
  void all(Instruction& in);
  /// Registers of a list, or of the one operand that stands for it.
  std::vector<std::uint32_t> regs(const Operand& operand);
  const std::uint32_t* keep(const std::vector<std::uint32_t>& list);
  /// [base + offset]: base becomes register r[index].
  void memory(const Operand& operand, Instruction& in, std::size_t index);
  void target(const Operand& operand, Instruction& in);
  const std::vector<std::string_view>& branch_targets(const Operand& operand) const;
  std::int64_t label(std::string_view name) const;
  void call(Instruction& in);
  [[noreturn]] void unknown(const std::string& what) const;

 private:
  void statement(const Statement& s);
  std::uint64_t address_of(const Variable& v);
  std::uint32_t special(std::string_view name);
  std::uint32_t special(Special which, std::uint64_t offset);

  Program& program_;
  const Function& function_;
  const Statement* statement_ = nullptr;
  std::vector<std::string_view> words_;
  std::uint32_t first_ = 0;  ///< of the function's instructions
};

using Build = void (*)(Decoder&, Instruction&);
using Table = std::unordered_map<std::string_view, Build>;

// Instructions by what they do; each adds its own.
void add_integer_arithmetic(Table& table);
void add_float_arithmetic(Table& table);
void add_conversions(Table& table);
void add_loads_and_stores(Table& table);
void add_control(Table& table);
void add_warp_exchange(Table& table);
void add_matrix_products(Table& table);
void add_warpgroup_products(Table& table);
void add_asynchronous_copies(Table& table);
void add_mbarriers(Table& table);

/// Instructions whose float types are in the other table: add, sub, min, max, neg, abs, div; mul and mad.
Run integer_binary(Decoder& d, std::string_view operation, Type type);
void integer_product(Decoder& d, Instruction& in, bool adds);

/// st.async and red.async: stores to a block of the cluster that count at its mbarrier.
void store_async(Decoder& d, Instruction& in);
void add_async(Decoder& d, Instruction& in);

/// For handlers that are the same for several types: f(T{}) of the type's bits; floats as their bits.
template <class F>
Run for_bits(Decoder& d, Type type, F f) {
  switch (type) {
    case Type::pred:
    case Type::b8:
    case Type::u8: return f(std::uint8_t{});
    case Type::s8: return f(std::int8_t{});
    case Type::b16:
    case Type::u16:
    case Type::f16:
    case Type::bf16: return f(std::uint16_t{});
    case Type::s16: return f(std::int16_t{});
    case Type::s32: return f(std::int32_t{});
    case Type::b64:
    case Type::u64:
    case Type::f64: return f(std::uint64_t{});
    case Type::s64: return f(std::int64_t{});
    case Type::b32:
    case Type::u32:
    case Type::f32:
    case Type::tf32:
    case Type::f16x2:
    case Type::bf16x2: return f(std::uint32_t{});
    default: d.unknown("type");
  }
}

}  // namespace cermet::emulator

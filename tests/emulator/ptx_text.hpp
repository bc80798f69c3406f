// PTX text as statements: names are resolved to registers, variables and labels, instructions are still words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cermet::emulator {

enum class Space : std::uint8_t { generic, global, shared, local, param, constant };

/// A variable of some space: its place is an offset in what the module, a block or a thread has of that space.
struct Variable {
  Space space = Space::global;
  std::uint64_t offset = 0, bytes = 0;
};

struct Operand {
  enum class Kind : std::uint8_t {
    reg,      ///< `value` is its number
    number,   ///< `value` has its bits
    name,     ///< a special register, a label or a function
    address,  ///< of `variable`, plus `value`
    memory,   ///< [parts[0] + value], or with coordinates [parts[0], parts[1]]
    list,     ///< {parts}, or a pair a|b
    sink,     ///< _
  };
  Kind kind = Kind::sink;
  bool negated = false;  ///< !p
  std::uint64_t value = 0;
  std::string_view name;
  Variable variable;
  std::vector<Operand> parts;
};

struct Statement {
  std::uint32_t line = 0, scope = 0;
  std::string_view mnemonic;
  std::optional<Operand> guard;  ///< a register; negated: runs where it is false
  std::vector<Operand> operands;
};

/// What a pair of braces declares.
struct Scope {
  std::uint32_t parent = 0;
  std::unordered_map<std::string_view, std::uint32_t> registers, labels;  ///< labels: number of a statement
  std::unordered_map<std::string_view, Variable> variables;
  std::unordered_map<std::string_view, std::vector<std::string_view>> branch_targets;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  int min_blocks = 1;  ///< .minnctapersm
  std::vector<Variable> parameters, results;
  std::vector<Statement> statements;
  std::vector<Scope> scopes;  ///< the first has its parameters
};

struct ModuleText {
  std::string text;  ///< what all names point into
  std::vector<Function> functions;
  std::vector<std::byte> globals;       ///< initial contents of global and constant variables
  std::uint64_t shared_bytes = 0;       ///< static shared memory from `shared_base` on, where dynamic memory follows
  std::uint64_t local_bytes = 0;        ///< of a thread
  std::uint32_t registers = 0;          ///< of all functions: none is recursive
  std::vector<std::string_view> lines;  ///< for messages
};

/// Where a block's shared memory begins: what is before is reserved, so that null is no address.
inline constexpr std::uint64_t shared_base = 1024;

/// Throws Error with the line of what is not understood.
ModuleText parse_ptx(std::string text);

}  // namespace cermet::emulator

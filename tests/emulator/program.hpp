// A decoded program: instructions with the function that executes them, and the registers of a thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/emulator/ptx_text.hpp"

namespace cermet::emulator {

struct Thread;
struct Instruction;
class Group;

/// Executes an instruction for a thread, which may make it wait for others.
using Run = void (*)(Thread&, const Instruction&);
/// Executes it for all threads that have arrived.
using RunTogether = void (*)(Group&, const Instruction&);

struct Instruction {
  Run run = nullptr;
  RunTogether together = nullptr;
  std::uint32_t guard = 0;  ///< runs where this register is not `guard_is_false`
  bool guard_is_false = false;
  std::uint8_t bytes = 0;  ///< of an access to memory
  std::uint8_t count = 1;  ///< elements of it
  std::uint8_t option = 0;
  std::uint32_t line = 0;
  std::uint32_t r[6] = {};              ///< registers: results first
  std::int64_t offset = 0;              ///< of an address; target of a branch
  const std::uint32_t* list = nullptr;  ///< registers of longer lists
  /// The allocation that it accessed last.
  mutable std::uint64_t first = 1, last = 0;
};

/// Registers that a launch, a block or a thread sets once.
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  smid,
  nsmid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clusterid_x,
  nclusterid_x,
  cluster_ctaid_x,
  cluster_nctaid_x,
  cluster_ctarank,
  cluster_nctarank,
  dynamic_smem_size,
  total_smem_size,
  param,  ///< address of the parameters, plus an offset
};

struct SpecialRegister {
  std::uint32_t number = 0;
  Special special = Special::tid_x;
  std::uint64_t offset = 0;
};

/// What a call copies before and after.
struct Call {
  struct Copy {
    std::uint64_t from = 0, to = 0, bytes = 0;
  };
  std::vector<Copy> arguments, results;
  std::uint32_t function = 0, target = 0;  ///< its number, and where it begins
};

struct Program {
  std::string name;  ///< for messages
  ModuleText module;
  std::vector<Instruction> code;
  std::uint32_t entry = 0;               ///< where it begins
  std::vector<std::uint64_t> registers;  ///< their first values: poison, or constants
  std::vector<SpecialRegister> specials;
  std::vector<std::unique_ptr<std::uint32_t[]>> lists;
  std::vector<Call> calls;
  std::map<std::uint64_t, std::uint32_t> constants;  ///< their registers
  std::uint32_t sink = 0;                            ///< the register of results that are not wanted
  std::uint64_t parameter_bytes = 0;
  std::vector<std::uint32_t> parameter_offsets, parameter_sizes;
  int min_blocks = 1;  ///< that are to fit on a multiprocessor
  std::string_view line(std::uint32_t number) const {
    return number == 0 || number > module.lines.size() ? std::string_view() : module.lines[number - 1];
  }
};

/// What a register holds before it is written: not a number in every type.
inline constexpr std::uint64_t poison = ~std::uint64_t{0};

/// Decodes PTX; throws Error with the first instruction that is not implemented.
std::unique_ptr<Program> decode(std::string ptx, std::string_view entry);

}  // namespace cermet::emulator

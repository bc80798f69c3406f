// A Python tensor of any framework as DLPack has it, without a copy.
#pragma once

#include <memory>
#include <vector>

#include "dlpack_abi.hpp"
#include "python.hpp"

namespace cermet::python {

/// Which operand messages mean: "rms_norm: input 0 (x)".
struct Role {
  const char* of;
  const char* kind;
  std::size_t index;
  bool is_operators = false;  ///< `of` is an operator, whose operands have names
  std::string text() const;
};

/// What an operand was made of. It is valid as long as the Python object that it was made of.
struct Operand {
  DLTensor tensor{};
  bool is_given = false;
  bool is_read_only = false;
  Ref owner;                         ///< the capsule, where there is one
  std::vector<std::int64_t> shape;   ///< of a description
  const ExchangeApi* api = nullptr;  ///< of the object's class
  const DLTensor* get() const { return is_given ? &tensor : nullptr; }
  DLTensor* get() { return is_given ? &tensor : nullptr; }
};

/// Reads a tensor: one whose class exports DLPack's C functions (PyTorch), or with `__dlpack__`; None for an operand
/// that is not given; or (dtype, shape) for one whose memory is not touched, described as on `device`. `stream`: where
/// an object that is not on the CPU will be used, as `__dlpack__` takes it. Throws ErrorIsSet.
Operand operand_of(PyObject* object, DLDevice device, long long stream, const Role& role);

/// What the object's class exports, or null.
const ExchangeApi* exchange_api_of(PyObject* object);

/// Whether operand_of() can read the object, as its class says.
bool is_tensor(PyObject* object);

/// "bf16" as DLPack 1.x codes it. Throws ErrorIsSet for a name that is none.
DLDataType dlpack_type(const std::string& name);

}  // namespace cermet::python

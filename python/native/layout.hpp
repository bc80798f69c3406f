// Memory that kernels cannot read as it lies.
#pragma once

#include <vector>

#include "operand.hpp"

namespace cermet::python {

/// Operands of a session, a tuple. Those that are not read as they lie are read from dense copies, but for those whose
/// bits are set in `kept`.
class ReadableOperands {
 public:
  /// Throws ErrorIsSet. `stream`: as operand_of() takes it.
  ReadableOperands(PyObject* tensors, DLDevice device, long long stream, const char* of, unsigned long long kept = 0);
  const std::vector<const DLTensor*>& tensors() const { return tensors_; }

 private:
  void read(PyObject* tensors, DLDevice device, long long stream, const char* of);

  Ref copies_;
  std::vector<Operand> operands_;
  std::vector<const DLTensor*> tensors_;
};

/// Whether the tensor is dense and aligned, which every kernel reads.
bool is_plain(const DLTensor& tensor);

/// Whether kernels read the tensor, whose last `dense_dims` dimensions they want contiguous among themselves: no stride
/// is negative, and elements are aligned. `may_lie_transposed`: its matrices may also lie by columns.
bool is_readable(const DLTensor& tensor, int dense_dims, bool may_lie_transposed);

}  // namespace cermet::python

// One call of an operator: its tensors, and where its results go.
#pragma once

#include <vector>

#include "operator.hpp"
#include "result.hpp"

namespace cermet::python {

/// The default stream of a GPU by a name of its own (CU_STREAM_LEGACY), because NULL is the handle's. DLPack has the
/// same number for it.
inline constexpr long long legacy_stream = 1;

/// The stream that a call runs on, as an integer: `given` where it is not null or None, that of the first tensor whose
/// class says, or the default stream; -1 on the CPU, where none may be given. `what` names the call in messages.
long long stream_of(const std::string& what, DLDevice device, PyObject* args, PyObject* given);

class Call {
 public:
  /// Reads the operands: a tuple, which outlives this. Numbers and float64 are converted. Throws ErrorIsSet, as all
  /// functions here.
  Call(Operator& op, PyObject* args, long long stream);

  /// Of the results. Chooses a kernel where these types and shapes are new.
  std::vector<cermet_call_result> types();
  /// Copies operands that kernels cannot read as they lie. For calls that run.
  void make_readable();
  /// New results, of the framework of the first operand; one that shares an operand's memory is that operand.
  void allocate();
  /// Results in memory of the caller: a tensor, or a tuple of as many as there are.
  void take_results(PyObject* out);
  void run();
  /// The result, or a tuple of several: a new reference.
  PyObject* take();

 private:
  PyObject* object(std::size_t i) const { return PyTuple_GetItem(args_, static_cast<Py_ssize_t>(i)); }
  void read();
  void replace(PyObject* args);
  int dense_dims();
  Ref take(std::size_t i);
  void check_call(cermet_status status) const;
  bool has_form_of(const Operand& operand, const cermet_call_result& type) const;
  std::size_t first_given() const;
  void add_given(PyObject* object);

  /// A result that is copied to where the caller wants it.
  struct Put {
    std::size_t result;
    Ref target;
  };

  Operator& op_;
  PyObject* args_;
  Ref replaced_;  ///< the operands where some are not as the caller has them
  long long stream_;
  std::vector<Operand> inputs_;
  std::vector<const DLTensor*> tensors_;
  std::vector<Result> results_;
  std::vector<Put> puts_;
};

}  // namespace cermet::python

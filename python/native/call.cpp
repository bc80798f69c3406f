#include "call.hpp"

#include <algorithm>

#include "layout.hpp"

namespace cermet::python {
namespace {

bool same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

/// A tensor, a description of one, or nothing: what is read as it is.
bool is_operand(PyObject* object) { return object == Py_None || PyTuple_Check(object) || is_tensor(object); }

}  // namespace

long long stream_of(const std::string& what, DLDevice device, PyObject* args, PyObject* given) {
  const bool is_given = given && given != Py_None;
  if (device.device_type == kDLCPU) {
    if (is_given) raise(CERMET_INVALID_ARGUMENT, what + ": stream: expected none on the CPU, found one");
    return -1;
  }
  if (is_given) {
    const long long stream = PyLong_AsLongLong(given);
    require_set(!PyErr_Occurred());
    return stream == 0 ? legacy_stream : stream;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(args); ++i) {
    PyObject* tensor = PyTuple_GetItem(args, i);
    if (tensor == Py_None || PyTuple_Check(tensor)) continue;
    const ExchangeApi* api = exchange_api_of(tensor);
    if (!api || !api->current_stream) continue;
    void* found = nullptr;
    require_set(api->current_stream(device.device_type, device.device_id, &found) == 0);
    return found ? static_cast<long long>(reinterpret_cast<std::uintptr_t>(found)) : legacy_stream;
  }
  return legacy_stream;
}

Call::Call(Operator& op, PyObject* args, long long stream) : op_(op), args_(args), stream_(stream) { read(); }

void Call::read() {
  const auto count = static_cast<std::size_t>(PyTuple_Size(args_));
  inputs_.clear();
  tensors_.clear();
  inputs_.reserve(count);
  bool is_float64 = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!replaced_ && !is_operand(object(i))) {
      replace(args_);
      return read();
    }
    inputs_.push_back(operand_of(object(i), op_.device, stream_, {op_.name.c_str(), "input", i, true}));
    tensors_.push_back(inputs_.back().get());
    is_float64 = is_float64 || (inputs_.back().is_given && same(inputs_.back().tensor.dtype, {kDLFloat, 64, 1}));
  }
  if (!is_float64 || replaced_) return;
  replace(args_);
  read();
}

/// Numbers and float64 as the operator takes them.
void Call::replace(PyObject* args) {
  const Ref name = text(op_.name);
  replaced_ = Ref(PyObject_CallFunctionObjArgs(operands("converted"), name.get(), args, nullptr));
  args_ = replaced_.get();
}

int Call::dense_dims() {
  std::int32_t count = 1;
  cermet_status status = CERMET_OK;
  {
    const Released released;
    const std::lock_guard lock(op_.mutex);
    status = cermet_call_dense_dims(op_.callable, tensors_.data(), tensors_.size(), &count);
  }
  check_call(status);
  return count;
}

void Call::make_readable() {
  bool plain = true;
  for (const Operand& operand : inputs_) plain = plain && (!operand.is_given || is_plain(operand.tensor));
  if (plain) return;
  const int dims = dense_dims();
  unsigned long long mask = 0;
  for (std::size_t i = 0; i < inputs_.size() && i < 64; ++i) {
    const unsigned long long bit = 1ull << i;
    if (inputs_[i].is_given && (op_.state & bit) == 0 &&
        !is_readable(inputs_[i].tensor, dims, (op_.may_lie_transposed & bit) != 0))
      mask |= bit;
  }
  if (mask == 0) return;
  const Ref bits(PyLong_FromUnsignedLongLong(mask)), stream(PyLong_FromLongLong(stream_));
  Ref made(PyObject_CallFunctionObjArgs(operands("copied"), args_, bits.get(), stream.get(), nullptr));
  inputs_.clear();  // they refer to the old ones
  replaced_ = std::move(made);
  args_ = replaced_.get();
  read();
}

/// Raises what the library says of a call, with what helps in Python.
void Call::check_call(cermet_status status) const {
  if (status == CERMET_OK) return;
  const Ref message = text(last_message());
  const Ref words(PyObject_CallFunctionObjArgs(operands("remedied"), message.get(), args_, nullptr));
  raise(status, text_of(words.get()));
}

std::vector<cermet_call_result> Call::types() {
  std::vector<cermet_call_result> types;
  cermet_status status = CERMET_OK;
  {
    const Released released;
    const std::lock_guard lock(op_.mutex);
    std::size_t count = 0;
    status = cermet_call_output_count(op_.callable, tensors_.data(), tensors_.size(), &count);
    if (status == CERMET_OK) types.resize(count);
    for (std::size_t i = 0; i < types.size() && status == CERMET_OK; ++i)
      status = cermet_call_output(op_.callable, tensors_.data(), tensors_.size(), i, &types[i]);
  }
  check_call(status);
  return types;
}

std::size_t Call::first_given() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].is_given) return i;
  raise(CERMET_INVALID_ARGUMENT, op_.name + ": expected a tensor, found none");
}

void Call::allocate() {
  const std::size_t sample = first_given();
  for (const cermet_call_result& type : types()) {
    const auto shared = static_cast<std::size_t>(type.shared_input);
    if (type.shared_input >= 0) add_given(shared < inputs_.size() ? object(shared) : Py_None);
    else results_.emplace_back(type, object(sample), inputs_[sample], op_.device);
  }
}

void Call::take_results(PyObject* out) {
  if (!PyTuple_Check(out)) return add_given(out);
  for (Py_ssize_t i = 0; i < PyTuple_Size(out); ++i) add_given(PyTuple_GetItem(out, i));
}

/// Whether the tensor has type and shape of the result; what differs the library says.
bool Call::has_form_of(const Operand& operand, const cermet_call_result& type) const {
  const DLTensor& t = operand.tensor;
  if (type.shared_input >= 0 || t.ndim != type.ndim || t.device.device_type != op_.device.device_type) return false;
  return same(t.dtype, dlpack_type(type.dtype)) && std::equal(t.shape, t.shape + t.ndim, type.shape);
}

void Call::add_given(PyObject* object) {
  const Role role{op_.name.c_str(), "output", results_.size(), true};
  Operand operand = operand_of(object, op_.device, stream_, role);
  if (operand.is_read_only)
    raise(CERMET_INVALID_ARGUMENT, role.text() + ": expected memory that may be written, found a read-only tensor");
  if (operand.is_given && !is_plain(operand.tensor) && !is_readable(operand.tensor, dense_dims(), false)) {
    const std::vector<cermet_call_result> all = types();
    if (results_.size() < all.size() && has_form_of(operand, all[results_.size()])) {
      puts_.push_back({results_.size(), Ref::to(object)});
      results_.emplace_back(all[results_.size()], object, operand, op_.device);
      return;
    }
  }
  results_.emplace_back(object, std::move(operand));
}

void Call::run() {
  std::vector<DLTensor*> outputs;
  for (Result& result : results_) outputs.push_back(result.tensor());
  void* stream = stream_ < 0 ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(stream_));
  cermet_status status = CERMET_OK;
  {
    const Released released;
    const std::lock_guard lock(op_.mutex);
    status = cermet_call(op_.callable, tensors_.data(), tensors_.size(), outputs.data(), outputs.size(), stream);
  }
  check_call(status);
}

/// A result for the caller, copied to where it was wanted.
Ref Call::take(std::size_t i) {
  Ref made(results_[i].take());
  for (Put& put : puts_) {
    if (put.result != i) continue;
    const Ref stream(PyLong_FromLongLong(stream_));
    const Ref done(PyObject_CallFunctionObjArgs(operands("put"), put.target.get(), made.get(), stream.get(), nullptr));
    return std::move(put.target);
  }
  return made;
}

PyObject* Call::take() {
  if (results_.size() == 1 && !op_.gives_tuple) return take(0).release();
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
  for (std::size_t i = 0; i < results_.size(); ++i)
    require_set(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), take(i).release()) == 0);
  return tuple.release();
}

}  // namespace cermet::python

#include "call.hpp"

namespace cermet::python {

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

Call::Call(Operator& op, PyObject* args, long long stream) : op_(op), args_(args), stream_(stream) {
  const auto count = static_cast<std::size_t>(PyTuple_Size(args));
  inputs_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    inputs_.push_back(operand_of(object(i), op.device, stream_, {op.name.c_str(), "input", i}));
    tensors_.push_back(inputs_.back().get());
  }
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
  check(status);
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

void Call::add_given(PyObject* object) {
  Operand operand = operand_of(object, op_.device, stream_, {op_.name.c_str(), "output", results_.size()});
  if (operand.is_read_only) {
    const Role role{op_.name.c_str(), "output", results_.size()};
    raise(CERMET_INVALID_ARGUMENT, role.text() + ": expected memory that may be written, found a read-only tensor");
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
  check(status);
}

PyObject* Call::take() {
  if (results_.size() == 1 && !op_.gives_tuple) return results_.front().take();
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
  for (std::size_t i = 0; i < results_.size(); ++i) require_set(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), results_[i].take()) == 0);
  return tuple.release();
}

}  // namespace cermet::python

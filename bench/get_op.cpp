// What a call costs beside its kernel: checks, look-up, choice of the kernel. Small operands, so that little else is
// measured; the same operands in all columns.
//   build/bin/bench_get_op [--json] [seconds for each figure] [devices: cpu null:sm_90 cuda]
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/dlpack.hpp"
#include "api/handle.hpp"
#include "api/plain_tensor.hpp"
#include "cermet/cermet.h"
#include "device/cuda/plugin.hpp"
#include "io/json_value.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_each = 0.2;

void check(cermet_status status) {
  if (status == CERMET_OK) return;
  fmt::print(stderr, "{}\n", cermet_last_error_message());
  std::exit(1);
}

/// Nanoseconds of one call: the median of batches of about 20 us. Where launches run on beside the host they are
/// batches of a few, which the device has done before the next batch begins, so that no call waits for it.
double nanoseconds(const std::function<void()>& call, Stream* stream = nullptr, double batch_seconds = 20e-6) {
  const auto time = [&](int count) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) call();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto settle = [&] {
    if (stream) stream->synchronize();
  };
  constexpr int launches = 64;
  int count = stream ? launches : 1;
  while (!stream && count < 1 << 20 && time(count) < batch_seconds) count *= 2;
  std::vector<double> times;
  for (double sum = 0; sum < seconds_each || times.size() < 5;) {
    settle();
    times.push_back(time(count));
    sum += times.back();
  }
  settle();
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return 1e9 * times[times.size() / 2] / count;
}

/// An operator with dense operands of small shapes; rows vary.
struct Row {
  const char* op;
  DType dtype;
  std::vector<Shape> inputs;  ///< -1: the rows
};

const std::vector<Row> rows{{"add", DType::f32, {{-1, 16}, {-1, 16}}},
                            {"rms_norm", DType::f32, {{-1, 64}, {64}}},
                            {"linear", DType::f32, {{-1, 16}, {16, 16}}},
                            {"matmul", DType::f32, {{-1, 16}, {16, 16}}},
                            {"silu_and_mul", DType::f32, {{-1, 32}}}};

/// The tensors of a call with so many rows, in memory of the device.
struct Call {
  std::vector<DeviceBuffer> memory;
  std::vector<TensorView> inputs, outputs;
  std::vector<DLTensor> tensors;
  std::vector<const DLTensor*> in;
  std::vector<DLTensor*> out;

  Call(const Row& row, std::int64_t count, const api::Handle& handle) {
    std::vector<std::optional<TensorType>> types;
    for (Shape shape : row.inputs) {
      for (int a = 0; a < shape.rank(); ++a)
        if (shape[a] < 0) shape[a] = count;
      inputs.push_back(take(handle, row.dtype, shape));
      types.emplace_back(inputs.back().type());
    }
    const Problem problem = make_problem(*find_operator(row.op), types, {});
    for (const TensorType& type : problem.outputs) outputs.push_back(take(handle, type.dtype, bind(type.dims, {})));
    for (const auto* list : {&inputs, &outputs})
      for (const TensorView& view : *list)
        tensors.push_back({view.data, handle.memory, view.shape.rank(), api::dl_type_of(view.dtype),
                           const_cast<std::int64_t*>(view.shape.begin()), nullptr, 0});
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (i < inputs.size()) in.push_back(&tensors[i]);
      else out.push_back(&tensors[i]);
  }
  TensorView take(const api::Handle& handle, DType dtype, const Shape& shape) {
    memory.push_back(handle.context.device().allocate(dense_bytes(dtype, shape)));
    if (handle.context.computes() && !handle.context.stream())
      std::memset(memory.back().data(), 0, static_cast<std::size_t>(memory.back().size()));
    return {memory.back().data(), dtype, shape};
  }
};

cermet_callable* get_op(cermet_handle* handle, const Row& row, const Call& call) {
  cermet_callable* made = nullptr;
  check(cermet_get_op(handle, row.op, call.in.data(), call.in.size(), nullptr, 0, nullptr, &made));
  return made;
}

JsonValue measure(cermet_handle* handle, const Row& row) {
  const api::Handle& shared = *handle->shared;
  const Call call(row, 6, shared), other(row, 7, shared),
      far(row, 40, shared);  // other: of the same range; far: of another
  JsonValue json{{"operator", row.op}, {"device", shared.context.device_spec()}};
  // The stream that PyTorch uses, by its number in the driver's interface: with NULL a call waits until its results are
  // there.
  void* const stream =
      shared.context.computes() && shared.context.stream() ? std::bit_cast<void*>(std::uintptr_t{1}) : nullptr;
  const std::unique_ptr<Stream> wrapped =
      stream ? cuda::plugin().wrap_stream(shared.context.device(), stream) : nullptr;
  Stream* const waited = wrapped.get();

  std::vector<cermet_descriptor> descriptors;
  for (const TensorView& view : call.inputs)
    descriptors.push_back({name_of(view.dtype).data(), view.shape.rank(), view.shape.begin(), nullptr, 0});
  cermet_op* op = nullptr;
  check(cermet_op_create(handle, row.op, descriptors.data(), descriptors.size(), nullptr, 0, &op));
  cermet_callable* const callable = get_op(handle, row, call);
  const auto run = [&](const Call& c) {
    check(cermet_call(callable, c.in.data(), c.in.size(), c.out.data(), c.out.size(), stream));
  };

  if (shared.context.computes()) {
    std::vector<std::optional<TensorType>> types;
    for (const TensorView& view : call.inputs) types.emplace_back(view.type());
    Problem problem = make_problem(*find_operator(row.op), types, {});
    problem.target = shared.context.target();
    Choice choice = select_kernel(problem);
    BoundOp bound(problem, std::move(choice), shared.context.pool(), shared.context.queue());
    json["kernel_ns"] = nanoseconds([&] { bound.run(call.inputs, call.outputs, nullptr, waited); }, waited);
  }
  json["op_run_ns"] = nanoseconds(
      [&] {
        check(cermet_op_run(op, call.in.data(), call.in.size(), call.out.data(), call.out.size(), nullptr, 0, stream));
      },
      waited);
  json["call_ns"] = nanoseconds([&] { run(call); }, waited);
  json["call_other_rows_ns"] = nanoseconds([&] { run(call), run(other); }, waited) / 2;
  json["call_other_range_ns"] = nanoseconds([&] { run(call), run(far); }, waited) / 2;
  cermet_call_result result;
  json["call_output_ns"] =
      nanoseconds([&] { check(cermet_call_output(callable, call.in.data(), call.in.size(), 0, &result)); }, waited);
  json["get_op_known_ns"] = nanoseconds([&] { cermet_callable_destroy(get_op(handle, row, call)); }, nullptr, 200e-6);
  const Call first(row, 300, shared);
  const auto start = Clock::now();
  cermet_callable_destroy(get_op(handle, row, first));
  json["get_op_new_ns"] = 1e9 * std::chrono::duration<double>(Clock::now() - start).count();
  cermet_callable_destroy(callable);
  cermet_op_destroy(op);
  return json;
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) {
  using namespace cermet;
  bool is_json = false;
  std::vector<std::string> devices;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") is_json = true;
    else if (const double seconds = std::atof(argv[i]); seconds > 0) seconds_each = seconds;
    else devices.push_back(word);
  }
  if (devices.empty()) devices = {"cpu", "null:sm_90"};
  JsonValue list = JsonValue::array();
  if (!is_json)
    fmt::print(
        "nanoseconds of a call    kernel  op_run    call  rows   range  output  get_op known     new\n"
        "kernel: the launch alone, of a GPU until it is in the stream; rows: with other rows of the same range in "
        "turn; range: with those of another range; "
        "new: the first get_op of a range\n");
  for (const std::string& device : devices) {
    cermet_handle* handle = nullptr;
    check(cermet_create(device.c_str(), 1, &handle));
    for (const Row& row : rows) {
      const JsonValue json = measure(handle, row);
      const auto figure = [&](const char* key) {
        return json.contains(key) ? fmt::format("{:.0f}", json[key].get<double>()) : std::string("-");
      };
      if (!is_json)
        fmt::print("{:12} {:10} {:>6} {:>7} {:>7} {:>5} {:>7} {:>7} {:>13} {:>7}\n", device, row.op,
                   figure("kernel_ns"), figure("op_run_ns"), figure("call_ns"), figure("call_other_rows_ns"),
                   figure("call_other_range_ns"), figure("call_output_ns"), figure("get_op_known_ns"),
                   figure("get_op_new_ns"));
      list.push_back(json);
    }
    cermet_destroy(handle);
  }
  if (is_json) fmt::print("{}\n", list.dump());
}

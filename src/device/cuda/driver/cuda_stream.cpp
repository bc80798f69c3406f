// A CUDA stream, its captures and events.
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <utility>
#include <vector>

#include "device/cuda/driver/blas.hpp"
#include "device/cuda/driver/cuda_device.hpp"

namespace cermet::cuda {
namespace {

class Event final : public DeviceEvent {
 public:
  explicit Event(std::shared_ptr<Context> context) : context_(std::move(context)) {
    driver().check(driver().event_create(&event_, CU_EVENT_DEFAULT), "event");
  }
  ~Event() override {
    const CurrentContext current(context_->handle());
    driver().event_destroy(event_);
  }
  CUevent handle() const { return event_; }

 private:
  std::shared_ptr<Context> context_;
  CUevent event_ = nullptr;
};

class Graph final : public CapturedGraph {
 public:
  Graph(std::shared_ptr<Context> context, CUgraph graph) : context_(std::move(context)) {
    const Driver& d = driver();
    std::size_t count = 0;
    const CUresult counted = d.graph_get_nodes(graph, nullptr, &count);
    const CUresult made = counted == CUDA_SUCCESS ? d.graph_instantiate(&exec_, graph, 0) : counted;
    d.graph_destroy(graph);
    d.check(made, "graph");
    nodes_ = static_cast<std::int64_t>(count);
  }
  ~Graph() override {
    const CurrentContext current(context_->handle());
    driver().graph_exec_destroy(exec_);
  }
  std::int64_t nodes() const override { return nodes_; }
  CUgraphExec handle() const { return exec_; }

 private:
  std::shared_ptr<Context> context_;
  CUgraphExec exec_ = nullptr;
  std::int64_t nodes_ = 0;
};

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

class CudaStream final : public Stream {
 public:
  explicit CudaStream(std::shared_ptr<Context> context) : context_(std::move(context)) {
    const CurrentContext current(context_->handle());
    driver().check(driver().stream_create(&stream_, CU_STREAM_NON_BLOCKING), "stream");
  }
  CudaStream(std::shared_ptr<Context> context, CUstream stream)
      : context_(std::move(context)), stream_(stream), owned_(false) {}
  ~CudaStream() override {
    if (!owned_) return;
    const CurrentContext current(context_->handle());
    driver().stream_destroy(stream_);
  }

  void upload(void* device, const void* host, std::int64_t bytes) override {
    copy_bytes(device, host, bytes, "upload");
  }
  void download(void* host, const void* device, std::int64_t bytes) override {
    copy_bytes(host, device, bytes, "download");
  }
  void copy(void* to, const void* from, std::int64_t bytes) override { copy_bytes(to, from, bytes, "copy"); }
  void fill(void* device, unsigned char value, std::int64_t bytes) override {
    if (bytes == 0) return;
    const CurrentContext current(context_->handle());
    driver().check(driver().memset_d8_async(address(device), value, static_cast<std::size_t>(bytes), stream_), "fill");
  }
  void synchronize() override {
    const CurrentContext current(context_->handle());
    driver().check(driver().stream_synchronize(stream_), "device");
  }

  void launch(const LaunchShape& shape, DeviceFunction function, void** parameters) override {
    const CurrentContext current(context_->handle());
    std::array<CUlaunchAttribute, 3> attributes{};
    unsigned count = 0;
    if (shape.overlaps_previous) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    if (shape.cluster > 1) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attributes[count++].value.clusterDim = {shape.cluster, 1, 1};
    }
    if (shape.together) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      attributes[count++].value.cooperative = 1;
    }
    CUlaunchConfig config{};
    config.gridDimX = shape.blocks;
    config.gridDimY = shape.blocks_y;
    config.gridDimZ = shape.blocks_z;
    config.blockDimX = shape.threads;
    config.blockDimY = shape.threads_y;
    config.blockDimZ = shape.threads_z;
    config.sharedMemBytes = shape.shared_bytes;
    config.hStream = stream_;
    config.attrs = attributes.data();
    config.numAttrs = count;
    driver().check(driver().launch_kernel(&config, static_cast<CUfunction>(function.handle), parameters, nullptr),
                   "launch");
  }

  void multiply(const MatrixProduct& product) override {
    const CurrentContext current(context_->handle());
    multiply_with_cublaslt(product, stream_);
  }

  void begin_capture() override {
    const CurrentContext current(context_->handle());
    driver().check(driver().stream_begin_capture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "capture");
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    const CurrentContext current(context_->handle());
    CUgraph graph = nullptr;
    driver().check(driver().stream_end_capture(stream_, &graph), "capture");
    return std::make_unique<Graph>(context_, graph);
  }
  void abandon_capture() noexcept override {
    const CurrentContext current(context_->handle());
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver().stream_is_capturing(stream_, &status) != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
      return;
    driver().stream_end_capture(stream_, &abandoned_);  // fails where the capture is broken, and ends it all the same
    if (abandoned_) driver().graph_destroy(std::exchange(abandoned_, nullptr));
  }
  bool is_capturing() const override {
    const CurrentContext current(context_->handle());
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    driver().check(driver().stream_is_capturing(stream_, &status), "capture");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
  }
  void replay(const CapturedGraph& graph) override {
    const CurrentContext current(context_->handle());
    driver().check(driver().graph_launch(static_cast<const Graph&>(graph).handle(), stream_), "graph");
  }

  std::unique_ptr<DeviceEvent> make_event() override {
    const CurrentContext current(context_->handle());
    return std::make_unique<Event>(context_);
  }
  void record(DeviceEvent& event) override {
    const CurrentContext current(context_->handle());
    driver().check(driver().event_record(static_cast<Event&>(event).handle(), stream_), "event");
  }
  void wait(const DeviceEvent& event) override {
    const CurrentContext current(context_->handle());
    driver().check(driver().stream_wait_event(stream_, static_cast<const Event&>(event).handle(), 0), "event");
  }
  void synchronize_event(const DeviceEvent& event) override {
    const CurrentContext current(context_->handle());
    driver().check(driver().event_synchronize(static_cast<const Event&>(event).handle()), "device");
  }
  double seconds_between(const DeviceEvent& start, const DeviceEvent& end) override {
    const CurrentContext current(context_->handle());
    float milliseconds = 0;
    driver().check(driver().event_elapsed_time(&milliseconds, static_cast<const Event&>(start).handle(),
                                               static_cast<const Event&>(end).handle()),
                   "event");
    return static_cast<double>(milliseconds) * 1e-3;
  }

  void* native_handle() const override { return stream_; }
  void begin_range(const char* name) override { nvtxRangePushA(name); }
  void end_range() noexcept override { nvtxRangePop(); }

 private:
  void copy_bytes(void* to, const void* from, std::int64_t bytes, const char* what) {
    if (bytes == 0) return;
    const CurrentContext current(context_->handle());
    driver().check(driver().memcpy_async(address(to), address(from), static_cast<std::size_t>(bytes), stream_), what);
  }

  std::shared_ptr<Context> context_;
  CUstream stream_ = nullptr;
  bool owned_ = true;
  CUgraph abandoned_ = nullptr;
};

}  // namespace

std::unique_ptr<Stream> wrap_cuda_stream(std::shared_ptr<Context> context, CUstream stream) {
  return std::make_unique<CudaStream>(std::move(context), stream);
}

std::unique_ptr<Stream> make_cuda_stream(std::shared_ptr<Context> context) {
  return std::make_unique<CudaStream>(std::move(context));
}

}  // namespace cermet::cuda

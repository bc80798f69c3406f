#include "device/cuda/driver/nccl.hpp"

#include <dlfcn.h>

#include <atomic>

#include "base/env.hpp"
#include "device/cuda/driver/cuda_device.hpp"

namespace cermet::cuda {
namespace {

// The part of NCCL's interface that is used, as nccl.h has declared it since 2.7; versions keep it stable. The header
// is not needed to build.
struct NcclComm;
using Result = int;  // 0 success, 7 in progress
constexpr Result in_progress = 7;

struct Nccl {
  Result (*get_version)(int*);
  const char* (*get_error_string)(Result);
  Result (*get_unique_id)(GroupIdentity*);
  Result (*comm_init_rank)(NcclComm**, int, GroupIdentity, int);
  Result (*comm_destroy)(NcclComm*);
  Result (*comm_abort)(NcclComm*);
  Result (*comm_get_async_error)(NcclComm*, Result*);
  Result (*all_reduce)(const void*, void*, std::size_t, int, int, NcclComm*, CUstream);
  Result (*reduce)(const void*, void*, std::size_t, int, int, int, NcclComm*, CUstream);
  Result (*reduce_scatter)(const void*, void*, std::size_t, int, int, NcclComm*, CUstream);
  Result (*all_gather)(const void*, void*, std::size_t, int, NcclComm*, CUstream);
  Result (*broadcast)(const void*, void*, std::size_t, int, int, NcclComm*, CUstream);
  Result (*send)(const void*, std::size_t, int, int, NcclComm*, CUstream);
  Result (*receive)(void*, std::size_t, int, int, NcclComm*, CUstream);
  Result (*group_start)();
  Result (*group_end)();

  void check(Result result, const char* what) const {
    if (result != 0 && result != in_progress)
      fail(Status::unsupported, "{}: NCCL reports {}", what, get_error_string(result));
  }
};

constexpr int type_bytes = 0;  // ncclInt8

Nccl open_nccl() {
  const std::string& given = env::value(env::Name::CERMET_NCCL);
  const char* const name = given.empty() ? "libnccl.so.2" : given.c_str();
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(Status::unsupported, "NCCL: expected {} (CERMET_NCCL names another file), found: {}", name, dlerror());
  const auto find = [&]<class F>(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library, symbol));
    if (!function) fail(Status::unsupported, "NCCL: expected a function {} in {}, found none", symbol, name);
  };
  Nccl n{};
  find(n.get_version, "ncclGetVersion");
  find(n.get_error_string, "ncclGetErrorString");
  find(n.get_unique_id, "ncclGetUniqueId");
  find(n.comm_init_rank, "ncclCommInitRank");
  find(n.comm_destroy, "ncclCommDestroy");
  find(n.comm_abort, "ncclCommAbort");
  find(n.comm_get_async_error, "ncclCommGetAsyncError");
  find(n.all_reduce, "ncclAllReduce");
  find(n.reduce, "ncclReduce");
  find(n.reduce_scatter, "ncclReduceScatter");
  find(n.all_gather, "ncclAllGather");
  find(n.broadcast, "ncclBroadcast");
  find(n.send, "ncclSend");
  find(n.receive, "ncclRecv");
  find(n.group_start, "ncclGroupStart");
  find(n.group_end, "ncclGroupEnd");
  int version = 0;
  if (n.get_version(&version) != 0 || version < 21000)
    fail(Status::unsupported, "NCCL: expected version 2.10 or later in {}, found code {}", name, version);
  return n;
}

const Nccl& nccl() {
  static const Nccl opened = open_nccl();
  return opened;
}

int nccl_type(DType dtype) {
  switch (dtype) {
    case DType::i8: return 0;
    case DType::u8: return 1;
    case DType::i32: return 2;
    case DType::u32: return 3;
    case DType::i64: return 4;
    case DType::u64: return 5;
    case DType::f16: return 6;
    case DType::f32: return 7;
    case DType::f64: return 8;
    case DType::bf16: return 9;
    default: fail(Status::unsupported, "NCCL: expected an element type that it reduces, found {}", name_of(dtype));
  }
}

CUstream handle_of(Stream& stream) { return static_cast<CUstream>(stream.native_handle()); }

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(Device& device, int rank, int size, const GroupIdentity& identity)
      : context_(context_of(device)), size_(size) {
    const CurrentContext current(context_->handle());
    NcclComm* comm = nullptr;
    nccl().check(nccl().comm_init_rank(&comm, size, identity, rank), "NCCL group");
    comm_ = comm;
  }
  ~NcclGroup() override {
    NcclComm* comm = comm_.exchange(nullptr);
    if (!comm) return;
    const CurrentContext current(context_->handle());
    nccl().comm_destroy(comm);
  }

  void all_reduce(const void* x, void* y, std::int64_t count, DType dtype, GroupReduction reduction,
                  Stream& stream) override {
    call("all_reduce", [&](NcclComm* comm) {
      return nccl().all_reduce(x, y, size_of_count(count), nccl_type(dtype), static_cast<int>(reduction), comm,
                               handle_of(stream));
    });
  }
  void reduce(const void* x, void* y, std::int64_t count, DType dtype, GroupReduction reduction, int root,
              Stream& stream) override {
    call("reduce_to", [&](NcclComm* comm) {
      return nccl().reduce(x, y, size_of_count(count), nccl_type(dtype), static_cast<int>(reduction), root, comm,
                           handle_of(stream));
    });
  }
  void reduce_scatter(const void* x, void* y, std::int64_t count, DType dtype, GroupReduction reduction,
                      Stream& stream) override {
    call("reduce_scatter", [&](NcclComm* comm) {
      return nccl().reduce_scatter(x, y, size_of_count(count), nccl_type(dtype), static_cast<int>(reduction), comm,
                                   handle_of(stream));
    });
  }
  void all_gather(const void* x, void* y, std::int64_t bytes, Stream& stream) override {
    call("all_gather", [&](NcclComm* comm) {
      return nccl().all_gather(x, y, size_of_count(bytes), type_bytes, comm, handle_of(stream));
    });
  }
  void broadcast(const void* x, void* y, std::int64_t bytes, int root, Stream& stream) override {
    call("broadcast_from", [&](NcclComm* comm) {
      return nccl().broadcast(x, y, size_of_count(bytes), type_bytes, root, comm, handle_of(stream));
    });
  }
  void exchange(const void* x, std::span<const std::int64_t> sent, void* y, std::span<const std::int64_t> received,
                Stream& stream) override {
    call("exchange", [&](NcclComm* comm) {
      nccl().check(nccl().group_start(), "exchange");
      const char* from = static_cast<const char*>(x);
      char* to = static_cast<char*>(y);
      Result first = 0;
      const auto note = [&](Result result) { first = first != 0 ? first : result; };
      for (int peer = 0; peer < size_; ++peer) {
        const auto give = static_cast<std::size_t>(sent[static_cast<std::size_t>(peer)]),
                   take = static_cast<std::size_t>(received[static_cast<std::size_t>(peer)]);
        if (give > 0) note(nccl().send(from, give, type_bytes, peer, comm, handle_of(stream)));
        if (take > 0) note(nccl().receive(to, take, type_bytes, peer, comm, handle_of(stream)));
        from += give;
        to += take;
      }
      note(nccl().group_end());
      return first;
    });
  }

  std::string failure() override {
    NcclComm* comm = comm_.load();
    Result error = 0;
    if (!comm || nccl().comm_get_async_error(comm, &error) != 0 || error == 0 || error == in_progress) return "";
    return fmt::format("NCCL reports {}", nccl().get_error_string(error));
  }
  void abort() noexcept override {
    NcclComm* comm = comm_.exchange(nullptr);
    if (comm) nccl().comm_abort(comm);
  }

 private:
  static std::size_t size_of_count(std::int64_t count) { return static_cast<std::size_t>(count); }

  template <class Body>
  void call(const char* what, Body body) {
    const CurrentContext current(context_->handle());
    NcclComm* comm = comm_.load();
    if (!comm) fail(Status::io, "{}: expected a group of GPUs, found one that has ended", what);
    nccl().check(body(comm), what);
  }

  std::shared_ptr<Context> context_;
  int size_;
  std::atomic<NcclComm*> comm_{nullptr};
};

}  // namespace

std::string nccl_problem() {
  try {
    nccl();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

GroupIdentity make_group_identity() {
  GroupIdentity identity{};
  nccl().check(nccl().get_unique_id(&identity), "NCCL identity");
  return identity;
}

std::unique_ptr<DeviceGroup> join_device_group(Device& device, int rank, int size, const GroupIdentity& identity) {
  return std::make_unique<NcclGroup>(device, rank, size, identity);
}

}  // namespace cermet::cuda

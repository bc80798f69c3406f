// The plugin's side: MPI's nonblocking collectives, polled, so that a process that waits for one that is gone can say
// so.
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <climits>
#include <ctime>
#include <vector>

#include "base/error.hpp"
#include "comm/mpi_plugin.hpp"

namespace cermet::comm {
namespace {

void check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  fail(Status::io, "MPI: {}: {}", what, text);
}

MPI_Datatype type_of(int unit) {
  switch (unit) {
    case 1: return MPI_BYTE;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
  }
}

int count_of(std::int64_t count) {
  if (count > INT_MAX)
    fail(Status::unsupported, "MPI: expected at most {} elements for a rank, found {}", INT_MAX, count);
  return static_cast<int>(count);
}

class Transport final : public MpiTransport {
 public:
  Transport(MPI_Comm group, bool is_world) : group_(group), is_world_(is_world) {
    MPI_Comm_set_errhandler(group_, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(group_, &rank_), "rank");
    check(MPI_Comm_size(group_, &size_), "size");
  }
  ~Transport() override {
    if (abandoned_) return;
    if (is_world_) MPI_Finalize();
    else MPI_Comm_free(&group_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_gather(const void* x, void* y, std::int64_t count, int unit, Wait wait) override {
    const int n = count_of(count);
    MPI_Request request;
    check(MPI_Iallgather(x, n, type_of(unit), y, n, type_of(unit), group_, &request), "all_gather");
    finish(request, wait);
  }
  void gather(const void* x, void* y, std::int64_t count, int unit, int root, Wait wait) override {
    const int n = count_of(count);
    MPI_Request request;
    check(MPI_Igather(x, n, type_of(unit), y, n, type_of(unit), root, group_, &request), "gather");
    finish(request, wait);
  }
  void scatter(const void* x, void* y, std::int64_t count, int unit, int root, Wait wait) override {
    const int n = count_of(count);
    MPI_Request request;
    check(MPI_Iscatter(x, n, type_of(unit), y, n, type_of(unit), root, group_, &request), "scatter");
    finish(request, wait);
  }
  void broadcast(void* x, std::int64_t count, int unit, int root, Wait wait) override {
    MPI_Request request;
    check(MPI_Ibcast(x, count_of(count), type_of(unit), root, group_, &request), "broadcast");
    finish(request, wait);
  }
  void all_to_all(const void* x, void* y, std::int64_t count, int unit, Wait wait) override {
    const int n = count_of(count);
    MPI_Request request;
    check(MPI_Ialltoall(x, n, type_of(unit), y, n, type_of(unit), group_, &request), "all_to_all");
    finish(request, wait);
  }
  void all_to_all_uneven(const void* x, const int* sent, void* y, const int* received, int unit, Wait wait) override {
    begins_.assign(2 * static_cast<std::size_t>(size_), 0);
    int* const of_sent = begins_.data();
    int* const of_received = of_sent + size_;
    for (int r = 1; r < size_; ++r) {
      of_sent[r] = count_of(std::int64_t{of_sent[r - 1]} + sent[r - 1]);
      of_received[r] = count_of(std::int64_t{of_received[r - 1]} + received[r - 1]);
    }
    MPI_Request request;
    check(MPI_Ialltoallv(x, sent, of_sent, type_of(unit), y, received, of_received, type_of(unit), group_, &request),
          "all_to_all");
    finish(request, wait);
  }
  std::unique_ptr<MpiTransport> split(int color, int key) override {
    MPI_Comm part;
    check(MPI_Comm_split(group_, color, key, &part), "split");
    return std::make_unique<Transport>(part, false);
  }
  void abandon() noexcept override { abandoned_ = true; }

 private:
  /// Polls: at first without a pause, then leaving the core to others, then sleeping. Looks at the clock, because a
  /// poll can take long where cores are few.
  static void finish(MPI_Request& request, Wait wait) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point began, looked;
    for (std::int64_t polls = 0;; ++polls) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "test");
      if (done) return;
      if (polls < 16) continue;
      sched_yield();
      const Clock::time_point now = Clock::now();
      if (polls == 16) began = looked = now;
      if (now - looked > std::chrono::milliseconds(10)) {
        wait();
        looked = now;
      }
      if (now - began < std::chrono::milliseconds(20)) continue;
      const timespec pause{0, 50'000};
      nanosleep(&pause, nullptr);
    }
  }

  MPI_Comm group_;
  bool is_world_, abandoned_ = false;
  int rank_ = 0, size_ = 1;
  std::vector<int> begins_;
};

std::unique_ptr<MpiTransport> make_world() {
  int given = 0, initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) fail(Status::unsupported, "MPI: expected to be initialized once in a process, found that it was");
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given), "init");
  return std::make_unique<Transport>(MPI_COMM_WORLD, true);
}

}  // namespace
}  // namespace cermet::comm

extern "C" const cermet::comm::MpiInterface* cermet_mpi_plugin() {
  static constexpr cermet::comm::MpiInterface interface { CERMET_BUILD_ID, cermet::comm::make_world };
  return &interface;
}

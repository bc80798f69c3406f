#include "comm/shared.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/cores.hpp"
#include "base/env.hpp"
#include "comm/window_communicator.hpp"

namespace cermet::comm {
namespace {

/// POSIX shared memory with a lock for every rank, which the system gives back when the rank's process ends, however it
/// ends.
class SharedSegment final : public Segment {
 public:
  /// Rank 0 makes it, in place of one that a killed job left behind; the others wait for it.
  SharedSegment(std::string name, int rank, int ranks, std::int64_t window_bytes, const std::function<void()>& wait)
      : name_(std::move(name)), rank_(rank), window_bytes_(window_bytes), bytes_(Board::bytes(ranks, window_bytes)) {
    try {
      if (rank == 0) create(ranks);
      else
        while (!open_made(ranks)) {
          wait();
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    } catch (...) {
      close();
      throw;
    }
  }
  ~SharedSegment() override {
    settle();
    close();
  }

  Board& board() override { return *board_; }
  std::string_view engine() const override { return "shared"; }
  bool is_alive(int rank) override { return is_locked(rank); }
  std::shared_ptr<Segment> join(const std::string& name, int rank, int ranks,
                                const std::function<void()>& wait) override {
    return std::make_shared<SharedSegment>(fmt::format("{}.{}", name_, name), rank, ranks, window_bytes_, wait);
  }
  void settle() override {
    if (std::exchange(named_, false)) shm_unlink(name_.c_str());
  }

 private:
  [[noreturn]] void fail_to(std::string_view what) const {
    fail(errno == ENOSPC || errno == ENOMEM ? Status::out_of_memory : Status::io,
         "shared memory {}: cannot {} {} bytes: {}", name_, what, bytes_, std::strerror(errno));
  }

  void create(int ranks) {
    shm_unlink(name_.c_str());
    descriptor_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor_ < 0) fail_to("make");
    named_ = true;
    if (const int error = posix_fallocate(descriptor_, 0, bytes_);
        error != 0) {  // zeros; a full file system is an error here and not a signal later
      errno = error;
      fail_to("reserve");
    }
    map();
    board_->initialize(ranks, window_bytes_);
    lock();  // which says that it is complete
  }

  /// Whether it is there; the memory of a job whose rank 0 is gone is not.
  bool open_made(int ranks) {
    descriptor_ = shm_open(name_.c_str(), O_RDWR | O_CLOEXEC, 0);
    if (descriptor_ < 0 && errno != ENOENT) fail_to("open");
    if (descriptor_ < 0) return false;
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !is_locked(0)) {
      close();
      return false;
    }
    require(status.st_size == bytes_,
            "shared memory {}: expected {} bytes for {} ranks, found {}: other ranks expect another number", name_,
            bytes_, ranks, static_cast<std::int64_t>(status.st_size));
    map();
    lock();
    return true;
  }

  void map() {
    void* memory = mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (memory == MAP_FAILED) fail_to("map");
    board_ = static_cast<Board*>(memory);
  }

  struct flock byte_of(int rank) const {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = rank;
    range.l_len = 1;
    return range;
  }
  void lock() {
    struct flock own = byte_of(rank_);
    if (fcntl(descriptor_, F_OFD_SETLK, &own) != 0)
      fail(Status::invalid_argument, "shared memory {}: expected one process to be rank {}, found another one that is",
           name_, rank_);
  }
  /// Of another rank: a process does not see its own locks.
  bool is_locked(int rank) const {
    struct flock range = byte_of(rank);
    return fcntl(descriptor_, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  }

  void close() {
    if (board_) munmap(board_, static_cast<std::size_t>(bytes_));
    if (descriptor_ >= 0) ::close(descriptor_);
    board_ = nullptr;
    descriptor_ = -1;
  }

  std::string name_;
  int rank_;
  std::int64_t window_bytes_, bytes_;
  int descriptor_ = -1;
  bool named_ = false;
  Board* board_ = nullptr;
};

}  // namespace

std::shared_ptr<Segment> make_shared_segment(const std::string& name, int rank, int ranks, std::int64_t window_bytes,
                                             const std::function<void()>& wait) {
  return std::make_shared<SharedSegment>(fmt::format("/cermet-{}-{}", getuid(), name), rank, ranks, window_bytes, wait);
}

std::unique_ptr<Communicator> join_shared_group(const std::string& job, int rank, int ranks) {
  const bool plain =
      !job.empty() && job.size() <= 128 &&
      job.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == std::string::npos;
  require(plain, "job: expected a name of up to 128 letters, digits, dots and hyphens, found '{}'", job);
  require(ranks >= 1 && ranks <= 1024 && rank >= 0 && rank < ranks,
          "shared group: expected a rank in [0, 1024), found {} of {}", rank, ranks);
  const long patience = env::integer(env::Name::CERMET_COMM_TIMEOUT);
  const auto since = std::chrono::steady_clock::now();
  const auto segment = make_shared_segment(job, rank, ranks, default_window_bytes, [&] {
    if (std::chrono::steady_clock::now() - since > std::chrono::seconds(patience))
      fail(Status::io, "rank {} of {}: rank 0 did not come within {} s: no shared memory of job {}", rank, ranks,
           patience, job);
  });
  auto communicator = make_window_communicator(segment, rank, usable_cores());
  communicator->barrier();
  segment->settle();
  return communicator;
}

}  // namespace cermet::comm

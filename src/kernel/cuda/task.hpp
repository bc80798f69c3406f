// The host half of CUDA tasks: what to compile and how to enqueue it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device/device.hpp"
#include "device/plan.hpp"

namespace cermet::cuda {

/// Code of others: an ordinary __global__ function, which is launched as it is, and never linked with tasks.
struct ForeignCode {
  enum class Form : std::uint8_t { source, cubin, ptx };
  Form form = Form::source;
  std::shared_ptr<const std::string> code;          ///< CUDA C++, machine code, or PTX
  std::vector<std::string> options = {};            ///< of the compilation of a source
  std::string entry;                                ///< the function's name in the image
  std::vector<std::uint32_t> parameter_bytes = {};  ///< size of each of its parameters

  friend bool operator==(const ForeignCode&, const ForeignCode&) = default;
  friend auto operator<=>(const ForeignCode&,
                          const ForeignCode&) = default;  // NOLINT(modernize-use-nullptr): as of Program below
};

/// How a task joins a walk (device/walk.cuh), where it is not one that needs its threads and shared memory only.
struct Walk {
  bool whole_block = false;  ///< it has all threads and shared memory of a block: then no ring is shared in that walk
  /// Of a task whose last warp streams weights through stages that the tasks of a walk share: bytes of a stage, and
  /// what `shared_bytes` counts for all stages with their barriers. 0: it does not stream.
  std::int64_t stage_bytes = 0, ring_bytes = 0;
  std::int64_t body_bytes = 0;  ///< shared memory beside that ring; 0: what `shared_bytes` counts beside `ring_bytes`
  int feeding_threads = 32;     ///< of `threads`, in a launch of its own; in a walk there is one warp
  /// Of a task whose items leave each other numbers (device/meeting.cuh): for each item, a multiple of 16.
  std::int64_t meeting_bytes = 0;

  friend bool operator==(const Walk&, const Walk&) = default;
  friend auto operator<=>(const Walk&, const Walk&) = default;  // NOLINT(modernize-use-nullptr): as of Program below
};

/// A task with its configuration, compiled at run time to one function for one architecture. What a task type has,
/// kernel/cuda/device/entry.cuh says: its parameters, and a body for the threads of a team, in one piece or in the
/// halves `fetch` and `compute`. The generated wrapper loops over the items of its block.
struct Program {
  std::string header;        ///< below src/: "kernel/cuda/device/rowwise/region.cuh"
  std::string task;          ///< C++ type: "cermet::rms_norm::Task<{.hidden = 4096}>"
  std::string prelude = {};  ///< generated source between the header and the task: the types that fill its holes
  int threads = 256;
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory; 1024-byte aligned in the kernel
  int min_blocks = 1;             ///< blocks that must fit on an SM: caps registers
  int registers = 0;  ///< of a thread at most, in place of what min_blocks leaves, beside which other launches' blocks
                      ///< find room; 0: those
  int cluster = 1;
  bool may_spill = false;  ///< tests refuse spills otherwise
  /// One block per SM, which fetches weights while earlier launches run. In a graph every second launch of such
  /// programs takes more than half of an SM's shared memory: so two of them overlap, but never two blocks of one,
  /// whatever the order in which SMs become free. Others do not make up for an SM without a block: none takes more than
  /// 1/86 of the memory bandwidth.
  bool alternates = false;
  bool divides_warps = false;      ///< its warps have parts of a block's work that are its own: no walk runs them
  bool reads_descriptors = false;  ///< its copies read tensor maps, which must be a launch's own parameters
  std::optional<Walk> walk = {};
  /// Of a task whose items are rows of the region's first operand: columns of a row that stay in registers between its
  /// passes; 0: each pass reads them again.
  std::optional<int> held_columns = {};
  bool fallback = false;  ///< for launches whose addresses or strides do not suit the kernel's own programs: right, but
                          ///< slower; they are counted
  std::optional<ForeignCode> foreign =
      {};  ///< in place of a task: `header` and `task` are for readers then, and `min_blocks` says nothing

  /// Whether it streams weights through the ring that the tasks of a walk share.
  bool streams() const { return walk && walk->stage_bytes > 0; }
  bool has_whole_block() const { return walk && walk->whole_block; }

  friend bool operator==(const Program&, const Program&) = default;
  friend auto operator<=>(const Program&, const Program&) =
      default;  // NOLINT(modernize-use-nullptr): the 0 that the compiler compares with
};

/// A compiled and loaded program.
struct LoadedProgram {
  LoadedFunction loaded;
  int threads = 0, cluster = 1;
  std::int64_t shared_bytes = 0;
  bool alternates = false, fallback = false;
};

/// What a program is, for readers: "gemm/hopper".
std::string_view short_name(const Program& program);
/// The same programs as fallbacks.
std::vector<Program> as_fallbacks(std::vector<Program> programs);

/// Where a bound kernel puts its launches: a plan, for the kernel's loaded programs on a device. Nothing runs before
/// the plan is enqueued.
class TaskQueue {
 public:
  TaskQueue(Device& device, Plan& plan, std::span<const LoadedProgram> programs)
      : device_(&device), plan_(&plan), programs_(programs) {}

  /// Launches `items` work items of a program (its index in what the kernel's `programs` returned) over `blocks` thread
  /// blocks; 0 blocks: one for each item. Nothing where there are no items.
  template <class Params>
  void run(std::size_t program, std::int64_t items, const Params& params, std::int64_t blocks = 0) const {
    static_assert(std::is_trivially_copyable_v<Params>);
    add(program, items, blocks, std::as_bytes(std::span(&params, 1)));
  }
  /// Launches a program that is foreign code, over the blocks and threads of `shape`; parameter i begins offsets[i]
  /// bytes after the first.
  void run_function(std::size_t program, const LaunchShape& shape, std::span<const std::byte> parameters,
                    std::span<const std::uint32_t> offsets) const;
  /// Writes one value to all bytes.
  void fill(void* memory, unsigned char value, std::int64_t bytes) const { plan_->add_fill(memory, value, bytes); }
  /// A matrix product of the vendor's library.
  void multiply(const MatrixProduct& product) const { plan_->add_product(product); }
  bool wants_ranges() const { return plan_->wants_ranges(); }
  /// Says what the last launch touches. Without, it counts as touching all operands of the kernel and its workspace,
  /// which is right for a kernel of one launch and keeps others from running beside those that they could.
  void declare(std::initializer_list<ByteRange> reads, std::initializer_list<ByteRange> writes) const {
    plan_->declare(reads, writes);
  }
  void declare(std::span<const ByteRange> reads, std::span<const ByteRange> writes) const {
    plan_->declare(reads, writes);
  }

  /// Says that the last launch lets the next one start when it has stored these results (Overlap::own), which that may
  /// then read before it waits.
  void publish(const void* first, const void* second) const { plan_->publish({first, second}); }
  bool is_published(const void* first, const void* second) const { return plan_->is_published({first, second}); }

  /// The queue of a kernel inside this one, whose programs are `count` of these, from `first` on.
  TaskQueue part(std::size_t first, std::size_t count) const {
    TaskQueue inner(*device_, *plan_, programs_.subspan(first, count));
    inner.takes_half_ = takes_half_;
    inner.first_ = first_ + first;
    return inner;
  }
  /// Launches of programs that alternate take more than half of an SM's shared memory from now on.
  void take_half() { takes_half_ = true; }
  /// Thread blocks that are resident at once.
  std::int64_t resident_blocks(std::size_t program) const;
  Device& device() const { return *device_; }
  const Target& target() const { return *device_->target(); }

 private:
  void add(std::size_t program, std::int64_t items, std::int64_t blocks, std::span<const std::byte> params) const;

  Device* device_;
  Plan* plan_;
  std::span<const LoadedProgram> programs_;
  std::size_t first_ = 0;  ///< place of `programs_` among those of the outer kernel
  bool takes_half_ = false;
};

/// "Config{.x = DType::bf16}" is spelled with these.
std::string device_name(DType dtype);  ///< "cermet::DType::bf16"
inline const char* device_name(bool value) { return value ? "true" : "false"; }

}  // namespace cermet::cuda

// Launches as records: what a device is asked to do, written down before it is asked. Running, capturing, timing,
// printing and checking read the list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/tensor.hpp"
#include "device/stream.hpp"

namespace cermet {

/// Memory that a launch touches, from the first to the last byte; of strided memory what lies between is included.
struct ByteRange {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  bool early = false;  ///< read before earlier launches have ended (a task's `fetch`), because none writes it: weights

  bool overlaps(const ByteRange& other) const {
    return begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// What a view covers.
ByteRange byte_range(const TensorView& view);

/// Whether a program whose blocks form clusters of this size can share a launch with others: all blocks of a launch
/// form clusters of one size, and bodies of a linked one are made for blocks alone.
constexpr bool is_linkable(std::int64_t cluster) { return cluster == 1; }

/// One thing that a device, or the host's kernel, is asked to do. Its lists of bytes are spans of its plan.
struct Launch {
  enum class Kind : std::uint8_t {
    program,  ///< a task's program: the only kind that can be linked with others, see is_linkable()
    fill,
    function,  ///< an ordinary __global__ function that is no task: code from outside
    product,   ///< a matrix product of the vendor's library
    call,      ///< a function of the host
  };
  struct Span {
    std::uint32_t first = 0, count = 0;
  };
  using Published = std::array<const void*, 2>;

  Kind kind = Kind::call;
  bool fallback = false;  ///< of a program: see cuda::Program::fallback
  bool declared =
      false;  ///< the kernel said which bytes it touches; otherwise all operands of its step, and the workspace
  unsigned char fill = 0;     ///< of a fill: the value; it writes the only range of `writes`
  std::uint32_t step = 0;     ///< of the executable that it belongs to
  std::uint32_t program = 0;  ///< its place in the list of the step's programs, or of a product in that of products
  std::uint32_t items = 0;    ///< of a program: work items, over the thread blocks of `shape`
  Published published = {};   ///< what the launch after it may read before it waits, see Plan::publish()
  DeviceFunction function;
  LaunchShape shape;
  Span parameters;     ///< bytes, 64-byte aligned
  Span offsets;        ///< of a function: where in those bytes each of its parameters begins
  Span reads, writes;  ///< ranges; a range that is read and written is in both

  bool is_linkable() const { return kind == Kind::program && cermet::is_linkable(shape.cluster); }
};

/// An ordered list of launches. Each may rely on what those before it did. Clearing keeps the memory, so that filling
/// it once more allocates nothing.
class Plan {
 public:
  void clear();
  /// Whether launches that are added say which bytes they touch. Runs need none of it, so that kernels work it out only
  /// where it is wanted.
  void want_ranges(bool wanted) { wants_ranges_ = wanted; }
  bool wants_ranges() const { return wants_ranges_; }
  /// Launches that are added from now on belong to this step.
  void begin_step(std::size_t step) { step_ = static_cast<std::uint32_t>(step); }

  void add_call() { add(Launch::Kind::call); }
  /// `launch` gives program, items, function, shape and fallback; the parameters are copied.
  void add_program(const Launch& launch, std::span<const std::byte> parameters);
  /// The same for a function; parameter i begins offsets[i] bytes after the first. At most `most_parameters` of them.
  void add_function(const Launch& launch, std::span<const std::byte> parameters,
                    std::span<const std::uint32_t> offsets);
  static constexpr std::size_t most_parameters = 128;
  void add_fill(void* memory, unsigned char value, std::int64_t bytes);
  void add_product(const MatrixProduct& product);
  /// Says what the last launch touches, in place of all operands of its step; ignored where ranges are not wanted.
  void declare(std::span<const ByteRange> reads, std::span<const ByteRange> writes);
  /// The same for a launch of whose bytes nothing was said.
  void complete(Launch& launch, std::span<const ByteRange> reads, std::span<const ByteRange> writes);

  /// The last launch lets the one after it start when it has stored two of its results, which begin here, so that they
  /// may be read at once. Ignored where ranges are wanted: launches may be ordered by those, and they do not say so.
  void publish(const Launch::Published& results);
  /// Whether these are the last launch's.
  bool is_published(const Launch::Published& results) const {
    return results[0] != nullptr && !launches_.empty() && launches_.back().published == results;
  }

  std::span<const Launch> launches() const { return launches_; }
  std::span<Launch> launches() { return launches_; }
  std::span<const std::byte> parameters(const Launch& launch) const {
    return {parameters_.data() + launch.parameters.first, launch.parameters.count};
  }
  std::span<const std::uint32_t> offsets(const Launch& launch) const {
    return std::span(offsets_).subspan(launch.offsets.first, launch.offsets.count);
  }
  std::span<const ByteRange> reads(const Launch& launch) const {
    return std::span(ranges_).subspan(launch.reads.first, launch.reads.count);
  }
  std::span<const ByteRange> writes(const Launch& launch) const {
    return std::span(ranges_).subspan(launch.writes.first, launch.writes.count);
  }

  /// Enqueues one launch, which is no call.
  void enqueue(const Launch& launch, Stream& stream) const;
  /// All of them, in order.
  void enqueue(Stream& stream) const;
  /// How many are fallbacks.
  std::int64_t fallbacks() const;

 private:
  Launch& add(Launch::Kind kind);
  Launch& add(Launch::Kind kind, const Launch& launch, std::span<const std::byte> parameters);
  Launch::Span keep(std::span<const ByteRange> ranges);

  std::vector<Launch> launches_;
  std::vector<ByteRange> ranges_;
  std::vector<MatrixProduct> products_;
  std::vector<std::uint32_t> offsets_;
  AlignedBuffer parameters_;
  std::int64_t parameters_used_ = 0;
  std::uint32_t step_ = 0;
  bool wants_ranges_ = false;
};

}  // namespace cermet

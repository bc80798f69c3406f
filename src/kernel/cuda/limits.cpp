#include "kernel/cuda/limits.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "device/replay_timer.hpp"
#include "kernel/cuda/device/limits/limits.hpp"

namespace cermet::cuda {
namespace {

constexpr const char* stream_header = "kernel/cuda/device/limits/stream.cuh";
constexpr const char* product_header = "kernel/cuda/device/limits/product.cuh";
constexpr std::uint32_t never = 0x9e3779b9u;  // an XOR that is as likely as any other, and harmless where it comes

/// Indices in the list of programs; the bulk ones and those of wgmma exist on devices of compute capability 9.0 only.
enum ProgramIndex : std::size_t { nothing, fma, load, load_copy, bulk_wide, bulk_narrow, bulk_copy, first_product };

constexpr DType product_types[] = {DType::f16, DType::bf16, DType::f8_e4m3, DType::i8};
constexpr int load_threads = 512, load_unroll = 4,
              copy_step = load_threads * load_unroll * 16;  // bytes that a block copies at a time
constexpr int fma_threads = 512, fma_chains = 8, fma_rounds = 8, warp_threads = 256, warp_tiles = 8, warpgroups = 2;

bool has_bulk(const Target& target) { return target.compute_capability >= 90; }
bool has_warpgroups(const Target& target) { return target.compute_capability == 90; }
bool has_products(const Target& target, DType type) {
  if (type == DType::f8_e4m3) return has_warpgroups(target);
  return type != DType::bf16 || target.compute_capability >= 80;
}

Program load_program(int threads, int unroll, bool copy) {
  return {.header = stream_header,
          .task = fmt::format(
              "cermet::limits::LoadTask<cermet::limits::LoadConfig{{.threads = {}, .unroll = {}, .copy = {}}}>",
              threads, unroll, device_name(copy)),
          .threads = threads,
          .min_blocks = 1024 / threads};
}

Program bulk_program(int stage_bytes, int stages, bool copy) {
  return {.header = stream_header,
          .task = fmt::format(
              "cermet::limits::BulkTask<cermet::limits::BulkConfig{{.stage_bytes = {}, .stages = {}, .copy = {}}}>",
              stage_bytes, stages, device_name(copy)),
          .threads = 32,
          .shared_bytes = std::int64_t{stages} * (stage_bytes + 8)};
}

Program product_program(const Target& target, DType type) {
  if (has_warpgroups(target))
    return {.header = product_header,
            .task = fmt::format(
                "cermet::limits::WarpgroupTask<cermet::limits::WarpgroupConfig{{.operand = {}, .warpgroups = {}}}>",
                device_name(type), warpgroups),
            .threads = 128 * warpgroups,
            .shared_bytes = 128 * (256 + 64 * warpgroups)};
  return {
      .header = product_header,
      .task = fmt::format("cermet::limits::WarpTask<cermet::limits::WarpConfig{{.operand = {}}}>", device_name(type)),
      .threads = warp_threads,
      .min_blocks = 2};
}

/// Streams, launches and products of one device, timed.
class Measurement {
 public:
  Measurement(Device& device, Stream& stream, std::span<const LoadedProgram> programs, const ReplayOptions& options)
      : target_(*device.target()),
        stream_(stream),
        programs_(programs),
        options_(options),
        queue_(device, plan_, programs) {
    constexpr std::int64_t most = std::int64_t{4} << 30;
    bytes_ = std::min(most, device.free_bytes() / 2) / step * step;
    if (bytes_ < 4 * step)
      fail(Status::out_of_memory, "limits of {}: expected {} bytes of free memory, found {}", device.name(), 8 * step,
           device.free_bytes());
    memory_ = device.allocate(bytes_);
    sink_ = device.allocate(4);
    fill();
  }

  Limits run() {
    Limits limits;
    limits.stream_bytes = bytes_;
    limits.load_bytes_per_second = static_cast<double>(bytes_) / read_seconds(load, bytes_);
    if (has_bulk(target_))
      limits.bulk_load_bytes_per_second =
          static_cast<double>(bytes_) / std::min(read_seconds(bulk_wide, bytes_), read_seconds(bulk_narrow, bytes_));
    limits.copy_bytes_per_second = static_cast<double>(bytes_) / copy_seconds();  // half is read and half is written
    for (const std::int64_t mebibytes : {8, 16, 32, 64, 256}) limits.reads.push_back(read_time(mebibytes << 20));
    std::erase_if(limits.reads, [&](const ReadTime& read) { return 4 * read.bytes > bytes_; });
    launches(limits);
    limits.f32_operations_per_second = fma_operations();
    double* const peaks[] = {&limits.f16_operations_per_second, &limits.bf16_operations_per_second,
                             &limits.f8_operations_per_second, &limits.i8_operations_per_second};
    for (std::size_t t = 0; t < std::size(peaks); ++t)
      *peaks[t] = product_operations(product_types[t], first_product + t);
    return limits;
  }

 private:
  static constexpr std::int64_t step = 64 << 20;  // every stream's size is a multiple

  /// Bytes without a pattern that the memory could profit from: random ones, doubled.
  void fill() {
    constexpr std::int64_t block = 1 << 20;
    std::vector<std::uint64_t> random(block / 8);
    std::uint64_t state = 1;
    for (std::uint64_t& word : random) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      word = state ^ (state >> 29);
    }
    stream_.upload(memory_.data(), random.data(), block);
    for (std::int64_t done = block; done < bytes_; done *= 2)
      stream_.copy(memory_.data() + done, memory_.data(), std::min(done, bytes_ - done));
    stream_.synchronize();
  }

  ReplayTimes time(std::int64_t sets, FunctionRef<void(std::int64_t)> enqueue) {
    return time_replays(stream_, sets, enqueue, options_);
  }

  template <class Params>
  void enqueue(std::size_t program, std::int64_t items, const Params& params) {
    plan_.clear();
    queue_.run(program, items, params);
    plan_.enqueue(stream_);
  }

  void enqueue_stream(std::size_t program, const std::byte* from, void* to, std::int64_t bytes) {
    const std::int64_t blocks = queue_.resident_blocks(program);
    enqueue(program, blocks, limits::StreamParams{from, to, bytes, static_cast<std::uint32_t>(blocks), never});
  }

  /// Of one launch that reads `bytes`; launches go through all of the memory in turn.
  double read_seconds(std::size_t program, std::int64_t bytes) {
    return time(std::max<std::int64_t>(1, bytes_ / bytes),
                [&](std::int64_t i) { enqueue_stream(program, memory_.data() + i * bytes, sink_.data(), bytes); })
        .median_seconds;
  }

  ReadTime read_time(std::int64_t bytes) {
    ReadTime best{bytes, 0};
    if (4 * bytes > bytes_) return best;
    for (const std::size_t program : {load, bulk_wide, bulk_narrow}) {
      if (program != load && !has_bulk(target_)) continue;
      const double seconds = read_seconds(program, bytes);
      if (best.seconds == 0 || seconds < best.seconds) best.seconds = seconds;
    }
    return best;
  }

  /// From one half of the memory to the other, by resident blocks that take turns or by as many blocks as there are
  /// steps.
  double copy_seconds() {
    const auto seconds = [&](std::size_t program, std::int64_t blocks) {
      const limits::StreamParams params{memory_.data(), memory_.data() + bytes_ / 2, bytes_ / 2,
                                        static_cast<std::uint32_t>(blocks), never};
      return time(1, [&](std::int64_t) { enqueue(program, blocks, params); }).median_seconds;
    };
    const double loads =
        std::min(seconds(load_copy, queue_.resident_blocks(load_copy)), seconds(load_copy, bytes_ / 2 / copy_step));
    return has_bulk(target_) ? std::min(loads, seconds(bulk_copy, queue_.resident_blocks(bulk_copy))) : loads;
  }

  void launches(Limits& limits) {
    limits::NothingParams params{};
    std::uint32_t items = 1;
    void* parameters[] = {&params, &items};
    LaunchShape shape{static_cast<std::uint32_t>(target_.multiprocessors), 32, 0, 1, false};
    const auto launch = [&](std::int64_t) { stream_.launch(shape, programs_[nothing].loaded.function, parameters); };
    limits.graph_node_seconds = time(1, launch).median_seconds;
    constexpr int count = 2000;
    const auto start = stream_.make_event(), end = stream_.make_event();
    std::vector<double> times;
    for (int round = 0; round < 5; ++round) {
      stream_.record(*start);
      for (int i = 0; i < count; ++i) launch(i);
      stream_.record(*end);
      stream_.synchronize();
      times.push_back(stream_.seconds_between(*start, *end) / count);
    }
    std::sort(times.begin(), times.end());
    limits.stream_launch_seconds = times[times.size() / 2];
    shape.overlaps_previous = has_bulk(target_);
    limits.overlapped_node_seconds = time(1, launch).median_seconds;
  }

  /// Of launches that repeat `operations` per step on every resident block.
  double rate(std::size_t program, double operations_per_block) {
    constexpr std::uint32_t steps = 2000;
    const std::int64_t blocks = queue_.resident_blocks(program);
    const double seconds = time(1, [&](std::int64_t) {
                             enqueue(program, blocks, limits::ProductParams{sink_.data(), steps, never});
                           }).median_seconds;
    return static_cast<double>(blocks) * steps * operations_per_block / seconds;
  }

  double fma_operations() { return rate(fma, 2.0 * fma_threads * fma_chains * fma_rounds); }

  double product_operations(DType type, std::size_t program) {
    if (!has_products(target_, type)) return 0;
    const double size = static_cast<double>(size_of(type));
    return rate(program, has_warpgroups(target_) ? 2.0 * warpgroups * 64 * 256 * 128 / size
                                                 : 2.0 * warp_threads / 32 * warp_tiles * 16 * 8 * 32 / size);
  }

  const Target& target_;
  Stream& stream_;
  std::span<const LoadedProgram> programs_;
  ReplayOptions options_;
  Plan plan_;
  TaskQueue queue_;
  std::int64_t bytes_ = 0;
  DeviceBuffer memory_, sink_;
};

}  // namespace

double Limits::operations_per_second(DType operand) const {
  switch (operand) {
    case DType::f16: return f16_operations_per_second;
    case DType::bf16: return bf16_operations_per_second;
    case DType::f8_e4m3:
    case DType::f8_e5m2: return f8_operations_per_second;
    case DType::i8: return i8_operations_per_second;
    default: return f32_operations_per_second;
  }
}

std::vector<Program> limit_programs(const Target& target) {
  std::vector<Program> list{
      {.header = stream_header, .task = "cermet::limits::NothingTask", .threads = 32},
      {.header = product_header,
       .task = fmt::format("cermet::limits::FmaTask<cermet::limits::FmaConfig{{.chains = {}}}>", fma_chains),
       .threads = fma_threads,
       .min_blocks = 2},
      load_program(load_threads, load_unroll, false),
      load_program(load_threads, load_unroll, true)};
  // Where a device lacks something, its place holds a program that is not run.
  const bool bulk = has_bulk(target);
  list.push_back(bulk ? bulk_program(32 << 10, 6, false) : list[nothing]);
  list.push_back(bulk ? bulk_program(8 << 10, 16, false) : list[nothing]);
  list.push_back(bulk ? bulk_program(16 << 10, 12, true) : list[nothing]);
  for (const DType type : product_types)
    list.push_back(has_products(target, type) ? product_program(target, type) : list[nothing]);
  return list;
}

Limits measure_limits(Device& device, Stream& stream, std::span<const LoadedProgram> programs, double seconds,
                      void (*between)()) {
  if (!device.computes()) fail(Status::unsupported, "limits of {}: expected a device that computes", device.name());
  ReplayOptions options;
  options.seconds = seconds;
  options.between = between;
  return Measurement(device, stream, programs, options).run();
}

}  // namespace cermet::cuda

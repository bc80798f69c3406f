// HOW a region is computed: the host half that every kernel of every backend has. Nothing here compiles.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "kernel/model_error.hpp"
#include "kernel/region_cut.hpp"
#include "kernel/space.hpp"
#include "op/schema/region.hpp"

namespace cermet {

namespace cuda {
struct Program;
class TaskQueue;
}  // namespace cuda

class Communicator;  // kernel/communicator.hpp
class Stream;        // device/stream.hpp

/// Why a kernel does not take a region; nothing when it does. Written for a reader: "weight is not constant, so it
/// cannot be prepacked".
using Decline = std::optional<std::string>;

/// Order in which a kernel needs a weight matrix [N, K] in memory. Kernels that name the same layout share one packed
/// copy.
struct WeightLayout {
  std::string_view name;
  /// Bytes of one packed matrix of this type [N, K].
  std::int64_t (*bytes)(const TensorType& matrix);
  /// Packs one dense matrix; `destination` is 64-byte aligned. A rank-3 weight [E, N, K] is packed slice by slice, at
  /// round_up(bytes, 64) steps.
  void (*pack)(const TensorView& matrix, std::byte* destination, ThreadPool& pool);
};

/// Operands of a launch, in the region's order: of a single operator, the schema's. An operand with a WeightLayout
/// arrives packed: data points to the packed bytes, shape is the logical one.
struct LaunchArgs {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::byte* workspace = nullptr;  ///< at least the bytes that `workspace` returned, 64-byte aligned
  ThreadPool* pool = nullptr;
  const cuda::TaskQueue* queue =
      nullptr;  ///< where a CUDA kernel enqueues its tasks; operands and workspace are in device memory then
  Communicator* communicator = nullptr;  ///< of a kernel that communicates
  Stream* stream = nullptr;              ///< of a device, for such a kernel

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].present; }
};

/// Runs the kernel; allocates nothing, looks up no strings. Attributes were read at binding.
using Launcher = std::function<void(const LaunchArgs&)>;

/// A part of a kernel: a function of a region and of the configuration to run it with, which may carry state. A
/// function that takes a Problem is given the anchor's, and one that runs in one way only takes no Config.
template <class Signature>
class KernelPart;
template <class Result, class... More>
class KernelPart<Result(More...)> {
 public:
  KernelPart() = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, KernelPart>)
      KernelPart(F f) {  // NOLINT(google-explicit-constructor): a function is a part
    if constexpr (std::invocable<F&, const Region&, const Config&, More...>) call_ = std::move(f);
    else if constexpr (std::invocable<F&, const Region&, More...>)
      call_ = [f = std::move(f)](const Region& r, const Config&, More... more) { return f(r, more...); };
    else if constexpr (std::invocable<F&, const Problem&, const Config&, More...>)
      call_ = [f = std::move(f)](const Region& r, const Config& c, More... more) { return f(r.problem(), c, more...); };
    else call_ = [f = std::move(f)](const Region& r, const Config&, More... more) { return f(r.problem(), more...); };
  }
  Result operator()(const Region& region, const Config& config, More... more) const {
    return call_(region, config, more...);
  }
  Result operator()(const Region& region, More... more) const { return call_(region, Config(), more...); }
  explicit operator bool() const { return static_cast<bool>(call_); }

 private:
  std::function<Result(const Region&, const Config&, More...)> call_;
};

/// A value: one that was generated or loaded is what a hand-written one is.
struct Kernel {
  std::string name;     ///< family and variant: "rowwise.rms_norm"
  OpKind op;            ///< of the anchor
  std::string summary;  ///< what it does and when it wins, one line
  /// Whether it may take regions of several nodes; `declines` then looks at all of the region. Others decline them in
  /// decline_of().
  bool fuses = false;
  /// Calls LaunchArgs::communicator. On a device, too, the host runs its launcher, which enqueues in
  /// LaunchArgs::stream; it has no programs.
  bool communicates = false;
  bool foreign = false;  ///< code from outside (foreign/), which a super-kernel cannot link
  KernelPart<Decline()> declines = [](const Region&) -> Decline { return std::nullopt; };
  KernelPart<Launcher()> bind = {};
  /// Layout that operand i of the region must arrive in, alike for all configurations; null for plain row-major.
  KernelPart<const WeightLayout*(std::size_t operand)> weight_layout =
      [](const Region&, std::size_t) -> const WeightLayout* { return nullptr; };
  /// Scratch bytes at the symbols' maximum.
  KernelPart<std::int64_t(int threads)> workspace = [](const Region&, int) -> std::int64_t { return 0; };
  /// What a CUDA kernel compiles for a region; its launcher names programs by their place in the list. None for CPU
  /// kernels.
  KernelPart<std::vector<cuda::Program>()> programs = {};
  /// The ways in which it can run a region that it does not decline, its own choice first.
  KernelPart<std::vector<Config>()> configs = [](const Region&) { return std::vector<Config>(1); };
  /// All the ways in which it can run such a region, those of `configs` among them: what a tuner searches. None where
  /// `configs` lists all; ask space_of().
  KernelPart<ConfigSpace()> space = {};
  /// Modelled seconds of one launch at the symbols' maximum. None where no model was made: such a kernel keeps its
  /// place in the order.
  KernelPart<double(const DeviceLimits& limits)> cost = {};
  ModelError model_error = {};  ///< of `cost`
  /// Of a region that it takes: whether planners should prefer two launches.
  KernelPart<RegionCut()> cut = [](const Region&) { return RegionCut(); };
};

/// How many of its threads a launch on the CPU uses, in any kernel's configuration; all where it is not named.
inline constexpr std::string_view threads_field = "threads";
/// The launcher of a kernel in a configuration of its space_of(): what the kernel binds, on as many threads as the
/// configuration says.
Launcher bind_kernel(const Kernel& kernel, const Region& region, const Config& config);

/// The declared space of a kernel for a region that it does not decline, or the list of its configurations. On the CPU
/// of `threads` threads it has the field "threads" besides, of which every kernel can take fewer.
ConfigSpace space_of(const Kernel& kernel, const Region& region, int threads = 1);

}  // namespace cermet

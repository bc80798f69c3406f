// A loaded model that computes logits for batches of sequences of uneven length, over a paged KV cache.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/tensor.hpp"
#include "model/config.hpp"
#include "model/parallel/expert_exchange.hpp"
#include "model/sampling.hpp"
#include "runtime/context.hpp"
#include "runtime/executable.hpp"
#include "runtime/fusion_options.hpp"

namespace cermet {

class Communicator;
class Ranks;  // model/parallel/ranks.hpp

/// Which rotary frequencies a model gets. `exact`: float32, as `from_pretrained` of transformers computes them;
/// `stored`: rounded to the checkpoint's element type, as a framework does that casts the whole module
/// (`model.to(dtype)`).
enum class RopeFrequencies : std::uint8_t { exact, stored };

struct EngineOptions {
#define ROW(...)
#define OPTION(type, name, fallback, ...) type name = fallback;
#include "model/engine_options.inc"
#undef OPTION
#undef ROW
  /// Whether forward() may be asked for Logits::all. Without it a pass has memory for the logits of one token of each
  /// sequence, in place of every token's: vocab_size floats a token.
  bool all_logits = true;
  FusionOptions fusion = {};  ///< records: one for every pass, fewest tokens first
  /// Of passes of more than 256 tokens of ranks that share matrices: whether each rank has a share of the rows between
  /// the parts of a layer, so that sums are scattered and normalized rows gathered; where absent, on GPUs. No more is
  /// sent, and what is between products is computed once.
  std::optional<bool> share_rows;
  /// Called while weights load with bytes done and bytes in total.
  std::function<void(std::int64_t done, std::int64_t total)> on_load;
};

/// A sequence that decode() goes on with.
struct StepSequence {
  int sequence = 0;
  std::int32_t id = 0;     ///< its last token, which is no part of its context yet
  Sampling sampling;       ///< without a repetition penalty
  std::int64_t draws = 0;  ///< tokens that were drawn for it so far
};

/// What becomes of decode() after a step.
enum class AfterStep : std::uint8_t {
  go_on,
  end,   ///< when the steps that were launched have been heard of
  stop,  ///< now: what was launched is taken back
};

/// New tokens of one sequence, to be appended to its context.
struct SequenceTokens {
  int sequence = 0;  ///< slot in [0, max_sequences)
  std::span<const std::int32_t> tokens;
  /// Of a part of a longer text: how many tokens the sequence will hold when all of it has come, so that results do not
  /// depend on where it was cut (rotary frequencies may follow the length). 0: these are its last ones.
  std::int64_t length = 0;
};

/// How much the KV cache holds.
struct CacheSize {
  std::int64_t blocks = 0, block_size = 0;  ///< of all sequences together; tokens of a block
  std::int64_t sequences = 0;
  std::int64_t context = 0;  ///< tokens of one sequence at most
};

/// A forward pass that was timed; valid until the next one.
struct EngineRun {
  std::span<const StepInfo> steps;
  std::span<const LaunchTime> launches;
  std::chrono::steady_clock::time_point start;
};

/// What loading took, in seconds of wall clock.
struct LoadTimes {
  double kernels = 0;  ///< compiling kernels, or finding them in the cache
  double weights = 0;  ///< reading, packing and uploading weights
};

class Engine {
 public:
  /// Reads a checkpoint folder. Runs on `context` where there is one, in place of the options' device and threads.
  /// Throws Error naming file, tensor or field.
  static Engine load(const std::filesystem::path& folder, const EngineOptions& options,
                     std::optional<Context> context = std::nullopt);
  /// As one of the ranks of `group`, all of which call it, with threads and device of the options; null: alone.
  static Engine load_as_rank(const std::filesystem::path& folder, const EngineOptions& options,
                             std::unique_ptr<Communicator> group);
  /// As one of the ranks of `group`, all of which call it, that have sequences of their own and share the experts of
  /// mixtures. Every pass is one of all of them: each calls forward() or forward_nothing() as often as the others.
  static Engine load_beside(const std::filesystem::path& folder, const EngineOptions& options,
                            std::shared_ptr<Communicator> group);
  Engine(Engine&&) noexcept;
  ~Engine();

  /// Whether this is the rank that is driven, 0. Another one must only be asked to serve().
  bool leads() const;
  /// Whether passes are those of other ranks, too, which have sequences of their own: load_beside().
  bool shares_experts() const;
  /// Takes part in a pass of ranks that share the experts without tokens of its own. False where no rank had any:
  /// nothing was computed.
  bool forward_nothing();
  /// Computes along with rank 0 until that is destroyed. Throws Error where a rank fails or goes away.
  void serve();

  const ModelConfig& config() const;
  DType dtype() const;
  std::string device_name() const;
  int threads() const;
  std::int64_t max_batch_tokens() const;  ///< tokens of one forward pass
  CacheSize cache_size() const;
  /// Passes of up to this many tokens have float32 operands whatever the type in longer ones, so that results depend on
  /// which pass a token is in. 0 on GPUs.
  std::int64_t short_pass_tokens() const;

  /// Appends tokens to sequences and returns logits, float32 [rows, vocab_size], valid until the next call: of every
  /// new token in order (`all`), or of each sequence's last one; in memory of the host, or of the engine's device,
  /// where they may still be under way. Several sequences of uneven length run as one batch, at most max_batch_tokens
  /// tokens in total. Throws Error naming the sequence or token: an id outside the vocabulary, no room left in the
  /// cache; and for `all` of an engine without EngineOptions::all_logits.
  /// `largest`: i32[rows], the ids of the largest of each sequence's last token, which ranks that have parts of the
  /// vocabulary find without their logits in passes of several tokens; where `largest` is not found so, the logits, as
  /// for `last`.
  enum class Logits : std::uint8_t { all, last, largest };
  enum class Memory : std::uint8_t { host, device };
  TensorView forward(std::span<const SequenceTokens> batch, Logits which, Memory memory = Memory::host);
  /// As forward for one sequence, but of any length: goes in chunks; returns the last token's logits.
  TensorView prefill(int sequence, std::span<const std::int32_t> tokens, Memory memory = Memory::host);
  /// False on a device that runs every step without computing; its logits are meaningless.
  bool computes() const;
  /// Where operators on logits in device memory go; all null on the CPU.
  DeviceQueue queue() const;
  /// Where in device memory forward_chosen() reads the tokens of so many sequences. For engines with a queue.
  std::int32_t* chosen_ids(std::int64_t sequences);
  /// Appends to each sequence one token that is still being chosen: they are read from chosen_ids() when their turn
  /// comes in the stream, and must be in the vocabulary. Returns the logits in device memory. For engines with a queue.
  TensorView forward_chosen(std::span<const int> sequences, Logits which = Logits::last);
  /// Whether decode() is the way to go on with a choice of tokens: steps choose them, because several are launched at
  /// once or a super-kernel takes them.
  bool chooses(const Sampling& sampling) const;
  std::int64_t steps_per_launch() const;
  /// Compiles what decode() will run for so many sequences, which it does otherwise.
  void prepare_decode(std::int64_t sequences, const Sampling& sampling);
  /// Appends its token to each sequence, chooses the next one, and so on: `most` steps, or fewer where the cache has no
  /// room. after() gets the tokens of each step, one for each sequence, as soon as they are there. When it is over,
  /// each context has grown by as many tokens as there were calls: its own token and those made but the last; meanwhile
  /// length() counts what was launched, too. A sequence that after() resets is left alone. Returns the steps that
  /// after() got. Throws Error as forward() does, and what after() throws.
  std::int64_t decode(std::span<const StepSequence> sequences, std::int64_t most,
                      FunctionRef<AfterStep(std::span<const std::int32_t> ids)> after);
  /// Forgets the last tokens of a sequence's context.
  void drop(int sequence, std::int64_t tokens);
  /// Forgets a sequence's context and frees its cache pages.
  void reset(int sequence);
  /// Tokens of context that a sequence holds.
  std::int64_t length(int sequence) const;
  /// Tokens that a sequence can still take.
  std::int64_t room(int sequence) const;

  std::int64_t weight_bytes() const;
  std::int64_t cache_bytes() const;
  /// Steps of the executables: [0] for a single token (decode), [1] for many (prefill).
  std::span<const StepInfo> steps(bool prefill) const;
  void set_timing(bool on);
  /// The last forward pass; of a long prefill its last chunk. Launches only where it was timed.
  EngineRun last_run() const;
  LoadTimes load_times() const;
  /// Launches of all passes that a kernel's own programs did not take (StepInfo::fallbacks).
  std::int64_t fallbacks() const;
  /// What the last forward pass ran.
  Executable& last_executable();
  ThreadPool& pool();
  Context& context();

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  static Engine load_rank(const std::filesystem::path& folder, const EngineOptions& options,
                          std::optional<Context> context, const std::shared_ptr<Ranks>& ranks,
                          const std::shared_ptr<Communicator>& beside = nullptr);
  static std::shared_ptr<Ranks> start_threads(const std::filesystem::path& folder, const EngineOptions& options);
  std::unique_ptr<State> state_;
};

}  // namespace cermet

// What an engine holds: the model compiled for passes of several sizes, over one cache.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "model/cache_memory.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/quantization.hpp"
#include "model/engine.hpp"
#include "model/paged_cache.hpp"
#include "model/parallel/rank_options.hpp"
#include "model/parallel/ranks.hpp"
#include "model/pass_inputs.hpp"
#include "model/rotary.hpp"
#include "model/step_pass.hpp"
#include "runtime/session.hpp"

namespace cermet {

struct DecoderGraph;

struct Engine::State {
  EngineOptions options;
  Checkpoint checkpoint;
  std::shared_ptr<Ranks> ranks;          ///< null where one rank has the whole model
  std::shared_ptr<Communicator> beside;  ///< of ranks with sequences of their own that share the experts
  Quantization quantization;
  DType operands, cached;  ///< types of matrix operands, of keys and values
  DType weight_dtype;      ///< of unquantized weights
  /// Looked up once: every token needs them.
  const struct { Symbol tokens = Symbol("T"), sequences = Symbol("B"), rows = Symbol("R"); } symbols;
  std::int64_t context, pages;  ///< of the cache: tokens of one sequence, pages of all
  Context machine;
  std::unique_ptr<Communicator> device_ranks;  ///< of several ranks on GPUs: `ranks` or `beside` in device memory
  std::optional<WeightStore> weights;
  /// The model compiled for passes of up to this many tokens, fewest first.
  struct Pass {
    std::int64_t tokens, sequences;
    std::int64_t shares;  ///< ranks that share the rows, which divide its tokens; 1 where each has all
    std::unique_ptr<PassInputs> inputs;
    Session session;
    std::unique_ptr<Session> join;  ///< makes the logits of the ranks' parts, where those are what a pass leaves
  };
  std::vector<Pass> passes;
  std::size_t last_pass = 0;
  std::vector<std::unique_ptr<StepPass>> step_passes;  ///< compiled when they are first needed
  StepPass* last_step = nullptr;                       ///< where the last pass was one of these
  LoadTimes load_times;
  PagedCache cache;
  CacheMemory cache_memory;  ///< allocated before the rest: it is what a context that is too long asks too much of
  RotaryTables rotary;
  std::array<DeviceBuffer, 2> rotary_memory;  ///< cosines and sines on a device
  std::vector<float> null_logits;             ///< returned by a device that computes nothing
  std::int64_t loaded_bytes = 0;

  State(Checkpoint opened, const EngineOptions& given, DType stored, std::optional<Context> on,
        std::shared_ptr<Ranks> with, std::shared_ptr<Communicator> others);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  const ModelConfig& config() const { return checkpoint.config(); }
  ModelShard shard() const {
    if (beside)
      return ModelShard::with_own_tokens(beside->rank(), beside->size(), exchange_of(options), options.overlap_experts);
    return ranks ? ranks->shard() : ModelShard{};
  }
  void tell(const RankCommand& command) {
    if (ranks) ranks->tell(command);
  }
  Stream* stream() const { return machine.stream(); }  ///< null on the CPU

  void compile_graphs();
  struct StartedPass {
    std::int64_t tokens, sequences, shares;
    StartedSession session;
    std::optional<StartedSession> join;
  };
  StartedPass start_pass(std::int64_t tokens, DType operand_dtype);
  void add_pass(StartedPass started);
  /// `every_row`: of DecoderState.
  DecoderGraph make_graph(std::int64_t tokens, DType operand_dtype, bool every_row) const;
  SessionOptions session_options(std::int64_t tokens, std::int64_t shares);
  std::int64_t shares_of_rows(std::int64_t tokens) const;
  /// Whether ranks keep their parts of a pass's logits: not of one token, for which finding the largest of all parts
  /// would take more launches than it saves.
  bool has_parts_of_logits(std::int64_t tokens) const;
  void report_loaded(std::int64_t bytes);
  /// Rows of the rotary tables.
  void upload_rotary(std::int64_t first, std::int64_t count);
  void bind_state(Executable& executable);

  void check_sequence(int sequence) const;
  std::int64_t check_batch(std::span<const SequenceTokens> batch) const;
  void fill_inputs(std::span<const SequenceTokens> batch, Logits which, PassInputs& in);
  Pass& pass_for(std::int64_t tokens);
  /// Sequences that a pass of so many tokens has at most.
  std::int64_t most_sequences(std::int64_t tokens) const {
    return std::min(options.max_sequences + (shard().gathers_rows() || shares_of_rows(tokens) > 1 ? 1 : 0), tokens);
  }
  /// Logits that it has at most.
  std::int64_t most_logit_rows(std::int64_t tokens) const {
    return options.all_logits ? tokens : std::min(options.max_sequences, tokens);
  }
  PassSize size_for_all(const PassSize& own);
  TensorView run_pass(std::span<const SequenceTokens> batch, Logits which, const PassSize& own, const PassSize& all,
                      Memory memory, bool chosen);
  bool forward_nothing();
  TensorView forward(std::span<const SequenceTokens> batch, Logits which, Memory memory, bool chosen = false);

  // Steps that choose their tokens: engine_steps.cpp.
  bool chooses() const {
    return !ranks && !beside && (options.steps_per_launch > 1 || options.fusion.super_kernel.select == "decode");
  }
  struct StepRow;
  StepPass& step_pass(std::int64_t sequences, bool greedy);
  std::int64_t decode(std::span<const StepSequence> sequences, std::int64_t most,
                      FunctionRef<AfterStep(std::span<const std::int32_t> ids)> after);
  Executable& last_executable() {
    return last_step ? last_step->session.executable() : passes[last_pass].session.executable();
  }
};

}  // namespace cermet

// Attention as tasks of a few query rows, split along the keys where there are few tasks.
#include "kernel/cpu/attention/tile_attention.hpp"

#include <atomic>
#include <cstring>
#include <limits>

#include "kernel/cpu/attention/attend.hpp"
#include "kernel/cpu/attention/key_cuts.hpp"
#include "kernel/cpu/attention/pairs.hpp"

namespace cermet::cpu {
namespace {

constexpr std::int64_t rows_per_tile = 64, float_bytes = 4;

/// Queries of bf16 as [head_size / 2][rows][2].
void lay_pairs(const AttentionShape& shape, const AttentionTask& task, const RowState& state) {
  auto* const pairs = reinterpret_cast<std::int32_t*>(state.query);
  std::fill_n(pairs, shape.head_size / 2 * state.rows, 0);
  for (std::int64_t r = 0; r < task.tokens * shape.group; ++r) {
    const std::byte* q = task.q + r / shape.group * shape.q_token_step + r % shape.group * shape.q_head_step;
    for (std::int64_t d = 0; d < shape.head_size / 2; ++d) std::memcpy(pairs + d * state.rows + r, q + 4 * d, 4);
  }
}

void lay_rows(const AttentionShape& shape, const AttentionTask& task, float scale, const RowState& state) {
  if (few_rows_of(shape, task)) return;  // lays them itself
  if (scores_in_pairs(shape, task)) return lay_pairs(shape, task, state);
  std::fill_n(state.query, shape.head_size * state.rows, 0.0f);
  if (shape.floats_by_token)
    return lay_queries(reinterpret_cast<const float*>(task.q), shape.q_token_step / float_bytes, task.tokens,
                       shape.head_size, scale, state);
  for (std::int64_t r = 0; r < task.tokens * shape.group; ++r) {
    const std::byte* q = task.q + r / shape.group * shape.q_token_step + r % shape.group * shape.q_head_step;
    load_query(shape, q, state.row);
    for (std::int64_t d = 0; d < shape.head_size; ++d) state.query[d * state.rows + r] = state.row[d] * scale;
  }
}

/// What each row of a task sees: row t * group + g is token t, head g.
void begin_rows(const AttentionSettings& s, const AttentionShape& shape, const AttentionTask& task, RowState& state) {
  const std::int64_t rows = state.rows, used = task.tokens * shape.group;
  std::fill_n(state.first, rows, 0);
  std::fill_n(state.last, rows, std::numeric_limits<std::int32_t>::max());
  std::fill_n(state.position, rows, 0);
  std::fill_n(state.slope, rows, 0.0f);
  std::fill_n(state.bias_offset, rows, 0);
  for (std::int64_t r = 0; r < used; ++r) {
    const std::int64_t token = r / shape.group, head = r % shape.group;
    const KeyRange range = visible_keys(s, task.position + token, task.keys);
    state.first[r] = static_cast<std::int32_t>(range.begin);
    state.last[r] = static_cast<std::int32_t>(range.end);
    state.position[r] = static_cast<std::int32_t>(task.position + token);
    if (task.alibi) state.slope[r] = task.alibi[head];
    if (task.bias.data)
      state.bias_offset[r] =
          static_cast<std::int32_t>((token * task.bias.token_step + head * task.bias.head_step) / shape.bias_bytes);
  }
  state.last_first = state.first[used - 1];
  state.first_last = state.last[0];
}

void clear(const RowState& state, std::int64_t value_size) {
  std::fill_n(state.maximum, state.rows, std::numeric_limits<float>::lowest());
  std::fill_n(state.sum, state.rows, 0.0f);
  std::fill_n(state.output, value_size * state.rows, 0.0f);
}

/// Divides by the denominators and stores outputs and lse.
void finish(const AttentionShape& shape, const AttentionTask& task, const RowState& state) {
  const auto sees_nothing = [&](std::int64_t r) {
    return !task.sinks && (state.first[r] >= state.last[r] || (shape.zero_rows && state.sum[r] == 0));
  };
  bool at_once = shape.floats_by_token;
  for (std::int64_t r = 0; at_once && r < task.tokens; ++r) at_once = !sees_nothing(r);
  float shares[rows_per_tile];
  for (std::int64_t r = 0; r < task.tokens * shape.group; ++r) {
    const std::int64_t token = r / shape.group, head = r % shape.group;
    float maximum = state.maximum[r], denominator = state.sum[r], factor = 1;
    if (task.sinks) {
      const float top = std::max(maximum, task.sinks[head]);
      factor = std::exp(maximum - top);
      denominator = denominator * factor + std::exp(task.sinks[head] - top);
      maximum = top;
    }
    const bool empty = sees_nothing(r);
    const float share = factor / denominator;
    if (task.lse) task.lse[head * shape.lse_head_step + token] = maximum + std::log(denominator);
    if (at_once) {
      shares[r] = share;
      continue;
    }
    for (std::int64_t d = 0; d < shape.value_size; ++d)
      state.row[d] = empty ? 0.0f : state.output[d * state.rows + r] * share;
    shape.o_from_float(reinterpret_cast<const std::byte*>(state.row),
                       task.o + token * shape.o_token_step + head * shape.o_head_step, shape.value_size);
  }
  if (at_once)
    store_outputs(state, shares, task.tokens, shape.value_size, reinterpret_cast<float*>(task.o),
                  shape.o_token_step / float_bytes);
}

struct Plan {
  const AttentionSettings& settings;
  const AttentionShape& shape;
  FunctionRef<AttentionTask(std::int64_t)> task;
  const KeyCuts& cuts;
  std::int64_t thread_floats, partial_floats;
  float *scratch, *partials;

  RowState state_of(const AttentionTask& t, int thread) const {
    return RowState(scratch + thread * thread_floats, t.tokens * shape.group, shape);
  }
};

void run_split(const Plan& plan, std::int64_t item, int thread) {
  const auto [index, split] = plan.cuts[item];
  const AttentionTask task = plan.task(index);
  const KeySplits splits = plan.cuts.splits(task);
  if (split >= splits.count || task.tokens == 0) return;
  RowState state = plan.state_of(task, thread);
  begin_rows(plan.settings, plan.shape, task, state);
  lay_rows(plan.shape, task, static_cast<float>(plan.settings.scale), state);
  if (splits.count > 1) state.use_partial(plan.partials + (plan.cuts.slot(index) + split) * plan.partial_floats);
  clear(state, plan.shape.value_size);
  const KeyRange keys = splits[split];
  attend(plan.settings, plan.shape, task, state, keys.begin, keys.end);
  if (splits.count == 1) finish(plan.shape, task, state);
}

/// Adds the splits of a task in their order, each rescaled to the common maximum.
void merge_splits(const Plan& plan, std::int64_t index, int thread) {
  const AttentionTask task = plan.task(index);
  const KeySplits splits = plan.cuts.splits(task);
  if (splits.count <= 1 || task.tokens == 0) return;
  RowState state = plan.state_of(task, thread), part = state;
  begin_rows(plan.settings, plan.shape, task, state);
  clear(state, plan.shape.value_size);
  const auto use = [&](std::int64_t split) {
    part.use_partial(plan.partials + (plan.cuts.slot(index) + split) * plan.partial_floats);
  };
  for (std::int64_t split = 0; split < splits.count; ++split) {
    use(split);
    for (std::int64_t r = 0; r < state.rows; ++r) state.maximum[r] = std::max(state.maximum[r], part.maximum[r]);
  }
  for (std::int64_t split = 0; split < splits.count; ++split) {
    use(split);
    float* weight = state.scores;
    for (std::int64_t r = 0; r < state.rows; ++r) {
      weight[r] = std::exp(part.maximum[r] - state.maximum[r]);
      state.sum[r] += part.sum[r] * weight[r];
    }
    for (std::int64_t d = 0; d < plan.shape.value_size; ++d)
      for (std::int64_t r = 0; r < state.rows; ++r)
        state.output[d * state.rows + r] += part.output[d * state.rows + r] * weight[r];
  }
  finish(plan.shape, task, state);
}

/// Calls body(item, thread) for items count - 1 .. 0: with causal masks the last ones have the most keys.
void for_items(ThreadPool& pool, std::int64_t count, FunctionRef<void(std::int64_t, int)> body) {
  std::atomic<std::int64_t> next{0};
  pool.run([&](int thread) {
    for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(count - 1 - i, thread);
  });
}

std::int64_t partial_floats(std::int64_t rows, std::int64_t value_size) {
  return (value_size + 2) * RowState::padded(rows);
}

}  // namespace

std::int64_t attention_tile_tokens(std::int64_t group) { return std::max<std::int64_t>(1, rows_per_tile / group); }

std::int64_t attention_workspace(std::int64_t tokens, std::int64_t group, std::int64_t head_size,
                                 std::int64_t value_size, int threads) {
  const std::int64_t rows = tokens * group;
  return 4 *
         (threads * RowState::floats(rows, head_size, value_size) + KeyCuts::all * partial_floats(rows, value_size));
}

void run_attention(const AttentionSettings& settings, const AttentionShape& shape, std::int64_t tasks,
                   FunctionRef<AttentionTask(std::int64_t)> task, std::byte* workspace, ThreadPool& pool, bool unlike) {
  if (tasks <= 0) return;
  const std::int64_t rows = attention_tile_tokens(shape.group) * shape.group;
  float* scratch = reinterpret_cast<float*>(workspace);
  const std::int64_t thread_floats = RowState::floats(rows, shape.head_size, shape.value_size);
  const KeyCuts cuts(settings, shape, tasks, task, unlike);
  const Plan plan{settings,      shape,
                  task,          cuts,
                  thread_floats, partial_floats(rows, shape.value_size),
                  scratch,       scratch + pool.size() * thread_floats};
  for_items(pool, cuts.items(), [&](std::int64_t item, int thread) { run_split(plan, item, thread); });
  if (cuts.any()) for_items(pool, tasks, [&](std::int64_t index, int thread) { merge_splits(plan, index, thread); });
}

}  // namespace cermet::cpu

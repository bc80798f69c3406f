// Host half of decoding attention: its tasks, followed by those for many queries.
#include "base/checked.hpp"
#include "kernel/cuda/attention/decode_shared.hpp"
#include "kernel/cuda/declare.hpp"

namespace cermet::cuda::attention_decode_file {
namespace {

enum Programs : std::size_t { decode, first_cluster };

/// Whether sequences may have several queries whose warps then share tiles of keys.
bool may_share(const Problem& p) {
  const AttentionProblem a(p);
  return a.has_bounds && a.tokens > a.sequences && !decode_shared_declines(p);
}
/// Queries of a sequence that still count as few.
std::int32_t most_few(const Problem& p) { return may_share(p) ? most_shared_queries : 8; }
/// Blocks of a cluster, which has one span. Tables are no longer than this for each of the blocks, nor for all: with
/// more keys all SMs are needed, however lengths differ.
constexpr int most_cluster_blocks = 8, fewest_cluster_blocks = 2;
constexpr std::int64_t most_block_keys = 4096, most_cluster_keys = 16384;
/// Blocks that share a span where they form no clusters (decode_pieces.cuh): at most, and at least.
constexpr int most_pieces = 16, fewest_pieces = 2;

Decline declines(const Problem& p) {
  const AttentionProblem a(p);
  if (Decline decline = decode_operands_decline(p)) return decline;
  const int multiple = is_quantized_cache(a.kv) ? 16 : 8;
  if (a.head_size % multiple != 0 || a.value_size % multiple != 0 || a.head_size > 128 || a.value_size > 128)
    return fmt::format("head sizes {} and {}; taken: multiples of {} up to 128", a.head_size, a.value_size, multiple);
  const DecodeShape s(p);
  if (s.blocks_each == 0) return fmt::format("two stages need {} bytes of shared memory", s.shared_bytes());
  if (!s.fits())
    return "small heads, values longer than keys, or quantized keys for float32 queries, that many heads share";
  return attention_general_paged.declines(p);
}

/// Whether clusters for so many spans run all at a time. Pairs share what every two SMs have; larger ones lie in parts
/// of a GPC, of which some SMs are left over, so that twice as many must be there: 16 clusters of 8 took an H200 two
/// rounds, and 1.5 times as long as 16 of 4.
bool run_at_once(std::int64_t spans, int blocks, const Target& target) {
  return spans * blocks <= (blocks <= fewest_cluster_blocks ? target.multiprocessors : target.multiprocessors / 2);
}

/// Blocks of the clusters that are compiled, most first: of one that was asked for, or of as many as it takes so that
/// every number of spans finds its own.
std::vector<int> cluster_sizes(const Problem& p, const Config& config) {
  const DecodeShape s(p, config);
  if (config.find("clusters").value_or(1) == 0 || p.target->compute_capability < 90 || s.a.keys > most_cluster_keys)
    return {};
  const auto fits = [&](int blocks) { return s.of_cluster(blocks).cluster_bytes() <= p.target->shared_bytes; };
  if (const auto asked = static_cast<int>(config.find("ranks").value_or(0)); asked > 0)
    return fits(asked) ? std::vector{asked} : std::vector<int>{};
  const bool varies = !p.input(0).is_constant() || s.a.tokens != s.a.sequences;
  std::vector<int> sizes;
  for (int blocks = most_cluster_blocks; blocks >= fewest_cluster_blocks && s.a.keys <= most_block_keys * blocks;
       blocks /= 2) {
    const bool is_last = run_at_once(s.most_spans(), blocks, *p.target),
               has_keys = blocks == fewest_cluster_blocks ||
                          s.a.keys >= std::int64_t{blocks} * DecodeShape::few_cluster_warps * s.least_tile();
    if (has_keys && fits(blocks) && (varies || is_last)) sizes.push_back(blocks);
    if (is_last && has_keys) break;
  }
  return sizes;
}

/// The place among `sizes` of the clusters that so many spans get; their number where all SMs share the work.
std::size_t cluster_for(std::span<const int> sizes, std::int64_t spans, const Target& target) {
  std::size_t i = 0;
  while (i < sizes.size() && !run_at_once(spans, sizes[i], target)) ++i;
  return i;
}

/// As many blocks for a span as find an SM each.
int pieces_of(const Problem& p) {
  int pieces = p.target->compute_capability == 90 ? most_pieces : 0;
  while (pieces > 0 && pieces * DecodeShape(p).step_spans() > p.target->multiprocessors) pieces /= 2;
  return pieces;
}

/// Rows of a tile, thread blocks on an SM, whether spans that are few enough get clusters, and whether blocks have
/// whole ones of the others.
std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list(1);
  const auto add = [&](const Config& config) {
    if (DecodeShape(p, config).fits()) list.push_back(config);
  };
  const auto with_shares = [&](Config config) {
    if (DecodeShape(p, config).whole) config.set("whole", 0);
    return config;
  };
  for (const int rows : {8, 16})
    for (const int blocks : {2, 1})
      for (const int clusters : {1, 0}) {
        const Config config{{"rows", rows}, {"blocks", blocks}, {"clusters", clusters}};
        if (clusters == 1 && cluster_sizes(p, config).empty()) continue;
        const Config shares = with_shares(config);
        const bool joins =
            blocks == 1 && clusters == 0;  // a kernel with other tasks, too, which has few registers for each of them
        if (!joins) add(config);
        if (joins || (blocks == 2 && rows == DecodeShape(p).rows && shares != config)) add(shares);
      }
  // For a kernel with other tasks, one block of which is on an SM, beside the weights of the next products: last,
  // because other launches are slower with them.
  if (const int pieces = pieces_of(p); pieces >= fewest_pieces)
    add({{"rows", DecodeShape(p).rows}, {"blocks", 1}, {"clusters", 0}, {"pieces", pieces}});
  for (const int least : {1, 8}) add({{"rows", DecodeShape(p).rows}, {"blocks", 1}, {"clusters", 0}, {"least", least}});
  return list;
}

/// Beside those, how many blocks a cluster has, and warps in each; 0: what suits the work.
ConfigSpace space(const Problem& p) {
  const auto enabled = [](const Config& c) { return c.at("clusters") == 1; };
  ConfigSpace space;
  space.add(ConfigField::set("rows", {8, 16}))
      .add(ConfigField::range("blocks", 1, 2))
      .add(ConfigField::set("clusters", {0, 1}));
  space.add(ConfigField::set("least", {0, 1, 4, 8}).with_usual(0));
  space.add(ConfigField::set("pieces", {0, 2, 4, 8, 16}).with_usual(0));
  space.add(ConfigField::set("ranks", {0, 2, 4, 8}).with_usual(0))
      .add(ConfigField::set("cluster_warps", {0, 4, 8}).with_usual(0));
  space.add(ConfigField::set("whole", {0, 1}).with_usual(1));
  space.constrain(
      "blocks could have whole spans where they are to have none: clusters, pieces, shares of whole spans and several "
      "tiles of a sequence's rows are "
      "without them anyway",
      [p](const Config& c) {
        Config usual = c;
        usual.set("whole", 1);
        return c.at("whole") == 1 || DecodeShape(p, usual).whole;
      });
  space.constrain("the stages of so many blocks on an SM fit its shared memory, and the rows of a warp a stage",
                  [p](const Config& c) { return DecodeShape(p, c).fits(); });
  space.constrain(fmt::format("clusters need compute capability 9.0, at most {} keys, and shared memory for what their "
                              "blocks tell each other",
                              most_cluster_keys),
                  [p, enabled](const Config& c) { return !enabled(c) || !cluster_sizes(p, c).empty(); });
  space.constrain("shares of whole spans are for one block on an SM, and none of a cluster",
                  [enabled](const Config& c) { return c.at("least") == 0 || (!enabled(c) && c.at("blocks") == 1); });
  space.constrain(
      "pieces are for one block on an SM, and none of a cluster; each of them finds an SM, and none has a share",
      [p, enabled](const Config& c) {
        return c.at("pieces") == 0 ||
               (!enabled(c) && c.at("blocks") == 1 && c.at("least") == 0 && c.at("pieces") <= pieces_of(p));
      });
  space.constrain("without clusters there are no ranks, and without pieces, too, no warps of theirs",
                  [enabled](const Config& c) {
                    return enabled(c) || (c.at("ranks") == 0 && (c.at("cluster_warps") == 0 || c.at("pieces") > 0));
                  });
  return space;
}

/// The model of a launch's time, of an H200 (docs/notes/attention-cuda.md has its measurements): before the first and
/// after the last key, in cycles; what an SM with a cluster's block alone reads, in bytes a cycle; what blocks with
/// equal shares read together, as a part of the memory's bandwidth. Shares take longer because their blocks combine
/// partials through memory.
constexpr double cluster_cycles = 5000, share_cycles = 10500, cluster_bytes_per_cycle = 20.5, share_bandwidth = 0.93;

/// Where sequences may have many queries the launch for those decides, and the one for the others finds nothing to do.
/// Otherwise keys and values are read once.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const DecodeShape s(p, config);
  if (s.a.tokens > most_few(p) * s.a.sequences) return many_query_seconds(p, limits) + limits.launch_seconds;
  const double cycle = 1 / limits.clock_hz, bytes = cost_of(p).bytes;
  const std::vector<int> sizes = cluster_sizes(p, config);
  if (const std::size_t found = cluster_for(sizes, s.most_spans(), *p.target); found < sizes.size())
    return cluster_cycles * cycle +
           bytes / std::min(limits.read_bytes_per_second, static_cast<double>(s.most_spans() * sizes[found]) *
                                                              cluster_bytes_per_cycle * limits.clock_hz);
  if (s.a.tokens * s.a.group() > s.a.sequences * s.rows && may_share(p)) return decode_shared_seconds(p, limits);
  const double tiles = static_cast<double>(s.most_spans()) / static_cast<double>(s.a.kv_heads);
  const double again = tiles / static_cast<double>(s.a.sequences);  // each tile of a sequence's rows reads its keys
  return share_cycles * cycle + again * bytes / (share_bandwidth * limits.read_bytes_per_second);
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const DecodeShape s(p, config);
  std::vector<Program> list{
      {.header = fmt::format("kernel/cuda/device/attention/{}.cuh", s.pieces > 0 ? "decode_pieces" : "decode"),
       .task = fmt::format("cermet::attention::{}<{}>", s.pieces > 0 ? "DecodePiecesTask" : "DecodeTask", s.config()),
       .threads = 32 * s.warps,
       .shared_bytes = s.shared_bytes(),
       .min_blocks = s.blocks_each}};
  if (s.pieces > 0) {
    list.front().walk =
        Walk{.meeting_bytes = 4 * attention::decode_partial_floats(s.rows, static_cast<int>(s.a.value_size))};
    const DecodeShape shares = s.without_pieces(p);
    list.push_back({.header = "kernel/cuda/device/attention/decode.cuh",
                    .task = fmt::format("cermet::attention::DecodeTask<{}>", shares.config()),
                    .threads = 32 * shares.warps,
                    .shared_bytes = shares.shared_bytes(),
                    .min_blocks = shares.blocks_each});
  }
  for (const int blocks : cluster_sizes(p, config)) {
    const DecodeShape c = s.of_cluster(blocks);
    // Two warps on a quarter of an SM beside three of a product of short rows, which take 72 each, of 512; a few bytes
    // of it are spilled.
    const bool beside =
        c.rows == 8 && c.a.value_size <= 64 && c.a.head_size <= 64 && c.warps == DecodeShape::many_cluster_warps;
    list.push_back({.header = "kernel/cuda/device/attention/decode_cluster.cuh",
                    .task = fmt::format("cermet::attention::DecodeClusterTask<{}>", c.config()),
                    .threads = 32 * c.warps,
                    .shared_bytes = c.cluster_bytes(),
                    .registers = beside ? 144 : 0,
                    .cluster = c.ranks,
                    .may_spill = beside});
  }
  if (may_share(p)) list.push_back(DecodeSharedShape(p).program(false));
  for (Program& program :
       s.a.tokens > most_few(p) ? many_query_programs(p) : as_fallbacks(attention_general_paged.programs(p)))
    list.push_back(std::move(program));
  return list;
}

/// In clusters and of pieces, an item is one of the blocks that have a tile of a sequence and a key-value head.
void run_clusters(const LaunchArgs& args, const attention::DecodeParams& p, std::int64_t spans, std::size_t program,
                  int blocks) {
  args.queue->run(program, spans * blocks, p);
  if (spans > 0) declare_operands(args);
}

/// What a kernel launches, and in what order its programs follow each other: shares or pieces, shares beside pieces,
/// clusters, warps that share tiles, many queries.
struct Launches {
  AttentionLaunch attributes;
  DecodeShape shape;
  std::vector<int> sizes;  ///< of clusters
  std::int32_t most_few;
  std::function<void(const LaunchArgs&, std::int32_t)> run_shared;  ///< may be none
  QueriesLauncher run_many;
};

void run_few(const LaunchArgs& args, attention::DecodeParams& p, const Launches& l) {
  constexpr double log2_e = 1.4426950408889634;
  const DecodeShape& s = l.shape;
  p.scale_log2 = static_cast<float>(p.a.scale * log2_e);
  const std::int64_t spans = AttentionLaunch::most_tiles(p.a, s.a.group(), s.rows) * s.a.kv_heads;
  if (const std::size_t found = cluster_for(l.sizes, spans, args.queue->target()); found < l.sizes.size())
    return run_clusters(args, p, spans, first_cluster + found, l.sizes[found]);
  if (l.run_shared && std::int64_t{p.a.tokens} * s.a.group() > std::int64_t{p.a.sequences} * s.rows)
    return l.run_shared(args, p.a.most_queries);  // sequences have several tiles of rows, if all have as many queries
  p.thread_blocks = static_cast<std::int32_t>(s.blocks(args.queue->target()));
  p.least_units = s.least_units;
  if (s.pieces > 0 && spans * s.pieces <= args.queue->target().multiprocessors)
    return run_clusters(args, p, spans, decode, s.pieces);
  args.queue->run(s.pieces > 0 ? first_cluster : decode, p.thread_blocks, p);
}

/// Many queries share keys better in larger tiles of rows. How many each sequence has is known on the device alone, so
/// a batch whose sequences may differ takes two launches, of which each leaves out what the other has: one prompt in a
/// batch must not move the decoding sequences to the prefill task.
void launch(const LaunchArgs& args, const Launches& l) {
  attention::DecodeParams p{l.attributes.params(args), 0, 0, 0};
  if (!p.a.aligned) return l.run_many(args, 0);
  if (p.a.tokens == 0) return;
  // No sequence has more where each has one at least; of those without any, one with many in their place is slower
  // here, but right.
  const bool may_have_many = p.a.query_starts && p.a.tokens - p.a.sequences + 1 > l.most_few;
  if (may_have_many && p.a.sequences == 1) return l.run_many(args, 0);
  if (may_have_many) p.a.most_queries = l.most_few;
  run_few(args, p, l);
  if (may_have_many) l.run_many(args, l.most_few + 1);
}

Launcher bind(const Problem& problem, const Config& config) {
  const DecodeShape shape(problem, config);
  std::vector<int> sizes = cluster_sizes(problem, config);
  const std::size_t shared = first_cluster + sizes.size() + (shape.pieces > 0 ? 1 : 0),
                    many = shared + (may_share(problem) ? 1 : 0);
  Launches launches{AttentionLaunch(problem), shape, std::move(sizes), most_few(problem), nullptr, nullptr};
  if (may_share(problem)) launches.run_shared = bind_decode_shared(problem, shared);
  launches.run_many =
      shape.a.tokens > launches.most_few ? bind_many_queries(problem, many) : bind_general_attention(problem, many);
  return [launches = std::move(launches)](const LaunchArgs& args) { launch(args, launches); };
}

}  // namespace

extern const Kernel attention_decode;
const Kernel attention_decode{.name = "attention.decode",
                              .op = OpKind::incre_flash_attention,
                              .summary =
                                  "few queries: keys and values stream once for all heads that share them, a cluster "
                                  "for each span, a block for each, or equal shares for all blocks",
                              .declines = declines,
                              .bind = bind,
                              .workspace = [](const Problem& p, const Config& config, int) -> std::int64_t {
                                const DecodeShape s(p, config);
                                const std::int64_t own = attention::decode_scratch_bytes(
                                    static_cast<int>(s.blocks(*p.target)), s.rows, static_cast<int>(s.a.value_size));
                                return may_share(p) ? std::max(own, DecodeSharedShape(p).scratch_bytes(*p.target))
                                                    : own;
                              },
                              .programs = programs,
                              .configs = configs,
                              .space = space,
                              .cost = cost,
                              .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_decode_file

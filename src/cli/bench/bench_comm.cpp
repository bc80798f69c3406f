// cermet bench comm: how long collectives take between threads, processes or GPUs, and whether they compute what they
// should.
#include <charconv>
#include <thread>

#include "base/text.hpp"
#include "cli/bench/bench_comm_norm.hpp"
#include "cli/bench/bench_comm_rows.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/text_output.hpp"
#include "cli/verb.hpp"
#include "comm/check.hpp"
#include "comm/device_communicator.hpp"
#include "comm/local.hpp"
#include "comm/measure.hpp"
#include "comm/route_store.hpp"
#include "comm/world.hpp"

namespace cermet::cli::bench_comm_verb {
namespace {

struct Options {
  int ranks = 2;
  std::vector<std::string> ops;
  std::string sizes = "1K..16M", dtype = "f32", device = "cpu", engine = "auto", plot;
  double seconds = 0.05;
  bool check = false, norm = false, routes = false, store = false;
};

/// "64", "8K", "2M", "1G": bytes.
std::int64_t size_from(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  require(error == std::errc() && shift >= 0 && value > 0 && value <= (std::int64_t{1} << 40 >> shift),
          "--sizes: expected bytes such as 64, 8K or 2M, found {}", quote(text));
  return value << shift;
}

/// "1K..16M": every fourth power of two; "1K,24K": these.
std::vector<std::int64_t> sizes_from(std::string_view text) {
  std::vector<std::int64_t> sizes;
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    const std::int64_t last = size_from(text.substr(dots + 2));
    for (std::int64_t size = size_from(text.substr(0, dots)); size <= last; size *= 4) sizes.push_back(size);
    require(!sizes.empty(), "--sizes: expected the smaller one first, found {}", quote(text));
    return sizes;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(size_from(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return sizes;
}

std::vector<Collective> kinds_from(const std::vector<std::string>& names, bool all) {
  std::vector<Collective> kinds;
  for (int k = 0; k <= static_cast<int>(Collective::all_to_all); ++k) {
    const auto kind = static_cast<Collective>(k);
    if (names.empty() ? all || !has_root(kind) : std::ranges::find(names, name_of(kind)) != names.end())
      kinds.push_back(kind);
  }
  for (const std::string& name : names)
    require(std::ranges::any_of(kinds, [&](Collective kind) { return name_of(kind) == name; }),
            "--op: expected a collective, as `cermet ops` lists them, found {}", quote(name));
  return kinds;
}

/// Over one engine. `way`: of a route; "" where there is one way alone.
void measure(Communicator& used, Device& device, Stream* stream, const std::string& device_name, const Options& options,
             const std::vector<Collective>& kinds, const std::vector<std::int64_t>& sizes,
             std::optional<comm::Route> way, CommRows& measured) {
  if (options.check) {
    const comm::CheckReport report = comm::check_communicator(used, &device, stream);
    if (!report.wrong.empty()) used.abort("computed something else than the stacked operator: " + report.wrong);
    require(report.wrong.empty(), "{}", report.wrong);
    measured.checked += report.calls;
    used.barrier();
  }
  const DType dtype = *dtype_from_name(options.dtype);
  for (const Collective kind : kinds) {
    if (way && !comm::has_route(kind, *way)) continue;
    for (const std::int64_t size : sizes) {
      if (interrupted()) used.abort("was interrupted");
      stop_if_interrupted();
      if (options.norm) {
        const NormTiming norm = measure_norm(used, device_name, size, options.seconds);
        measured.rows.push_back(
            {kind, way, norm.timing, fmt::format("all_reduce + add + rms_norm, {} launches", norm.launches)});
        continue;
      }
      measured.rows.push_back({kind, way,
                               comm::measure_collective(used, device, stream, kind, dtype, size, options.seconds),
                               std::string(name_of(kind))});
    }
  }
  used.barrier();
}

/// Every way that the ranks' devices have, one after the other.
void measure_routes(Communicator& communicator, Device& device, Stream& stream, const std::string& device_name,
                    const Options& options, const std::vector<Collective>& kinds,
                    const std::vector<std::int64_t>& sizes, CommRows& measured) {
  for (const comm::Route route : comm::all_routes) {
    std::unique_ptr<Communicator> group;
    try {
      group = comm::make_device_communicator(communicator, device, comm::device_engine_from(name_of(route), "route"));
    } catch (const Error& error) {
      if (error.status() != Status::unsupported) throw;
      measured.missing.push_back(fmt::format("{}: {}", name_of(route), error.what()));
      continue;
    }
    measured.engine += fmt::format("{}{}", measured.engine.empty() ? "" : ", ", name_of(route));
    measure(*group, device, &stream, device_name, options, kinds, sizes, route, measured);
  }
  require(!measured.rows.empty(), "--routes: expected a way between the GPUs, found none: {}",
          fmt::join(measured.missing, "; "));
  const bool shared = !comm::devices_differ(communicator, device);
  if (!options.store || communicator.rank() != 0) return;
  const std::filesystem::path file = comm::routes_file(device, communicator.size(), shared);
  require(!file.empty(), "--store: expected a cache folder, found none: set CERMET_CACHE_DIR");
  comm::store_routes(device, communicator.size(), file, times_of(measured));
  measured.stored = file.string();
}

/// What one rank does; every rank the same.
CommRows work(Communicator& communicator, const Options& options, const std::vector<Collective>& kinds,
              const std::vector<std::int64_t>& sizes, int local_rank) {
  CommRows measured{.engine = std::string(communicator.engine()), .dtype = options.dtype, .ranks = communicator.size()};
  const bool on_gpu = options.device == "cuda";
  const std::string device_name = on_gpu ? comm::device_of_rank(options.device, local_rank) : options.device;
  const std::unique_ptr<Device> device = make_device(device_name);
  if (!device->target()) {
    measure(communicator, *device, nullptr, device_name, options, kinds, sizes, {}, measured);
    return measured;
  }
  const std::unique_ptr<Stream> stream = device->make_stream();
  if (options.routes) {
    measured.engine.clear();
    measure_routes(communicator, *device, *stream, device_name, options, kinds, sizes, measured);
    return measured;
  }
  const auto group =
      comm::make_device_communicator(communicator, *device, comm::device_engine_from(options.engine, "--engine"));
  measured.engine = group->engine();
  measure(*group, *device, stream.get(), device_name, options, kinds, sizes, {}, measured);
  return measured;
}

/// Threads of this process as ranks. The first error of one that did not only hear of another's is thrown.
CommRows work_in_threads(const Options& options, const std::vector<Collective>& kinds,
                         const std::vector<std::int64_t>& sizes) {
  std::vector<std::unique_ptr<Communicator>> group = comm::make_local_group(options.ranks);
  std::vector<CommRows> measured(group.size());
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < group.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        measured[r] = work(*group[r], options, kinds, sizes, static_cast<int>(r));
      } catch (const std::exception& error) {
        group[r]->abort(fmt::format("failed: {}", error.what()));
        errors[r] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return measured[0];
}

void bench(Console& console, Options options) {
  require(!options.store || options.ops.empty(), "--store: expected all operators, found {} of --op",
          options.ops.size());
  options.routes = options.routes || options.store;
  require(!options.routes || (options.device == "cuda" && options.engine == "auto" && !options.norm),
          "--routes, --store: expected --device cuda without --engine and --norm, found --device {}, --engine {}{}",
          options.device, options.engine, options.norm ? " and --norm" : "");
  const std::vector<Collective> kinds =
      options.norm ? std::vector{Collective::all_reduce} : kinds_from(options.ops, options.store);
  require(!options.norm || (options.device == "cuda" && options.ops.empty()),
          "--norm: expected --device cuda and no --op with it, found --device {} and {} of --op", options.device,
          options.ops.size());
  const std::vector<std::int64_t> sizes = sizes_from(options.sizes);
  const std::optional<DType> dtype = dtype_from_name(options.dtype);
  require(dtype && (dtypes::real | DTypeSet{DType::i32, DType::i8}).contains(*dtype),
          "--dtype: expected f32, bf16, f16, i32 or i8, found {}", quote(options.dtype));
  comm::device_engine_from(options.engine, "--engine");
  require(options.engine == "auto" || options.device == "cuda",
          "--engine: expected auto where --device is {}, found {}", options.device, quote(options.engine));
  const comm::ProcessRank process = comm::process_rank();
  if (!options.plot.empty() && process.rank == 0) check_text_output(console, options.plot);
  CommRows measured;
  if (process.engine.empty()) measured = work_in_threads(options, kinds, sizes);
  else {
    const std::unique_ptr<Communicator> world = comm::join_world();
    measured = work(*world, options, kinds, sizes, process.local_rank);
    world->barrier();
  }
  if (process.rank != 0) return;
  if (options.plot != "-") print(console, measured);
  if (!options.plot.empty()) plot(console, options.plot, measured);
}

}  // namespace

Verb verb() {
  return {
      "bench comm", "measure the operators that communicate",
      "cermet bench comm --ranks 4 --check\n"
      "cermet launch -n 2 -- bench comm --sizes 1K..64M -o comm.svg\n"
      "mpirun -n 4 cermet bench comm --op all_reduce --op all_to_all --dtype bf16 --json\n"
      "cermet launch -n 2 -- bench comm --device cuda --dtype bf16\n"
      "cermet launch -n 2 -- bench comm --device cuda --dtype bf16 --sizes 1K..64M --store",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        parser.option("--op <NAME>", options->ops, "a collective").default_text("all without a root");
        parser
            .option("--sizes <BYTES>", options->sizes,
                    "bytes of the larger of operand and result: 1K..16M in steps of four, or 1K,24K,2M")
            .show_default();
        parser.option("--dtype <TYPE>", options->dtype, "element type")
            .suggests({"f32", "bf16", "f16", "i32", "i8"})
            .show_default();
        parser
            .option("--ranks", options->ranks,
                    "threads that are ranks, unless the command was started as several processes")
            .range(1, 256)
            .show_default();
        parser.option("--seconds", options->seconds, "how long to measure each size").range(0.0, 600.0).show_default();
        parser.flag("--check", options->check, "first compare every operator with its definition, over its test cases");
        parser.option("-o,--output <FILE.svg>", options->plot, "plot of time over size");
        parser.option("--device <DEVICE>", options->device, "with cuda, rank r of a host has its GPU r")
            .values({"cpu", "cuda"})
            .show_default();
        parser.section("GPUs");
        parser
            .option("--engine <NAME>", options->engine,
                    "what carries data: nccl; peer, memory that all of a host's GPUs address; stamped, one-shot or "
                    "two-shot, the same by that way; or auto, "
                    "whatever is expected to be faster")
            .suggests({"auto", "nccl", "peer", "stamped", "one-shot", "two-shot"})
            .show_default();
        parser.flag("--routes", options->routes, "measure every way by itself, and fit two constants to each");
        parser.flag("--store", options->store,
                    "the same for all operators, kept in the cache folder: calls then take the faster way");
        parser.flag("--norm", options->norm,
                    "measure all_reduce of f32 rows of 4096, the residual and rms_norm instead; --sizes: of the rows");
        return [options, given = parser.given()](Console& console) {
          require(!given->has("--ranks") || comm::process_rank().engine.empty(),
                  "--ranks: expected none in a command that was started as several processes, found {}",
                  options->ranks);
          bench(console, *options);
        };
      }};
}

}  // namespace cermet::cli::bench_comm_verb

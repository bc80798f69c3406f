#include "cli/tune/tune_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "select/tuning.hpp"

namespace cermet::cli {
namespace {

using Clock = std::chrono::steady_clock;
using State = TriedCandidate::State;

double tuning_seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string tuned_choice_text(const Choice& choice) {
  return fmt::format("{}, {}", choice.kernel->name, choice.config.to_string());
}

Json tuned_choice_json(const Choice& choice) {
  return {{"kernel", choice.kernel->name}, {"config", choice.config.to_string()}};
}

std::string_view name_of(State state) {
  return state == State::measured   ? "measured"
         : state == State::given_up ? "given up"
         : state == State::wrong    ? "wrong"
                                    : "failed";
}

std::string_view name_of(TuneReport::End end) {
  return end == TuneReport::End::exhausted ? "all measured"
         : end == TuneReport::End::budget  ? "budget spent"
                                           : "interrupted";
}

Json tried_json(const TuneReport& report) {
  Json list = Json::array();
  for (const TriedCandidate& tried : report.tried) {
    Json json = tuned_choice_json(tried.choice);
    json["state"] = name_of(tried.state);
    if (tried.timing.median > 0) json["seconds"] = tried.timing.median, json["spread"] = tried.timing.spread;
    if (!tried.reason.empty()) json["reason"] = tried.reason;
    list.push_back(std::move(json));
  }
  return list;
}

Json job_json(const TuneJob& job, std::size_t index, const TuneReport& report) {
  Json json{{"region", tuning_text(job.region)}, {"problem", job.region.to_string()}, {"launches", job.launches}};
  json.update(tuned_choice_json(report.choice));
  json["seconds"] = report.timing.median;
  json["spread"] = report.timing.spread;
  json["gain"] = report.gain;
  json["job"] = index;
  json["untuned"] = tuned_choice_json(report.tried.front().choice);
  json["untuned"]["seconds"] = report.tried.front().timing.median;
  json["candidates"] = report.candidates;
  json["ended"] = name_of(report.end);
  json["tuning_seconds"] = report.seconds;
  json["tried"] = tried_json(report);
  return json;
}

std::string job_text(const TuneJob& job, const TuneReport& report) {
  const TriedCandidate& own = report.tried.front();
  Table table;
  table.row({"untuned", tuned_choice_text(own.choice), seconds_text(own.timing.median)});
  if (report.choice == own.choice) table.row({"tuned", "the same: nothing is faster beyond noise"});
  else
    table.row({"tuned", tuned_choice_text(report.choice), seconds_text(report.timing.median),
               fmt::format("{:.2f} times as fast, measured in turn", report.gain)});
  const auto count = [&](State state) { return std::ranges::count(report.tried, state, &TriedCandidate::state); };
  std::string tried =
      fmt::format("{} of {} candidates in {}", report.tried.size(), report.candidates, seconds_text(report.seconds));
  if (count(State::given_up) > 0) tried += fmt::format(", {} given up early", count(State::given_up));
  table.row({"tried", tried, std::string(name_of(report.end))});
  for (const TriedCandidate& t : report.tried)
    if (t.state == State::wrong || t.state == State::failed)
      table.row({std::string(name_of(t.state)), tuned_choice_text(t.choice), one_line(t.reason)});
  return fmt::format("{}\n{}", tuning_text(job.region), table.to_string());
}

std::string whole_text(const StepComparison& whole) {
  const auto line = [](std::string_view what, double untuned, double seconds, double ratio, double noise) {
    return fmt::format("{}: untuned {}, tuned {}, {:.3f} times as fast +- {:.3f}, in turn\n", what,
                       seconds_text(untuned), seconds_text(seconds), 1 / ratio, noise);
  };
  return line("decode step", whole.untuned_step, whole.tuned_step, whole.step_ratio, whole.step_noise) +
         line("prompt", whole.untuned_prompt, whole.tuned_prompt, whole.prompt_ratio, whole.prompt_noise);
}

Json whole_json(const StepComparison& whole) {
  return {{"untuned_step_seconds", whole.untuned_step},
          {"tuned_step_seconds", whole.tuned_step},
          {"step_ratio", whole.step_ratio},
          {"step_noise", whole.step_noise},
          {"untuned_prompt_seconds", whole.untuned_prompt},
          {"tuned_prompt_seconds", whole.tuned_prompt},
          {"prompt_ratio", whole.prompt_ratio},
          {"prompt_noise", whole.prompt_noise}};
}

using TuneReports = std::map<std::size_t, TuneReport>;  ///< by job

/// Geometric mean of the gains.
double mean_gain(const TuneReports& reports) {
  double sum = 0;
  for (const auto& [job, report] : reports) sum += std::log(report.gain);
  return reports.empty() ? 1 : std::exp(sum / static_cast<double>(reports.size()));
}

/// Jobs that wait for their turn. On a GPU the first whose programs have been compiled ahead is next, so that nothing
/// is waited for while others are ready.
class JobQueue {
 public:
  JobQueue(const std::vector<TuneJob>& jobs, const TuneDevice& place, const TuneOptions& options)
      : ahead_(place.ahead), waiting_(jobs.size()) {
    std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
    for (const TuneJob& job : jobs) {
      programs_.push_back(ahead_ && ahead_->works() && !interrupted() ? first_programs(job, place, options)
                                                                      : std::vector<cuda::Program>());
      if (ahead_) ahead_->want(programs_.back());
    }
  }
  /// Nothing where none is left, or none is ready before the time is over.
  std::optional<std::size_t> next(Clock::time_point end) {
    while (!waiting_.empty() && !interrupted()) {
      const auto ready = std::ranges::find_if(
          waiting_, [&](std::size_t job) { return programs_[job].empty() || ahead_->is_done(programs_[job]); });
      if (ready != waiting_.end()) {
        const std::size_t job = *ready;
        waiting_.erase(ready);
        return job;
      }
      if (Clock::now() > end) return std::nullopt;
      ahead_->wait_for_progress(0.05);
    }
    return std::nullopt;
  }
  std::size_t left() const { return waiting_.size(); }

 private:
  CompileAhead* ahead_;
  std::vector<std::size_t> waiting_;
  std::vector<std::vector<cuda::Program>> programs_;  ///< by job; none where nothing is compiled ahead
};

}  // namespace

void declare_tune_options(Parser& parser, TuneRunOptions& options) {
  parser.section("Search");
  parser.option("--budget <SECONDS>", options.budget, "seconds for everything; the measurement at hand is finished")
      .range(0.1, 1e6)
      .show_default();
  parser.option("--search <HOW>", options.search, "bayes starts from the cost model's best guess and learns from times")
      .values({"bayes", "random", "exhaustive"})
      .show_default();
  parser.option("--candidates", options.candidates, "most to measure for each region; 0: as many as the budget allows")
      .range(0, 1 << 20)
      .show_default();
  parser.option("--seconds", options.seconds, "how long to measure one candidate").range(0.001, 60.0).show_default();
  parser.option("--seed", options.seed, "seed of the search and of the operands' values").show_default();
  parser.option("--paging <HOW>", options.paging, "pages of a cache")
      .values({"contiguous", "scattered", "uneven"})
      .show_default();
  parser.flag("--dry", options.dry, "print what is found and store nothing");
}

void add_job(std::vector<TuneJob>& jobs, TuneJob job) {
  const std::string text = tuning_text(job.region);
  const auto same = std::ranges::find_if(jobs, [&](const TuneJob& other) { return tuning_text(other.region) == text; });
  if (same == jobs.end()) jobs.push_back(std::move(job));
  else same->launches += job.launches;
}

void set_ranges(std::vector<TuneJob>& jobs) {
  const auto form = [](const TuneJob& job) {  // without the bucket of its symbol
    const std::string text = tuning_text(job.region);
    return text.substr(0, text.rfind("; s0 <= "));
  };
  for (TuneJob& job : jobs) {
    const auto symbol = only_symbol(job.region);
    if (!symbol) continue;
    const std::int64_t most = job.region.maximum()[*symbol];
    for (const TuneJob& other : jobs) {
      const auto own = only_symbol(other.region);
      if (!own || form(other) != form(job)) continue;
      if (const std::int64_t below = other.region.maximum()[*own]; below < most)
        job.least = std::max(job.least, below + 1);
    }
  }
}

void run_tuning(Console& console, const Context& context, const std::vector<TuneJob>& jobs,
                const TuneRunOptions& options, const TuneFinish& finish) {
  require(!jobs.empty(), "tune: expected a region to tune, found none");
  require(context.computes(), "--device: expected one that computes, found {}", context.device_spec());
  TuneOptions tuning{.search = parse_search(options.search), .seed = options.seed, .most = options.candidates};
  stop_at_own_pace();  // what was measured is kept
  tuning.stop = [] { return interrupted().load(); };
  MeterOptions metering{.values = {.seed = options.seed, .paging = parse_paging(options.paging)},
                        .seconds = options.seconds};
  TuningDatabase* const database = options.dry ? nullptr : &Tuning::process().database();
  const DeviceIdentity identity = device_identity(context.target(), context.pool().size());
  std::optional<CompileAhead> ahead;
  TuneDevice place{context.pool(), context.queue()};
  if (context.target()) {
    ahead.emplace(context.target()->architecture());
    place.ahead = &*ahead;
    const std::size_t planned =
        planned_candidates({options.budget, options.seconds, jobs.size(), static_cast<unsigned>(usable_cores())});
    tuning.at_once = std::min<std::size_t>(planned, 8);
    if (tuning.most == 0) tuning.most = static_cast<std::int64_t>(1 + planned);
  }
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.budget));
  Progress progress("tuning");
  TuneReports reports;
  JobQueue queue(jobs, place, tuning);
  while (const std::optional<std::size_t> job =
             reports.empty() ? queue.next(Clock::time_point::max()) : queue.next(end)) {
    const double left = options.budget - tuning_seconds_since(begin);
    if (!reports.empty() && left <= 0) break;
    // Where the plan says how many are measured, the clock ends what takes much longer than planned.
    constexpr double patience = 3;
    const double share = std::max(left, 0.0) / static_cast<double>(1 + queue.left());
    tuning.seconds = context.target() ? std::min(std::max(left, 0.0), patience * share) : share;
    tuning.on_progress = [&](std::size_t tried, std::size_t all, double best) {
      const auto budget = static_cast<std::int64_t>(options.budget * 1000);
      progress.update(std::min(budget, static_cast<std::int64_t>(tuning_seconds_since(begin) * 1000)), budget,
                      fmt::format("region {} of {}: {} of {} candidates, {}", reports.size() + 1, jobs.size(), tried,
                                  all, seconds_text(best)));
    };
    const TuneReport& report = reports[*job] = tune(jobs[*job], place, metering, tuning);
    tuning.prepare_seconds = std::max(tuning.prepare_seconds, report.prepare_seconds);
    if (database) database->put(entry_of(report, tuning_key(jobs[*job].region, identity)));
    if (!console.json()) console.write(job_text(jobs[*job], report)), console.flush();
  }
  const std::size_t done = reports.size();
  const std::string file = database ? database->file().string() : "";
  const bool changes = std::ranges::any_of(
      reports, [](const auto& report) { return report.second.choice != report.second.tried.front().choice; });
  std::optional<StepComparison> whole;
  if (finish && changes && !interrupted()) {
    std::vector<TunedJob> tuned;
    for (const auto& [job, report] : reports) tuned.push_back({jobs[job], report});
    whole = finish(tuned);
  }
  const bool is_slower = whole && whole->is_slower();
  constexpr const char* fault = "with all of it together the model is slower than untuned";
  if (database && is_slower)
    for (auto [job, report] : reports) {
      report.choice = report.tried.front().choice;
      report.timing = report.tried.front().timing;
      database->put(entry_of(report, tuning_key(jobs[job].region, identity)));
    }
  const double seconds = tuning_seconds_since(begin), gain = mean_gain(reports);
  if (console.json()) {
    Json results = Json::array();
    for (const auto& [job, report] : reports) results.push_back(job_json(jobs[job], job, report));
    console.write_json({{"device", identity.device},
                        {"versions", identity.versions},
                        {"search", options.search},
                        {"seed", options.seed},
                        {"budget", options.budget},
                        {"seconds", seconds},
                        {"regions", jobs.size()},
                        {"tuned", done},
                        {"mean_gain", gain},
                        {"database", file.empty() ? Json() : Json(file)},
                        {"whole", whole ? whole_json(*whole) : Json()},
                        {"fault", is_slower ? Json(fault) : Json()},
                        {"results", std::move(results)}});
  } else {
    console.print("{}{} of {} regions in {}, {:.3f} times as fast in the geometric mean; {}\n",
                  whole ? whole_text(*whole) : "", done, jobs.size(), seconds_text(seconds), gain,
                  file.empty() ? "nothing is stored"
                  : is_slower  ? fmt::format("not stored: {}", fault)
                               : "stored in " + file);
  }
  console.flush();
  if (interrupted())
    fail(Status::cancelled, "interrupted: {} of {} regions are tuned{}", done, jobs.size(),
         database ? " and stored" : "");
}

}  // namespace cermet::cli

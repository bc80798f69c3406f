#include "runtime/kernel_cases.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "foreign/cases.hpp"
#include "foreign/check_record.hpp"
#include "foreign/kernel.hpp"
#include "kernel/cuda/task.hpp"
#include "select/device_case_run.hpp"

namespace cermet {
namespace {

using foreign::Manifest;

/// Lines for the process that waits.
class Report {
 public:
  explicit Report(int descriptor) : descriptor_(descriptor) {}
  void line(std::string text) const {
    std::ranges::replace(text, '\n', ' ');
    text += '\n';
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t put = write(descriptor_, text.data() + done, text.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) _exit(1);  // the parent has ended
      done += static_cast<std::size_t>(put);
    }
  }

 private:
  int descriptor_;
};

/// Results of their own, with rows that are apart, and over the operands that the operator lets them overwrite.
std::vector<CaseRunOptions> ways_to_run(const Problem& problem) {
  std::vector<CaseRunOptions> ways;
  for (const std::int64_t padding : {0, 3, 8}) ways.push_back({.padding = padding, .guarded = true});
  const OpDefinition& op = definition(problem);
  const bool is_elementwise = op.in_place.empty() && std::ranges::all_of(op.inputs, [](const OperandSpec& s) {
                                return s.mapping == Mapping::one_to_one;
                              });
  for (std::size_t o = 0; o < problem.outputs.size(); ++o)
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      const bool may = (o == 0 && is_elementwise) || (o < op.in_place.size() && op.in_place[o] == static_cast<int>(i));
      if (!may || !problem.has(i) || problem.is_constant(i) || problem.input(i) != problem.outputs[o]) continue;
      CaseRunOptions& options =
          ways.emplace_back(CaseRunOptions{.in_place = std::vector<int>(o + 1, -1), .guarded = true});
      options.in_place[o] = static_cast<int>(i);
    }
  return ways;
}

/// A compiler's log may be long, and its first lines say most.
std::string shortened(std::string text) {
  constexpr std::size_t most = 1500;
  if (text.size() <= most) return text;
  text.resize(text.find_last_of(' ', most));
  return text + " ...";
}

class CaseRunner {
 public:
  CaseRunner(const std::filesystem::path& file, const std::string& device, const Report& report)
      : report_(report),
        manifest_(foreign::read_manifest(file)),
        code_(std::make_shared<foreign::Code>(file.parent_path(), std::map<std::string, std::string>())),
        kernel_(foreign::make_kernel(manifest_, code_, {.falls_back = false})),
        device_(make_device(device)) {
    if (foreign::is_gpu(manifest_.kind) != (device_->target() != nullptr))
      fail(Status::unsupported, "device {}: expected a {}, for which the kernel is made", device,
           foreign::is_gpu(manifest_.kind) ? "GPU" : "CPU");
    if (!device_->target()) return;
    stream_ = device_->make_stream();
    programs_.emplace(*device_);
  }

  void run() {
    report_.line(fmt::format("device {}\t{}", foreign::device_key(device_->target()), device_->driver_version()));
    for (const Case& test_case : foreign::cases_of(manifest_)) run_case_of(test_case);
    report_.line(fmt::format("done {} {} {} {}", taken_, declined_, runs_, first_reason_));
  }

 private:
  DeviceQueue queue() { return {device_.get(), stream_.get(), &*programs_}; }

  void decline(const Case& test_case, const std::string& reason) {
    ++declined_;
    if (first_reason_.empty()) first_reason_ = fmt::format("{}: {}", test_case.name, reason);
  }

  void run_case_of(const Case& test_case) {
    at_ = fmt::format("case {}", test_case.name);
    report_.line("at " + at_);
    CaseData data = make_case_data(*manifest_.op, test_case);
    data.problem.target = device_->target();
    if (const Decline reason = kernel_.declines(data.problem)) return decline(test_case, *reason);
    const std::vector<Config> configs = kernel_.configs(data.problem);
    if (device_->target()) compile(data, configs);
    if (!device_->computes()) {
      ++taken_;
      return;
    }
    std::optional<Expected> expected;
    std::string reason;
    const std::int64_t before = runs_;
    for (const Config& config : configs)
      for (CaseRunOptions& options : ways_to_run(data.problem)) {
        options.config = config;
        if (std::string misfit = misfit_of(data, options); !misfit.empty()) {
          reason = std::move(misfit);
          continue;
        }
        if (!expected) expected = run_reference(data);
        run_once(data, *expected, options);
      }
    if (runs_ > before) ++taken_;
    else decline(test_case, reason);
  }

  void compile(const CaseData& data, const std::vector<Config>& configs) {
    std::vector<cuda::Program> programs;
    for (const Config& config : configs)
      for (cuda::Program& program : kernel_.programs(data.problem, config)) programs.push_back(std::move(program));
    programs_->prepare(programs);  // in parallel
  }

  /// Why a launch would not take these strides; empty where it does.
  std::string misfit_of(const CaseData& data, const CaseRunOptions& options) const {
    std::vector<TensorView> inputs = data.inputs, outputs;
    std::vector<CaseResult> results;
    for (std::size_t o = 0; o < data.problem.outputs.size(); ++o) {
      const int shared = shared_operand(data.problem, options, o);
      results.emplace_back(data.problem.outputs[o], dense_dims_of(data.problem), shared >= 0 ? 0 : options.padding);
      outputs.push_back(results.back().view);
      if (shared >= 0) inputs[static_cast<std::size_t>(shared)] = outputs.back();
    }
    const LaunchArgs args{inputs, outputs};
    const foreign::LaunchPlan plan(manifest_, data.problem, options.config);
    const foreign::LaunchValues values(plan, args);
    return values.misfit() ? values.misfit_text() : "";
  }

  void run_once(const CaseData& data, const Expected& expected, const CaseRunOptions& options) {
    const std::string where = at_;
    if (!options.config.empty()) at_ += ", " + options.config.to_string();
    if (options.padding > 0) at_ += fmt::format(", rows of results {} elements apart", options.padding);
    if (!options.in_place.empty()) at_ += ", in place";
    report_.line("at " + at_);
    std::string problem;
    if (device_->target()) problem = run_case_on_device(data, expected, kernel_, queue(), pools_[0], options);
    for (ThreadPool& pool : pools_)
      if (!device_->target() && problem.empty()) problem = run_case(data, expected, kernel_, pool, options);
    if (!problem.empty()) fail(Status::invalid_file, "{}", problem);
    ++runs_;
    at_ = where;
  }

 public:
  const std::string& at() const { return at_; }

 private:
  const Report& report_;
  Manifest manifest_;
  std::shared_ptr<foreign::Code> code_;
  Kernel kernel_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::optional<ProgramStore> programs_;
  ThreadPool pools_[2]{ThreadPool(1), ThreadPool(3)};
  std::int64_t taken_ = 0, declined_ = 0, runs_ = 0;
  std::string at_, first_reason_;
};

}  // namespace

bool run_kernel_cases(const std::filesystem::path& manifest, const std::string& device, int report) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // a crash is an answer here, not something to look into
  const Report lines(report);
  std::optional<CaseRunner> runner;
  try {
    runner.emplace(manifest, device, lines);
    runner->run();
    return true;
  } catch (const std::exception& error) {
    const std::string at = runner ? runner->at() : "";
    lines.line(fmt::format("failed {}{}{}", at, at.empty() ? "" : ": ", shortened(error.what())));
    return false;
  }
}

}  // namespace cermet

#include "cli/quantize_run.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "base/utf8_text.hpp"
#include "cli/quantize_measure.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "io/new_folder.hpp"
#include "io/output_target.hpp"
#include "model/checkpoint/modelslim.hpp"
#include "quant/assemble.hpp"
#include "quant/pipeline.hpp"
#include "quant/target_quality.hpp"

namespace cermet::cli {
namespace {

ExportFormat format_named(const std::string& name) {
  for (const ExportFormat format : {ExportFormat::compressed_tensors, ExportFormat::modelslim})
    if (name == name_of(format)) return format;
  fail(Status::invalid_argument, "--format: expected compressed-tensors or modelslim, found '{}'", name);
}

/// "+0.5%" as 0.005.
double target_option(std::string_view text) {
  std::string_view number = text;
  if (number.starts_with('+')) number.remove_prefix(1);
  const bool percent = number.ends_with('%');
  if (percent) number.remove_suffix(1);
  double value = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  require(percent && error == std::errc() && end == number.data() + number.size() && value > 0 && value <= 100,
          "--target-ppl: expected a rise such as +0.5%, above 0 and up to 100 %, found '{}'", text);
  return value / 100;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

/// The run of one command line.
class Run {
 public:
  Run(const QuantizeCommand& options, Console& console) : options_(options), console_(console) {}
  void run();

 private:
  void read_inputs(const Policy& policy);
  std::filesystem::path with_policy(const Policy& policy);
  std::filesystem::path with_target(double rise, ReportInput& input);
  QuantizationRecord quantize(const Policy& policy, const std::filesystem::path& out);
  std::filesystem::path put_together(const std::filesystem::path& working, const QuantizationRecord& record);
  void report_on(const std::filesystem::path& folder, ReportInput& input);
  void tell(const ReportInput& input);

  const QuantizeCommand& options_;
  std::filesystem::path out_;  ///< --out, or the folder that it is a link to
  Console& console_;
  ExportFormat format_{};
  AntiOutlier anti_outlier_{};
  ModelConfig config_;
  std::vector<std::vector<std::int32_t>> prompts_;
  std::vector<std::int32_t> heldout_;
};

void Run::read_inputs(const Policy& policy) {
  require(!options_.model.empty(), "MODEL: expected a model's folder, found none");
  require(!options_.calibration.empty(), "--calib: expected a file of prompts, found none");
  require(!options_.out.empty(), "--output: expected a folder to create, found none");
  format_ = format_named(options_.format);
  const std::optional<AntiOutlier> anti_outlier = anti_outlier_named(options_.anti_outlier);
  require(anti_outlier.has_value(), "--anti-outlier: expected none, clamp, smooth, both or auto, found '{}'",
          options_.anti_outlier);
  anti_outlier_ = *anti_outlier;
  require_new_or_empty(options_.out);
  out_ = behind_links(options_.out);
  config_ = load_config(options_.model);
  const std::vector<LinearModule> modules = linear_modules(config_);
  const SchemeMap schemes = scheme_map(policy, modules);  // mistakes in a policy are reported before anything is read
  if (format_ == ExportFormat::modelslim) require_modelslim_schemes(modules, schemes);
  const std::optional<Tokenizer> tokenizer =
      find_tokenizer(options_.tokenizer.empty() ? options_.model : options_.tokenizer);
  prompts_ = read_prompts(options_.calibration, tokenizer ? &*tokenizer : nullptr, options_.prompts);
  for (const auto& prompt : prompts_) check_ids(prompt, config_.vocab_size);
  if (options_.heldout.empty()) return;
  require(tokenizer.has_value(), "--heldout: expected a tokenizer.json beside the model or --tokenizer, found none");
  const std::string heldout = read_text_file(options_.heldout);
  heldout_ =
      tokenizer->encode(first_characters(text_of_file(heldout, options_.heldout), options_.heldout_characters), false);
  require(heldout_.size() >= 2, "{}: expected at least 2 tokens, found {}", options_.heldout, heldout_.size());
  check_ids(heldout_, config_.vocab_size);
}

QuantizationRecord Run::quantize(const Policy& policy, const std::filesystem::path& out) {
  QuantizeOptions options;
  options.model = options_.model;
  options.out = out;
  options.calibration = prompts_;
  options.policy = policy;
  options.anti_outlier = anti_outlier_;
  options.clamp_percentile = options_.clamp_percentile;
  options.range = format_ == ExportFormat::modelslim ? 127 : 127.5;
  options.device = options_.device;
  options.threads = options_.threads;
  options.every_scheme = !options_.target.empty();  // the sensitivity table is what the choice is made from
  options.restart = options_.restart;
  options.cancelled = &interrupted();
  Progress progress("quantizing");
  options.progress = [&](std::int64_t layer, std::int64_t layers, double seconds_left, std::string_view phase) {
    progress.update(
        layer, layers,
        seconds_left < 0 ? std::string(phase) : fmt::format("{} left, {}", seconds_text(seconds_left), phase));
  };
  QuantizationRecord record;
  record.layers = run_layers(options);
  record.policy = policy.text();
  record.anti_outlier = options_.anti_outlier;
  record.clamp_percentile = options_.clamp_percentile;
  record.range = options.range;
  record.prompts = static_cast<std::int64_t>(prompts_.size());
  for (const auto& prompt : prompts_) record.tokens += static_cast<std::int64_t>(prompt.size());
  return record;
}

std::filesystem::path Run::put_together(const std::filesystem::path& working, const QuantizationRecord& record) {
  ExportOptions options;
  options.format = format_;
  options.pack_experts = !options_.plain_experts;
  options.allow_rounding = true;  // of biases, which the descriptor counts in units; the record lists them
  options.shards.max_file_bytes = options_.max_file_bytes;
  options.shards.cancelled = &interrupted();
  Progress progress("writing " + options_.out);
  options.shards.on_progress = [&](std::int64_t done, std::int64_t total) { progress.update(done, total); };
  return assemble(options_.model, working, record, options);
}

void Run::report_on(const std::filesystem::path& folder, ReportInput& input) {
  input.model = options_.model;
  input.date = today();
  input.heldout = options_.heldout;
  input.before.bytes = checkpoint_bytes(options_.model);
  input.after.bytes = checkpoint_bytes(folder);
  const MeasureOptions measure{options_.device, options_.threads};
  if (!heldout_.empty()) {
    if (!input.before.perplexity)
      measure_perplexity(options_.model, heldout_, measure, "perplexity before", input.before);
    if (!input.after.perplexity) measure_perplexity(folder, heldout_, measure, "perplexity after", input.after);
  }
  if (!options_.no_speed) {
    measure_speed(options_.model, measure, input.before);
    measure_speed(folder, measure, input.after);
  }
  input.machine = input.after.machine.empty() ? options_.device : input.after.machine;
  write_reports(folder, input);
}

void Run::tell(const ReportInput& input) {
  if (console_.json()) {
    Json json{{"out", options_.out},
              {"bytes_before", input.before.bytes},
              {"bytes_after", input.after.bytes},
              {"prompts", input.record.prompts},
              {"tokens", input.record.tokens},
              {"seconds", input.seconds}};
    if (input.before.perplexity)
      json["perplexity_before"] = input.before.perplexity->value,
      json["perplexity_after"] = input.after.perplexity->value,
      json["standard_error_before"] = input.before.perplexity->standard_error,
      json["standard_error_after"] = input.after.perplexity->standard_error;
    if (!options_.no_speed) {
      json["decode_tokens_per_second_before"] = input.before.decode_tokens_per_second;
      json["decode_tokens_per_second_after"] = input.after.decode_tokens_per_second;
    }
    json["layers"] = Json::array();
    for (const LayerResult& layer : input.record.layers)
      json["layers"].push_back(
          {{"layer", layer.layer}, {"output_error", layer.output_error}, {"expert_tokens", layer.expert_tokens}});
    for (const SchemeGroup& group : input.choices) {
      Json errors;
      for (const SchemeOption& option : group.options) errors[std::string(name_of(option.scheme))] = option.error;
      json["choices"].push_back(
          {{"group", group.name}, {"scheme", name_of(group.options[group.chosen].scheme)}, {"errors", errors}});
    }
    console_.write_json(json);
    return;
  }
  for (const SchemeGroup& group : input.choices) {
    console_.print("{}: {}", group.name, name_of(group.options[group.chosen].scheme));
    for (const SchemeOption& option : group.options)
      console_.print("  {} {:.3g}", name_of(option.scheme), option.error);
    console_.print("\n");
  }
  for (const LayerResult& layer : input.record.layers) {
    if (layer.expert_tokens.empty()) continue;
    console_.print("layer {}: tokens of each expert {}\n", layer.layer, fmt::join(layer.expert_tokens, " "));
    for (const ModuleResult& module : layer.modules)
      if (module.fallback)
        console_.print("{}: {} tokens: rounded to nearest, without search\n", module.name, module.tokens);
  }
  console_.print("{}: {} -> {}", options_.out, bytes_text(static_cast<double>(input.before.bytes)),
                 bytes_text(static_cast<double>(input.after.bytes)));
  if (input.before.perplexity)
    console_.print("; perplexity {:.4f} +- {:.4f} -> {:.4f} +- {:.4f} ({})", input.before.perplexity->value,
                   input.before.perplexity->standard_error, input.after.perplexity->value,
                   input.after.perplexity->standard_error,
                   change_text(input.before.perplexity->value, input.after.perplexity->value));
  if (!options_.no_speed)
    console_.print("; decode {:.1f} -> {:.1f} tokens/s", input.before.decode_tokens_per_second,
                   input.after.decode_tokens_per_second);
  console_.print("; {}\n", seconds_text(input.seconds));
}

/// The default policy, a file's or one scheme: quantized once.
std::filesystem::path Run::with_policy(const Policy& policy) {
  for (const std::string& line :
       options_.policy.empty() ? std::vector<std::string>{} : policy.unused_rules(linear_modules(config_)))
    print_diagnostic("warning", line);
  const QuantizationRecord record = quantize(policy, out_);
  return put_together(working_folder(out_), record);
}

/// Several policies, each in a folder of its own inside OUT.partial, until one meets the target.
std::filesystem::path Run::with_target(double rise, ReportInput& input) {
  require(!heldout_.empty(), "--target-ppl: expected --heldout, which perplexity is measured on, found none");
  require(options_.policy.empty() && options_.scheme.empty(),
          "--target-ppl: expected no --policy and no --scheme, which it chooses, found one");
  require(format_ == ExportFormat::compressed_tensors, "--target-ppl: expected --format compressed-tensors, found {}",
          options_.format);
  const std::filesystem::path working = working_folder(out_);
  std::error_code error;
  std::filesystem::create_directory(working, error);
  if (error) fail(Status::io, "{}: cannot be created: {}", working.string(), error.message());
  measure_perplexity(options_.model, heldout_, {options_.device, options_.threads}, "perplexity before", input.before);
  const auto folder = [&](int attempt) { return working / fmt::format("attempt-{}", attempt); };
  QuantizationRecord record;
  std::filesystem::path result;
  TargetOptions target{
      .rise = rise, .perplexity_before = input.before.perplexity->value, .quantize = {}, .perplexity = {}};
  target.quantize = [&](const Policy& policy, int attempt) {
    record = quantize(policy, folder(attempt));
    return record.layers;
  };
  target.perplexity = [&](int attempt) {
    result = put_together(working_folder(folder(attempt)), record);
    measure_perplexity(result, heldout_, {options_.device, options_.threads},
                       fmt::format("perplexity of choice {}", attempt + 1), input.after);
    return input.after.perplexity->value;
  };
  const TargetResult met = meet_target(config_, target);
  input.target = options_.target;
  input.choices = met.table;
  input.attempts = met.attempts;
  return result;
}

void Run::run() {
  const Policy policy = policy_option(options_);
  const double rise = options_.target.empty() ? 0 : target_option(options_.target);
  read_inputs(policy);
  const auto start = std::chrono::steady_clock::now();
  ReportInput input;
  const std::filesystem::path result = rise > 0 ? with_target(rise, input) : with_policy(policy);
  input.record = *QuantizationRecord::read(result);
  input.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report_on(result, input);
  rename_file(result, out_);
  std::error_code ignored;
  std::filesystem::remove_all(working_folder(out_), ignored);
  tell(input);
}

}  // namespace

Policy policy_option(const QuantizeCommand& options) {
  require(options.policy.empty() || options.scheme.empty(), "--policy and --scheme: expected one of them, found both");
  if (!options.policy.empty()) return Policy::parse(read_text_file(options.policy), options.policy);
  if (options.scheme.empty()) return Policy::standard();
  const std::optional<LinearScheme> scheme = scheme_named(options.scheme);
  require(scheme && *scheme != LinearScheme{},
          "--scheme: expected w8a16, w8a8_dynamic, w8a8_static, fp8_weight_only, fp8_dynamic or fp8_static, found '{}'",
          options.scheme);
  return Policy::uniform(*scheme);
}

void run_quantize(const QuantizeCommand& command, Console& console) {
  stop_at_own_pace();
  Run(command, console).run();
}

}  // namespace cermet::cli

// cermet kernel add, list, check and remove: kernels that others wrote. `kernel cases` is the process in which a check
// runs one.
#include <algorithm>

#include "base/own_file.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/verb.hpp"
#include "foreign/check_record.hpp"
#include "runtime/kernel_cases.hpp"
#include "runtime/kernel_check.hpp"
#include "runtime/kernel_report.hpp"

namespace cermet::cli {
namespace {

struct KernelOptions {
  std::string what, device;
  int seconds = 60, report = 1;
  bool replace = false;
};

KernelCheckOptions check_options(const KernelOptions& options) {
  return {.device = options.device,
          .seconds = options.seconds,
          .program = own_file().string(),
          .between = stop_if_interrupted};
}

void declare_check(Parser& parser, KernelOptions& options) {
  parser.option("--device <DEVICE>", options.device, "where to check; null:sm_90 compiles and runs nothing")
      .suggests({"cpu", "cuda", "null:sm_90"})
      .default_text("the CPU, or the GPU if there is one");
  parser.option("--timeout <SECONDS>", options.seconds, "seconds for each run, and for what is compiled before a case")
      .range(1, 3600)
      .show_default();
}

// ---- What a check found ----

std::string check_text(const AddedKernel& added) {
  if (!added.check) return fmt::format("not checked, so it is never chosen: {}", added.unchecked);
  const foreign::CheckRecord& record = added.check->record;
  if (!added.check->has_run)
    return fmt::format("compiles for {} in all {} cases that it takes; not checked, so it is never chosen: {}",
                       record.device, record.taken, added.unchecked);
  return fmt::format("passed {} runs ({} cases) on {}; {} cases not supported{}", record.runs, record.taken,
                     record.device, record.declined,
                     added.check->first_reason.empty() ? "" : fmt::format(" (e.g. {})", added.check->first_reason));
}

void print_check(Console& console, const AddedKernel& added, std::string_view done) {
  if (console.json()) return console.write_json(check_json(added));
  console.print("{}{} for {}: {}\n", done, added.kernel.name, added.kernel.manifest->op->name, check_text(added));
}

// ---- list ----

/// Its state on each device where it was checked.
std::vector<std::string> states_of(const foreign::StoredKernel& kernel) {
  if (!kernel.manifest) return {"ignored: " + one_line(kernel.problem)};
  std::vector<std::string> states;
  for (const foreign::CheckRecord& record : foreign::stored_checks(kernel.digest)) {
    const std::string where =
        fmt::format("{}{}, {}", record.device, record.driver.empty() ? "" : ", driver " + record.driver, record.date);
    states.push_back(record.passed() ? "checked on " + where
                                     : fmt::format("failed on {}: {}", where, one_line(record.failure)));
  }
  if (states.empty()) states.emplace_back("not checked");
  std::ranges::sort(states);
  return states;
}

void list_kernels(Console& console) {
  if (console.json()) return console.write_json(kernels_json());
  const std::vector<foreign::StoredKernel> kernels = foreign::stored_kernels();
  Table table;
  for (const foreign::StoredKernel& kernel : kernels) {
    std::vector<std::string> cells{kernel.name, "-", "-", "-"};
    if (kernel.manifest)
      cells = {
          kernel.name, std::string(kernel.manifest->op->name), std::string(foreign::name_of(kernel.manifest->kind)),
          kernel.manifest->architectures.empty() ? "-"
                                                 : fmt::format("{}", fmt::join(kernel.manifest->architectures, " "))};
    for (const std::string& state : states_of(kernel)) {
      cells.push_back(state);
      table.row(std::exchange(cells, {"", "", "", ""}));
    }
  }
  for (const auto& folder : foreign::store_folders()) console.print("{}\n", folder.string());
  console.print("{}{} kernels from outside\n", table.to_string(), kernels.size());
}

// ---- check and remove ----

/// A kernel that was added, or the manifest of one that need not be.
void check_kernel(Console& console, const KernelOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(options.what, error))
    return print_check(console, check_stored_kernel(options.what, check_options(options)), "");
  const foreign::StagedKernel staged(options.what, true);
  print_check(console, check_staged_kernel(staged, check_options(options)), "");
}

void remove_kernel(Console& console, const std::string& name) {
  remove_stored_kernel(name);
  if (console.json()) console.write_json({{"removed", name}});
  else console.print("removed {}\n", name);
}

}  // namespace

namespace kernel_add_verb {
Verb verb() {
  return {
      "kernel add", "add a kernel that others wrote, and check it",
      "  cermet kernel add examples/kernels/cuda/rms_norm.json\n  cermet kernel add gemm.json --replace --timeout 10",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<KernelOptions>();
        parser.option("MANIFEST <FILE.json>", options->what, "its manifest, beside its code: docs/guide/own-kernels.md")
            .required();
        parser.flag("--replace", options->replace, "replace one of the same name");
        declare_check(parser, *options);
        return [options](Console& console) {
          print_check(console, add_kernel(options->what, options->replace, check_options(*options)), "added ");
        };
      }};
}
}  // namespace kernel_add_verb

namespace kernel_list_verb {
Verb verb() {
  return {"kernel list", "list the added kernels, and where each was checked",
          "  cermet kernel list\n  cermet kernel list --json",
          [](Parser&) -> Action { return [](Console& console) { list_kernels(console); }; }};
}
}  // namespace kernel_list_verb

namespace kernel_check_verb {
Verb verb() {
  return {"kernel check", "check a kernel over its operator's cases",
          "  cermet kernel check mine.rms_norm --device cuda\n  cermet kernel check scale.json",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<KernelOptions>();
            parser
                .option("KERNEL <NAME|FILE.json>", options->what, "an added kernel, or a manifest, which is not added")
                .required();
            declare_check(parser, *options);
            return [options](Console& console) { check_kernel(console, *options); };
          }};
}
}  // namespace kernel_check_verb

namespace kernel_remove_verb {
Verb verb() {
  return {"kernel remove", "delete an added kernel", "  cermet kernel remove mine.rms_norm",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<KernelOptions>();
            parser.option("KERNEL <NAME>", options->what, "an added kernel").required();
            return [options](Console& console) { remove_kernel(console, options->what); };
          }};
}
}  // namespace kernel_remove_verb

namespace kernel_cases_verb {
Verb verb() {
  return {"kernel cases", "runs a kernel's cases for `kernel check`", "  cermet kernel cases MANIFEST --device cpu",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<KernelOptions>();
            parser.option("MANIFEST", options->what, "its manifest").required();
            parser.option("--device", options->device, "where").required();
            parser.option("--report", options->report, "descriptor for the report").range(1, 1024);
            return [options](Console&) { run_kernel_cases(options->what, options->device, options->report); };
          },
          true};
}
}  // namespace kernel_cases_verb

}  // namespace cermet::cli

#include "jit/jit.hpp"

#include <charconv>
#include <map>

#include "device/cuda/plugin.hpp"
#include "jit/unit.hpp"

namespace cermet::jit {
namespace {

using Form = cuda::CompileRequest::Form;

struct Goal {
  std::string architecture;
  Form form;
};

/// What images for "sm_90a", "sm_120a" or "compute_90" are compiled to.
Goal goal_of(const std::string& architecture) {
  const bool is_virtual = architecture.starts_with("compute_");
  require(is_virtual || architecture.starts_with("sm_"), "architecture: expected sm_CC or compute_CC, found '{}'", architecture);
  int number = 0;
  const std::size_t digits = architecture.find('_') + 1;
  std::from_chars(architecture.data() + digits, architecture.data() + architecture.size(), number);
  require(number >= 75, "architecture: expected compute capability 7.5 or later, found '{}'", architecture);
  if (is_virtual) return {architecture, Form::ptx};
  // The instructions of sm_90a exist on 9.0 alone; plain 9.0 is what all later ones run.
  return number > 90 ? Goal{"compute_90", Form::ptx} : Goal{architecture, Form::cubin};
}

}  // namespace

const cuda::Toolchain& toolchain() {
  static const std::unique_ptr<cuda::Toolchain> made = cuda::plugin().make_toolchain();
  return *made;
}

std::vector<Image> build(std::span<const cuda::Program> programs, const std::string& architecture, Report* report, const Options& options) {
  Report unused;
  Report& into = report ? *report : unused;
  into.programs += static_cast<std::int64_t>(programs.size());
  if (programs.empty()) return {};
  const Goal goal = goal_of(architecture);
  const cuda::Toolchain& tools = options.toolchain ? *options.toolchain : toolchain();
  std::map<std::string, std::size_t> unit_of_source;  // programs that differ in nothing the compiler sees are one
  std::vector<Unit> units;
  std::vector<std::size_t> unit_of(programs.size());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    std::string source = wrapper_source(programs[i]);
    const auto [found, is_new] = unit_of_source.emplace(source, units.size());
    if (is_new) units.push_back(source_unit(tools, display_name(programs[i].task), std::move(source), goal.architecture, goal.form));
    unit_of[i] = found->second;
  }
  const std::vector<Image> images = build_units(units, into, options);
  std::vector<Image> in_order;
  for (const std::size_t unit : unit_of) in_order.push_back(images[unit]);
  return in_order;
}

}  // namespace cermet::jit

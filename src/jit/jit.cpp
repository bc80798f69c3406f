#include "jit/jit.hpp"

#include <algorithm>
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
  require(is_virtual || architecture.starts_with("sm_"), "architecture: expected sm_CC or compute_CC, found '{}'",
          architecture);
  int number = 0;
  const std::size_t digits = architecture.find('_') + 1;
  std::from_chars(architecture.data() + digits, architecture.data() + architecture.size(), number);
  require(number >= 75, "architecture: expected compute capability 7.5 or later, found '{}'", architecture);
  if (is_virtual) return {architecture, Form::ptx};
  // The instructions of sm_90a exist on 9.0 alone; plain 9.0 is what all later ones run.
  return number > 90 ? Goal{"compute_90", Form::ptx} : Goal{architecture, Form::cubin};
}

/// Whether there is nothing to compile.
bool is_image(const cuda::Program& program) {
  return program.foreign && program.foreign->form != cuda::ForeignCode::Form::source;
}

Image image_of(const cuda::ForeignCode& code) {
  const auto bytes = std::as_bytes(std::span(
      code.code->data(), code.code->size() + (code.form == cuda::ForeignCode::Form::ptx)));  // PTX with its zero
  return {{bytes.begin(), bytes.end()}, false, 0, {}};
}

}  // namespace

const cuda::Toolchain& toolchain() {
  static const std::unique_ptr<cuda::Toolchain> made = cuda::plugin().make_toolchain();
  return *made;
}

std::vector<Image> build(std::span<const cuda::Program> programs, const std::string& architecture, Report* report,
                         const Options& options) {
  Report unused;
  Report& into = report ? *report : unused;
  into.programs += static_cast<std::int64_t>(programs.size());
  if (programs.empty()) return {};
  if (std::ranges::all_of(programs, is_image)) {  // which takes no compiler
    std::vector<Image> images;
    for (const cuda::Program& program : programs) images.push_back(image_of(*program.foreign));
    return images;
  }
  const Goal goal = goal_of(architecture);
  const cuda::Toolchain& tools = options.toolchain ? *options.toolchain : toolchain();
  std::map<std::string, std::size_t> unit_of_source;  // programs that differ in nothing the compiler sees are one
  std::vector<Unit> units;
  std::vector<std::size_t> unit_of(programs.size());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::optional<cuda::ForeignCode>& foreign = programs[i].foreign;
    if (is_image(programs[i])) continue;
    std::string source = foreign ? programs[i].prelude + *foreign->code : wrapper_source(programs[i]);
    const std::vector<std::string> extra = foreign ? foreign->options : std::vector<std::string>();
    const auto [found, is_new] =
        unit_of_source.emplace(fmt::format("{}\n{}", fmt::join(extra, " "), source), units.size());
    if (is_new) {
      std::string name = foreign ? programs[i].header : display_name(programs[i].task);
      units.push_back(source_unit(tools, std::move(name), std::move(source), goal.architecture, goal.form, extra));
    }
    unit_of[i] = found->second;
  }
  const std::vector<Image> images = build_units(units, into, options);
  std::vector<Image> in_order;
  for (std::size_t i = 0; i < programs.size(); ++i)
    in_order.push_back(is_image(programs[i]) ? image_of(*programs[i].foreign) : images[unit_of[i]]);
  return in_order;
}

}  // namespace cermet::jit

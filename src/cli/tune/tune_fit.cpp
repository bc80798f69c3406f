// cermet tune fit: holds the models of kernels' costs to what was measured on a device.
#include <cmath>

#include "base/env.hpp"
#include "cli/model_options.hpp"
#include "cli/verb.hpp"
#include "jit/cache.hpp"
#include "runtime/context.hpp"
#include "select/cost_factors.hpp"
#include "select/device_identity.hpp"
#include "select/tune/fit.hpp"
#include "select/tuning.hpp"

namespace cermet::cli::tune_fit_verb {
namespace {

struct Options {
  std::string device = "cpu";
  int threads = 0;
  bool dry = false;
};

/// "12 %": how far off times are by a logarithm.
std::string percent_text(double error) { return fmt::format("{:.1f} %", 100 * (std::exp(error) - 1)); }

Json fit_json(const CostFit& fit) {
  return {{"kernel", fit.kernel},
          {"measured", fit.measured},
          {"regions", fit.regions},
          {"factor", fit.factor},
          {"error_before", fit.error_before},
          {"error_after", fit.error_after},
          {"error_held_out", fit.error_held_out}};
}

void print(Console& console, const std::string& device, const std::vector<CostFit>& fits, const std::string& file) {
  if (console.json()) {
    Json list = Json::array();
    for (const CostFit& fit : fits) list.push_back(fit_json(fit));
    return console.write_json(
        {{"device", device}, {"file", file.empty() ? Json() : Json(file)}, {"fits", std::move(list)}});
  }
  Table table;
  table.row({"kernel", "measured", "regions", "factor", "off before", "after", "held out"});
  for (const CostFit& fit : fits)
    table.row({fit.kernel, std::to_string(fit.measured), std::to_string(fit.regions), fmt::format("{:.3f}", fit.factor),
               percent_text(fit.error_before), percent_text(fit.error_after), percent_text(fit.error_held_out)});
  console.print("modelled times beside measured ones of {}: how far off in the geometric mean\n{}{}\n", device,
                table.to_string(), file.empty() ? "nothing is stored" : "stored in " + file);
}

void fit(Console& console, const Options& options) {
  const Context context({options.device, options.threads});
  const DeviceIdentity identity = device_identity(context.target(), context.pool().size());
  const std::vector<TuningEntry> entries = Tuning::process().all(identity.device);
  require(!entries.empty(),
          "tune fit: expected measured choices of {}, found none in {}: run `cermet tune op` or `tune model` first",
          identity.device, Tuning::process().place());
  const std::vector<CostFit> fits = fit_costs(entries, context.target());
  require(!fits.empty(),
          "tune fit: expected a kernel with a model that was measured on three regions, found none in {} entries",
          entries.size());
  std::filesystem::path file;
  if (!options.dry) {
    file = CostFactors::file_of(env::value(env::Name::CERMET_TUNING), jit::DiskCache::process().folder());
    require(!file.empty(), "tune fit: expected a place beside the measured choices, found {}",
            Tuning::process().place());
    std::map<std::string, double, std::less<>> factors;
    for (const CostFit& one : fits) factors[one.kernel] = one.factor;
    CostFactors all = CostFactors::read(file);
    all.set(identity.device, std::move(factors));
    all.write(file);
  }
  print(console, identity.device, fits, file.string());
}

}  // namespace

Verb verb() {
  return {"tune fit", "calibrate the cost model to what was measured",
          "  cermet tune fit --device cuda\n  cermet tune fit --dry --json", [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.flag("--dry", options->dry, "print the factors and store nothing");
            declare_device(parser, options->device, options->threads, "cpu, or a GPU");
            return [options](Console& console) { fit(console, *options); };
          }};
}

}  // namespace cermet::cli::tune_fit_verb

#include "runtime/kernel_report.hpp"

#include "foreign/store.hpp"

namespace cermet {
namespace {

JsonValue kernel_json(const foreign::StoredKernel& kernel) {
  JsonValue json{{"kernel", kernel.name},
                 {"folder", kernel.folder.string()},
                 {"added", kernel.added},
                 {"digest", kernel.digest},
                 {"problem", kernel.problem.empty() ? JsonValue() : JsonValue(kernel.problem)}};
  if (!kernel.manifest) return json;
  json.update({{"operator", kernel.manifest->op->name},
               {"kind", foreign::name_of(kernel.manifest->kind)},
               {"summary", kernel.manifest->summary}});
  json["architectures"] = kernel.manifest->architectures;
  json["checks"] = JsonValue::array();
  for (const foreign::CheckRecord& r : foreign::stored_checks(kernel.digest))
    json["checks"].push_back({{"device", r.device},
                              {"driver", r.driver},
                              {"date", r.date},
                              {"library", r.library},
                              {"taken", r.taken},
                              {"declined", r.declined},
                              {"runs", r.runs},
                              {"failure", r.passed() ? JsonValue() : JsonValue(r.failure)}});
  return json;
}

}  // namespace

JsonValue check_json(const AddedKernel& added) {
  JsonValue json{{"kernel", added.kernel.name},
                 {"operator", added.kernel.manifest->op->name},
                 {"unchecked", added.unchecked.empty() ? JsonValue() : JsonValue(added.unchecked)}};
  if (!added.check) return json;
  const foreign::CheckRecord& record = added.check->record;
  json.update(
      {{"device", record.device}, {"taken", record.taken}, {"declined", record.declined}, {"runs", record.runs}});
  return json;
}

JsonValue kernels_json() {
  JsonValue json{{"folders", JsonValue::array()}, {"kernels", JsonValue::array()}};
  for (const auto& folder : foreign::store_folders()) json["folders"].push_back(folder.string());
  for (const foreign::StoredKernel& kernel : foreign::stored_kernels()) json["kernels"].push_back(kernel_json(kernel));
  return json;
}

}  // namespace cermet

// The C functions that compile graphs and run them.
#include "api/guard.hpp"
#include "api/options.hpp"
#include "api/session.hpp"

namespace cermet::api {
namespace {

cermet_compile_options compile_defaults() {
  return {sizeof(cermet_compile_options), nullptr, nullptr, nullptr, 0, nullptr, 0, 1, nullptr, nullptr, nullptr};
}

cermet_compile_options checked_compile_options(const cermet_compile_options* given) {
  const cermet_compile_options options =
      filled(given, compile_defaults, "cermet_compile_options", offsetof(cermet_compile_options, weights));
  if (options.maximum_count > 0) require_pointer(options.maxima, "maxima");
  if (options.skip_count > 0) require_pointer(options.skip, "skip");
  for (std::size_t i = 0; i < options.skip_count; ++i) require_pointer(options.skip[i], "skip");
  return options;
}

}  // namespace
}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

void cermet_compile_options_init(cermet_compile_options* options, size_t struct_size) {
  api::init_options(options, struct_size, api::compile_defaults);
}

cermet_status cermet_graph_compile(cermet_graph* graph, const cermet_compile_options* options,
                                   cermet_session** session) {
  return api::guarded([&] {
    api::require_pointer(graph, "graph");
    api::require_pointer(session, "session");
    *session = new cermet_session{api::GraphSession(graph->builder, api::checked_compile_options(options))};
  });
}

void cermet_session_destroy(cermet_session* session) { delete session; }

cermet_status cermet_session_run(cermet_session* session, const DLTensor* const* inputs, size_t input_count,
                                 DLTensor* const* outputs, size_t output_count, void* stream) {
  return api::guarded([&] {
    api::require_pointer(session, "session");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (output_count > 0) api::require_pointer(outputs, "outputs");
    session->session.run({inputs, input_count}, {outputs, output_count}, stream);
  });
}

cermet_status cermet_session_result(cermet_session* session, size_t index, DLTensor* result) {
  return api::guarded([&] {
    api::require_pointer(session, "session");
    api::require_pointer(result, "result");
    *result = session->session.result(index);
  });
}

cermet_status cermet_session_result_copy(cermet_session* session, size_t index, DLManagedTensor** result) {
  return api::guarded([&] {
    api::require_pointer(session, "session");
    api::require_pointer(result, "result");
    *result = session->session.result_copy(index);
  });
}

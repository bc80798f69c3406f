// The C functions that say what a session takes and gives.
#include <algorithm>

#include "api/guard.hpp"
#include "api/session.hpp"

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

size_t cermet_session_input_count(const cermet_session* session) {
  return session ? session->session.inputs().size() : 0;
}
size_t cermet_session_output_count(const cermet_session* session) {
  return session ? session->session.outputs().size() : 0;
}

cermet_status cermet_session_input(cermet_session* session, size_t index, cermet_value_info* info) {
  return api::guarded([&] {
    api::require_pointer(session, "session");
    api::require_pointer(info, "info");
    const auto& inputs = session->session.inputs();
    require(index < inputs.size(), "input: expected an index below {}, found {}", inputs.size(), index);
    *info = session->session.described.of(inputs[index].name, inputs[index].seen());
  });
}

cermet_status cermet_session_output(cermet_session* session, size_t index, cermet_value_info* info) {
  return api::guarded([&] {
    api::require_pointer(session, "session");
    api::require_pointer(info, "info");
    const auto& port = session->session.output(index);
    *info = session->session.described.of(port.name, port.seen());
  });
}

cermet_status cermet_session_output_shape(cermet_session* session, size_t index, const DLTensor* const* inputs,
                                          size_t input_count, int64_t* shape) {
  return api::guarded([&] {
    api::require_pointer(session, "session");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    api::require_pointer(shape, "shape");
    std::ranges::copy(session->session.output_shape(index, {inputs, input_count}), shape);
  });
}

int32_t cermet_session_output_alias(const cermet_session* session, size_t index) {
  return session && index < session->session.outputs().size() ? session->session.outputs()[index].alias : -1;
}

namespace {

int32_t write_order(const std::vector<api::GraphSession::Port>& ports, size_t index, int64_t* order) {
  if (index >= ports.size() || !order) return 0;
  std::ranges::copy(ports[index].order, order);
  return static_cast<int32_t>(ports[index].order.size());
}

}  // namespace

int32_t cermet_session_input_order(const cermet_session* session, size_t index, int64_t* order) {
  return session ? write_order(session->session.inputs(), index, order) : 0;
}
int32_t cermet_session_output_order(const cermet_session* session, size_t index, int64_t* order) {
  return session ? write_order(session->session.outputs(), index, order) : 0;
}

int32_t cermet_session_input_is_written(const cermet_session* session, size_t index) {
  return session && index < session->session.inputs().size() && session->session.inputs()[index].is_state ? 1 : 0;
}

const char* cermet_session_explain(cermet_session* session) {
  const char* text = nullptr;
  api::guarded([&] {
    api::require_pointer(session, "session");
    text = (session->session.text = session->session.explain()).c_str();
  });
  return text;
}

size_t cermet_session_step_count(const cermet_session* session) {
  return session ? session->session.session().executable().steps().size() : 0;
}
size_t cermet_session_arena_bytes(const cermet_session* session) {
  return session ? static_cast<size_t>(session->session.session().executable().arena_bytes()) : 0;
}
size_t cermet_session_constant_bytes(const cermet_session* session) {
  return session ? session->session.constant_bytes() : 0;
}

#include "comm/device_links.hpp"

#include <algorithm>

#include "base/env.hpp"
#include "base/log.hpp"
#include "comm/join_watched.hpp"
#include "comm/route_store.hpp"
#include "device/cuda/plugin.hpp"

namespace cermet::comm {
namespace {

double timeout() { return static_cast<double>(env::integer(env::Name::CERMET_COMM_TIMEOUT)); }

std::unique_ptr<DeviceGroup> join(Communicator& host, Device& device) {
  std::string own;
  if (host.rank() == 0) {
    const GroupIdentity identity = cuda::plugin().make_group_identity();
    own.assign(identity.data(), identity.size());
  }
  const std::string identity = host.gather_text(own)[0];
  GroupIdentity bytes{};
  CERMET_ASSERT(identity.size() == bytes.size());
  std::copy(identity.begin(), identity.end(), bytes.begin());
  std::unique_ptr<DeviceGroup> group = join_watched(
      host,
      [&device, rank = host.rank(), size = host.size(), bytes] {
        return cuda::plugin().join_device_group(device, rank, size, bytes);
      },
      timeout());
  host.barrier();  // a rank that runs ahead would enqueue work while another one's driver takes memory, which may wait
                   // for it
  return group;
}

/// The reason of the first rank that has one, on every rank.
std::string first_reason(Communicator& host, std::string_view own) {
  for (const std::string& text : host.gather_text(own))
    if (!text.empty()) return text;
  return "";
}

std::optional<Route> forced_route(DeviceEngine engine) {
  if (engine == DeviceEngine::stamped) return Route::stamped;
  if (engine == DeviceEngine::one_shot) return Route::one_shot;
  return engine == DeviceEngine::two_shot ? std::optional(Route::two_shot) : std::nullopt;
}

}  // namespace

Links joined_by(Communicator& host, Device& device, DeviceEngine engine) {
  Links links;
  const bool differ = devices_differ(host, device), automatic = engine == DeviceEngine::automatic;
  std::string no_nccl =
      automatic || engine == DeviceEngine::nccl ? first_reason(host, cuda::plugin().nccl_problem()) : "not asked for";
  if (no_nccl.empty() && !differ) no_nccl = "NCCL: expected a GPU for each rank, found two ranks on one";
  if (engine == DeviceEngine::nccl && !no_nccl.empty()) fail(Status::unsupported, "{}", no_nccl);
  if (engine != DeviceEngine::nccl) {
    try {
      links.peer = std::make_unique<PeerGroup>(host, device, timeout());
      links.peer->set_routes(Routes(agreed_routes(host, device, links.peer->shares_device()), forced_route(engine)));
    } catch (const Error& error) {
      if (!automatic || error.status() != Status::unsupported) throw;
      if (!no_nccl.empty()) fail(Status::unsupported, "{}; {}", no_nccl, error.what());
      log().info("{}", error.what());
    }
  }
  if (no_nccl.empty()) links.nccl = join(host, device);
  return links;
}

}  // namespace cermet::comm

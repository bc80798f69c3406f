#include "comm/join_watched.hpp"

#include <chrono>
#include <future>
#include <thread>

namespace cermet::comm {

std::unique_ptr<DeviceGroup> join_watched(Communicator& host, std::function<std::unique_ptr<DeviceGroup>()> join,
                                          double timeout) {
  std::packaged_task<std::unique_ptr<DeviceGroup>()> task(std::move(join));
  std::future<std::unique_ptr<DeviceGroup>> joined = task.get_future();
  std::thread(std::move(task)).detach();
  const auto begin = std::chrono::steady_clock::now();
  while (joined.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (const std::string gone = host.failure(); !gone.empty())
      fail(Status::io, "rank {} of {}: joining GPUs: {}", host.rank(), host.size(), gone);
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < timeout) continue;
    const std::string late = fmt::format("NCCL did not join the GPUs within {} s", timeout);
    host.abort(late);
    fail(Status::io, "rank {} of {}: {}", host.rank(), host.size(), late);
  }
  try {
    return joined.get();
  } catch (const std::exception& error) {
    host.abort(fmt::format("failed: {}", error.what()));
    throw;
  }
}

}  // namespace cermet::comm

#include "comm/world.hpp"

#include <optional>

#include "base/env.hpp"
#include "comm/local.hpp"
#include "comm/mpi_plugin.hpp"
#include "comm/shared.hpp"

namespace cermet::comm {
namespace {

using env::Name;

std::optional<int> number(Name name) {
  if (env::value(name).empty()) return std::nullopt;
  const long value = env::integer(name);
  const env::Variable& variable = env::all()[static_cast<std::size_t>(name)];
  require(value <= max_ranks, "{}: expected a number of at most {}, found {}", variable.name, max_ranks, value);
  return static_cast<int>(value);
}

/// The variables of one launcher; nothing where it did not start this process.
std::optional<ProcessRank> rank_from(Name size_name, Name rank_name, std::optional<Name> local_size,
                                     std::optional<Name> local_rank, std::string engine) {
  const std::optional<int> size = number(size_name), rank = number(rank_name);
  if (!size) return std::nullopt;
  const std::string_view name = env::all()[static_cast<std::size_t>(rank_name)].name;
  require(*size >= 1 && rank && *rank < *size, "{}: expected a rank below the {} that there are, found '{}'", name,
          *size, env::value(rank_name));
  ProcessRank process{*rank, *size, *rank, *size, std::move(engine)};
  if (local_size) process.local_size = number(*local_size).value_or(0);
  if (local_rank) process.local_rank = number(*local_rank).value_or(*rank);
  if (*size == 1) process.engine.clear();
  return process;
}

bool is_loopback(std::string_view host) {
  return host.empty() || host == "localhost" || host == "::1" || host.starts_with("127.");
}

ProcessRank rank_from_variables() {
  std::optional<ProcessRank> process =
      rank_from(Name::WORLD_SIZE, Name::RANK, Name::LOCAL_WORLD_SIZE, Name::LOCAL_RANK, "shared");
  if (!process) return {};
  if (process->local_size == 0) process->local_size = is_loopback(env::value(Name::MASTER_ADDR)) ? process->size : 1;
  return *process;
}

std::string job_name() {
  if (const std::string& job = env::value(Name::CERMET_JOB); !job.empty()) return job;
  const std::string& port = env::value(Name::MASTER_PORT);
  require(!port.empty(), "MASTER_PORT: expected a number that only this run has, or CERMET_JOB, found neither");
  return "port-" + port;
}

}  // namespace

ProcessRank process_rank() {
  const std::string& wanted = env::value(Name::CERMET_COMM);
  require(wanted == "auto" || wanted == "mpi" || wanted == "shared",
          "CERMET_COMM: expected auto, mpi or shared, found '{}'", wanted);
  if (wanted != "shared") {
    if (auto open_mpi = rank_from(Name::OMPI_COMM_WORLD_SIZE, Name::OMPI_COMM_WORLD_RANK,
                                  Name::OMPI_COMM_WORLD_LOCAL_SIZE, Name::OMPI_COMM_WORLD_LOCAL_RANK, "mpi"))
      return *open_mpi;
    if (auto other = rank_from(Name::PMI_SIZE, Name::PMI_RANK, std::nullopt, Name::SLURM_LOCALID, "mpi")) return *other;
    if (!env::value(Name::PMIX_RANK).empty())
      if (auto slurm = rank_from(Name::SLURM_STEP_NUM_TASKS, Name::PMIX_RANK, std::nullopt, Name::SLURM_LOCALID, "mpi");
          slurm && slurm->size > 1)
        return *slurm;
    require(wanted == "auto", "CERMET_COMM=mpi: expected to be started by mpirun, found none of its variables");
  }
  return rank_from_variables();
}

std::unique_ptr<Communicator> join_world() {
  const ProcessRank process = process_rank();
  if (process.engine.empty()) return std::move(make_local_group(1)[0]);
  if (process.engine == "mpi") {
    std::unique_ptr<Communicator> world = join_mpi_world();
    if (world->size() != process.size)
      fail(Status::unsupported,
           "world of {} ranks: expected an MPI that its launcher can join (srun --mpi=list; mpirun of the same MPI), "
           "found one of {}",
           process.size, world->size());
    return world;
  }
  if (process.local_size != process.size)
    fail(Status::unsupported,
         "world of {} ranks: expected all on this host, or mpirun, which joins hosts; found {} here (LOCAL_WORLD_SIZE, "
         "MASTER_ADDR)",
         process.size, process.local_size);
  return join_shared_group(job_name(), process.rank, process.size);
}

}  // namespace cermet::comm

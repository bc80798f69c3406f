// The cores that a process may use: `env`, devices and `launch` agree about them, and more threads than that do no
// harm.
#include "tests/cli/shell.hpp"

namespace cermet::test {
namespace {

/// The first core that this process may use, and the command that leaves another one no more.
const std::string on_one_core = "taskset -c $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//') cermet ";

TEST(Cores, AreThoseOfTheProcess) {
  const ScratchFolder scratch;
  EXPECT_EQ(run_shell(on_one_core + "env --json", scratch.path()).json()["cores"], 1);
  const CommandResult bench =
      run_shell(on_one_core + "bench op rms_norm --shape 'f32[2,8] f32[8]' --seconds 0.01 --json", scratch.path());
  EXPECT_EQ(bench.json()["threads"], 1);
  const CommandResult launch = run_shell(on_one_core + "launch -n 1 -- env --json", scratch.path());
  ASSERT_EQ(launch.code, 0) << launch.err;
  const nlohmann::json variables = launch.json()["variables"];
  for (const auto& variable : variables)
    if (variable["name"] == "CERMET_THREADS") {
      EXPECT_EQ(variable["value"], "1");
    }
}

TEST(Cores, MoreThreadsThanThereAreIsWarnedOfOnce) {
  const ScratchFolder scratch;
  const CommandResult run =
      run_shell(on_one_core + "run " CERMET_SOURCE_DIR "/models/demo -p Once -n 4 --threads 64 --json", scratch.path());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(
      run.err.find("cermet warning: threads: 64 were asked for, more than the 1 that this process has a core for"),
      std::string::npos)
      << run.err;
  EXPECT_EQ(run.err.find("cermet warning", run.err.find("cermet warning") + 1), std::string::npos) << run.err;
  const CommandResult one =
      run_shell(on_one_core + "run " CERMET_SOURCE_DIR "/models/demo -p Once -n 4 --threads 1 --json", scratch.path());
  EXPECT_EQ(one.err.find("warning"), std::string::npos) << one.err;
  EXPECT_EQ(one.json()["ids"], run.json()["ids"]);
}

}  // namespace
}  // namespace cermet::test

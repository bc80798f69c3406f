#include "cli/bench/bench_comm_norm.hpp"

#include <chrono>
#include <cstdlib>

#include "graph/text.hpp"
#include "runtime/session.hpp"

namespace cermet::cli {
namespace {

constexpr int norm_layers = 16;

/// As models sum them: in float32.
std::string graph_text(int ranks, std::int64_t rows) {
  const std::string row = fmt::format(" : f32[{}, {}]\n", rows, norm_columns);
  std::string text =
                  fmt::format("graph layers {{\n  input %y{0}  input %h{0}  input %w : f32[{1}]\n", row, norm_columns),
              y = "y", h = "h";
  for (int i = 0; i < norm_layers; ++i) {
    text += fmt::format("  %s{} = all_reduce(%{}) {{group = \"ranks\", ranks = {}}}{}", i, y, ranks, row);
    text += fmt::format("  %h{0} = add(%s{0}, %{1}){2}  %y{0} = rms_norm(%h{0}, %w) {{eps = 1e-05}}{2}", i, h, row);
    y = fmt::format("y{}", i);
    h = fmt::format("h{}", i);
  }
  return text + fmt::format("  output y = %{}\n  output h = %{}\n}}", y, h);
}

double slowest(Communicator& group, double seconds) {
  double most = 0;
  for (const std::string& text : group.gather_text(fmt::format("{:.9g}", seconds)))
    most = std::max(most, std::strtod(text.c_str(), nullptr));
  return most;
}

double time_runs(Communicator& group, Session& session, Stream& stream, std::int64_t runs) {
  group.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < runs; ++i) session.run();
  stream.synchronize();
  return slowest(group, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace

NormTiming measure_norm(Communicator& group, const std::string& device, std::int64_t bytes, double seconds) {
  Context context({device, 1});
  const std::int64_t row_bytes = norm_columns * static_cast<std::int64_t>(sizeof(float)),
                     rows = std::max<std::int64_t>(1, bytes / row_bytes);
  SessionOptions options;
  options.groups = {{"ranks", &group}};
  const LoadWeight none = [](const std::string&, std::int64_t, const TensorView&) {};
  Session session(parse_graph(graph_text(group.size(), rows)), context, none, options);
  std::vector<DeviceBuffer> memory;
  for (const auto& [name, shape] :
       {std::pair("y", Shape{rows, norm_columns}), {"h", Shape{rows, norm_columns}}, {"w", Shape{norm_columns}}}) {
    memory.push_back(context.device().allocate(dense_bytes(DType::f32, shape)));
    context.stream()->fill(memory.back().data(), 0, memory.back().size());
    session.bind(name, {memory.back().data(), DType::f32, shape});
  }
  NormTiming result{{rows * row_bytes, 2, 0}, (session.executable().steps().size() + norm_layers / 2) / norm_layers};
  time_runs(group, session, *context.stream(), result.timing.calls);  // launched, then captured
  for (;; result.timing.calls *= 2) {
    const double took = time_runs(group, session, *context.stream(), result.timing.calls);
    group.check();
    result.timing.seconds = took / static_cast<double>(result.timing.calls * norm_layers);
    if (took >= seconds / 2) return result;  // alike on all ranks, because the slowest counts
  }
}

}  // namespace cermet::cli

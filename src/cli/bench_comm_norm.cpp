#include "cli/bench_comm_norm.hpp"

#include <chrono>
#include <cstdlib>

#include "graph/text.hpp"
#include "runtime/session.hpp"

namespace cermet::cli {
namespace {

constexpr int layers = 16;

std::string graph_text(int ranks, std::int64_t rows, DType dtype) {
  const std::string row = fmt::format("[{}, {}]", rows, norm_columns);
  std::string text = fmt::format("graph layers {{\n  input %y : {0}{1}\n  input %h : f32{1}\n  input %w : {0}[{2}]\n", name_of(dtype), row, norm_columns);
  std::string y = "y", h = "h";
  for (int i = 0; i < layers; ++i) {
    text += fmt::format("  %s{0} = all_reduce(%{1}) {{group = \"ranks\", ranks = {2}}} : {3}{4}\n  %h{0} = add(%s{0}, %{5}) : f32{4}\n", i, y, ranks,
                        name_of(dtype), row, h);
    text += fmt::format("  %y{0} = rms_norm(%h{0}, %w) {{eps = 1e-05, out_dtype = \"{1}\"}} : {1}{2}\n", i, name_of(dtype), row);
    y = fmt::format("y{}", i);
    h = fmt::format("h{}", i);
  }
  return text + fmt::format("  output y = %{}\n  output h = %{}\n}}", y, h);
}

double slowest(Communicator& group, double seconds) {
  double most = 0;
  for (const std::string& text : group.gather_text(fmt::format("{:.9g}", seconds))) most = std::max(most, std::strtod(text.c_str(), nullptr));
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

NormTiming measure_norm(Communicator& group, const std::string& device, DType dtype, std::int64_t bytes, double seconds) {
  Context context({device, 1});
  const std::int64_t row_bytes = norm_columns * static_cast<std::int64_t>(size_of(dtype)), rows = std::max<std::int64_t>(1, bytes / row_bytes);
  SessionOptions options;
  options.groups = {{"ranks", &group}};
  const LoadWeight none = [](const std::string&, std::int64_t, const TensorView&) {};
  Session session(parse_graph(graph_text(group.size(), rows, dtype)), context, none, options);
  std::vector<DeviceBuffer> memory;
  for (const auto& [name, type, shape] :
       {std::tuple("y", dtype, Shape{rows, norm_columns}), {"h", DType::f32, Shape{rows, norm_columns}}, {"w", dtype, Shape{norm_columns}}}) {
    memory.push_back(context.device().allocate(dense_bytes(type, shape)));
    context.stream()->fill(memory.back().data(), 0, memory.back().size());
    session.bind(name, {memory.back().data(), type, shape});
  }
  NormTiming result{{rows * row_bytes, 2, 0}, (session.executable().steps().size() + layers / 2) / layers};
  time_runs(group, session, *context.stream(), result.timing.calls);  // launched, then captured
  for (;; result.timing.calls *= 2) {
    const double took = time_runs(group, session, *context.stream(), result.timing.calls);
    group.check();
    result.timing.seconds = took / static_cast<double>(result.timing.calls * layers);
    if (took >= seconds / 2) return result;  // alike on all ranks, because the slowest counts
  }
}

}  // namespace cermet::cli

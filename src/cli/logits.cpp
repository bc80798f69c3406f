// cermet logits: every position's logits, for comparison with other runtimes.
#include <algorithm>
#include <cmath>

#include "cli/model_options.hpp"
#include "cli/ui/interrupt.hpp"

namespace cermet::cli::logits_verb {
namespace {

struct Options {
  ModelOptions model;
  std::string ids;
};

/// Passes are as long as the input where that is at most this, so that it is seen as one.
constexpr std::int64_t longest_pass = 4096;

template <class Body>
void for_rows(Engine& engine, const std::vector<std::int32_t>& ids, Body body) {
  const auto chunk = static_cast<std::size_t>(engine.max_batch_tokens());
  for (std::size_t begin = 0; begin < ids.size(); begin += chunk) {
    stop_if_interrupted();
    const SequenceTokens part{0, std::span(ids).subspan(begin, std::min(chunk, ids.size() - begin)), std::ssize(ids)};
    const Rows rows(engine.forward({&part, 1}, Engine::Logits::all));
    for (std::int64_t r = 0; r < rows.count(); ++r)
      body(begin + static_cast<std::size_t>(r),
           std::span(reinterpret_cast<const float*>(rows.row(r)), static_cast<std::size_t>(rows.length())));
  }
}

void write_json_rows(Console& console, Engine& engine, const std::vector<std::int32_t>& ids) {
  console.print("{{\"ids\": [{}], \"logits\": [", fmt::join(ids, ", "));
  for_rows(engine, ids, [&](std::size_t position, std::span<const float> row) {
    std::string line = position ? ",\n[" : "\n[";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{}{}", i ? "," : "", std::isfinite(row[i]) ? fmt::format("{:.9g}", row[i]) : "null");
    console.write(line + "]");
  });
  console.write("]}\n");
}

void write_text_rows(Console& console, Engine& engine, const std::vector<std::int32_t>& ids) {
  constexpr std::size_t shown = 5;
  for_rows(engine, ids, [&](std::size_t position, std::span<const float> row) {
    std::vector<std::size_t> order(row.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(shown, order.size()));
    std::partial_sort(order.begin(), middle, order.end(),
                      [&](std::size_t a, std::size_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
    std::string line = fmt::format("{:>6}  id {:>6}  likeliest", position, ids[position]);
    for (auto id = order.begin(); id != middle; ++id) line += fmt::format("  {}: {:.5f}", *id, row[*id]);
    console.write(line + "\n");
  });
}

void show(const Options& options, Console& console) {
  const std::vector<std::int32_t> ids = ids_option(options.ids);
  const auto count = static_cast<std::int64_t>(ids.size());
  check_ids(ids, load_config(options.model.model).vocab_size);  // before any weight is read
  check_context(options.model, count, "--ids");
  Engine engine = load_engine(options.model, count, std::clamp<std::int64_t>(count, 1, longest_pass));
  require(count <= engine.room(0), "--ids: expected at most {} ids (the context), found {}", engine.room(0), count);
  if (console.json()) write_json_rows(console, engine, ids);
  else write_text_rows(console, engine, ids);
}

Action declare(Parser& parser) {
  const auto options = std::make_shared<Options>();
  declare_model(parser, options->model, {});
  options->model.engine.all_logits = true;
  parser.section("Prompt");
  parser.option("--ids <IDS>", options->ids, "token ids, separated by commas").required();
  declare_model_options(parser, options->model, {});
  declare_advanced_options(parser, options->model, {});
  return [options](Console& console) { show(*options, console); };
}

}  // namespace

Verb verb() {
  return {"logits", "print the logits of every position of a token sequence",
          "cermet logits models/demo --ids 497,2314,1581 --dtype f32 --json", declare};
}

}  // namespace cermet::cli::logits_verb

// cermet explain and bisect: what they print is what a run launches, and the page holds exactly that.
#include <gtest/gtest.h>

#include "cli/explain/explain_fold.hpp"
#include "cli/explain/explain_page.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/golden.hpp"

namespace cermet::cli {

/// In the program these are embedded; here they are read.
PageParts page_parts() {
  static const std::string folder = CERMET_SOURCE_DIR "/src/cli/explain/page/";
  static const std::string html = read_text(folder + "page.html"), style = read_text(folder + "page.css"), script = [] {
    std::string text;
    for (const char* part : {"1_graph", "2_layout", "3_drawing", "4_panels"}) text += read_text(folder + part + ".js");
    return text;
  }();
  return {html, style, script};
}

}  // namespace cermet::cli

namespace cermet::test {
namespace {

/// A field of a protobuf message: of a length, or a small number.
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(0x80 | (bytes.size() & 127)) +
         static_cast<char>(bytes.size() >> 7) + bytes;
}
std::string field(int number, int value) { return {static_cast<char>(number << 3), static_cast<char>(value)}; }

/// An ONNX file of x: float[2, 3] and unary operators after one another, whose values have these names.
std::string chain_file(const std::vector<std::string>& operators, const std::vector<std::string>& names) {
  const std::string shape = field(1, field(1, 2)) + field(1, field(1, 3));
  const auto value = [&](const std::string& name) {
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)));
  };
  std::string graph;
  for (std::size_t i = 0; i < operators.size(); ++i)
    graph += field(1, field(1, names[i]) + field(2, names[i + 1]) + field(3, names[i + 1]) + field(4, operators[i]));
  graph += field(2, std::string("chain")) + field(11, value(names.front())) + field(12, value(names.back()));
  return field(1, 8) + field(7, graph) + field(8, field(1, std::string()) + field(2, 17));
}

/// Two operators that one kernel computes.
struct Chain : testing::Test {
  ScratchFolder scratch;
  std::string file = scratch.file("chain.onnx", chain_file({"Sigmoid", "Neg"}, {"x", "a", "y"})).string();
};

const std::string sized_classifier = "models/demo_onnx/classifier.onnx --dim batch=2";

std::int64_t launches_in(const nlohmann::json& run) {
  std::int64_t launches = 0;
  for (const auto& kernel : run["kernels"]) launches += kernel["launches"].get<std::int64_t>();
  EXPECT_GT(launches, 0);
  return launches;
}

/// The data of a page: the text of its only element of type application/json.
std::string data_text(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)", end = "</script>";
  const std::size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find(end, at) - at);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

std::int64_t launches_of(const std::string& file, const std::string& mode) {
  const CommandResult run = run_cermet("run " + file + " --json --mode " + mode);
  EXPECT_EQ(run.code, 0) << run.err;
  return launches_in(run.json());
}

TEST_F(Chain, IsExplainedAsARunLaunchesIt) {
  const std::string page = (scratch / "page.html").string();
  const CommandResult result = run_cermet("explain " + file + " -o " + page + " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json data = result.json(), graph = data["graphs"][0];
  ASSERT_EQ(data["graphs"].size(), 1u);
  for (const char* side : {"before", "after"}) {
    const nlohmann::json plan = graph[side];
    EXPECT_EQ(plan["launches"], launches_of(file, plan["mode"])) << side;
    EXPECT_EQ(plan["blocks"].size(), plan["launches"].get<std::size_t>() + plan["views"].get<std::size_t>());
    std::size_t operators = 0;
    for (const auto& block : plan["blocks"]) operators += block["ops"].size();
    EXPECT_EQ(operators, plan["nodes"]);
    for (const auto& edge : plan["edges"]) {
      EXPECT_LT(edge["from"], edge["to"]);
      EXPECT_LT(edge["to"], plan["blocks"].size());
      EXPECT_LT(edge["reason"], plan["reasons"].size());
    }
  }
  EXPECT_EQ(graph["before"]["mode"], "none");
  EXPECT_EQ(graph["after"]["mode"], "full");
  EXPECT_EQ(graph["before"]["launches"], 2);
  EXPECT_EQ(graph["after"]["launches"], 1);
  EXPECT_LT(graph["after"]["intermediate_bytes"], graph["before"]["intermediate_bytes"]);
  EXPECT_EQ(nlohmann::json::parse(data_text(content_of(page))), data) << "the page holds what --json prints";
}

TEST(Explain, ThePageNamesNoAddress) {
  const ScratchFolder scratch;
  ASSERT_EQ(run_cermet("explain " + sized_classifier + " -o " + (scratch / "page.html").string()).code, 0);
  const std::string page = content_of(scratch / "page.html");
  for (const char* word : {"http:", "https:", "//cdn", "src=", "@import", "url(h", "fetch(", "XMLHttpRequest", "<link"})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Explain, HostileNamesStayText) {
  const std::string hostile =
      "</script><script>alert(1)</script><!-- \"quoted\" 'single' \\ & \xe2\x80\xa8 "
      "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5 /*STYLE*/ /*SCRIPT*/";
  const cli::Json data{{"model", hostile}, {"graphs", cli::Json::array()}};
  const std::string page = cli::explain_page(data),
                    plain = cli::explain_page(cli::Json{{"model", "m"}, {"graphs", cli::Json::array()}});
  for (const char* tag : {"<script", "</script", "<!--"}) EXPECT_EQ(count_of(page, tag), count_of(plain, tag)) << tag;
  EXPECT_EQ(nlohmann::json::parse(data_text(page))["model"], hostile);
  EXPECT_EQ(data_text(page).find('<'), std::string::npos);
}

TEST(Explain, PrintsTextAndRefusesWhatItCannotDo) {
  const CommandResult text = run_cermet("explain " + sized_classifier + " --text --mode pattern");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"mode none", "mode pattern", "blocks", "intermediate bytes", "why they are not inside one"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  EXPECT_EQ(run_cermet("explain " + sized_classifier).out, run_cermet("explain " + sized_classifier + " --text").out)
      << "text by default";
  const ScratchFolder scratch;
  const std::string page = (scratch / "page.html").string();
  const CommandResult written = run_cermet("explain " + sized_classifier + " -o " + page);
  EXPECT_EQ(written.out, page + "\n");
  EXPECT_EQ(written.err, "");
  expect_mistake("explain " + sized_classifier + " --text --mode all",
                 {"--mode: expected none, pattern, published or full, found \"all\""});
  expect_mistake("explain " + sized_classifier + " --text --compare all",
                 {"--compare: expected none, pattern, published or full"});
  expect_mistake("explain " + tiny + " --text --measure",
                 {"--measure: expected an ONNX file with it, found a checkpoint's folder (" + tiny + ")"});
}

TEST_F(Chain, IsMeasuredWhereAsked) {
  const CommandResult result = run_cermet("explain " + file + " --measure --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json graph = result.json()["graphs"][0];
  for (const char* side : {"before", "after"}) {
    double sum = 0;
    for (const auto& block : graph[side]["blocks"]) {
      EXPECT_GT(block["measured"], 0);
      sum += block["measured"].get<double>();
    }
    EXPECT_DOUBLE_EQ(graph[side]["measured_seconds"], sum);
  }
}

TEST(Explain, ShowsTheGraphsOfACheckpoint) {
  const CommandResult result = run_cermet("explain " + tiny + " --json --device null");
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json graphs = result.json()["graphs"];
  ASSERT_GE(graphs.size(), 2u);
  EXPECT_EQ(graphs[0]["name"], "decode: 1 token");
  EXPECT_FALSE(graphs[0]["after"]["repeats"].empty()) << "layers are alike";
}

TEST(Explain, FindsLayersThatRepeat) {
  using cli::find_repeats;
  using cli::Repeat;
  EXPECT_EQ(find_repeats(std::vector<int>{}), std::vector<Repeat>());
  EXPECT_EQ(find_repeats(std::vector<int>{1, 2, 3, 4, 5, 6}), std::vector<Repeat>());
  EXPECT_EQ(find_repeats(std::vector<int>{9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8}), (std::vector<Repeat>{{1, 3, 3}}));
  EXPECT_EQ(find_repeats(std::vector<int>{1, 2, 1, 2}), std::vector<Repeat>()) << "two elements are not worth a fold";
  EXPECT_EQ(find_repeats(std::vector<int>{5, 5, 5, 5, 5, 5}), (std::vector<Repeat>{{0, 1, 6}}))
      << "the shortest that covers as much";
  EXPECT_EQ(find_repeats(std::vector<int>{1, 2, 3, 4, 1, 2, 3, 4, 7, 5, 6, 5, 6, 5, 6, 5}),
            (std::vector<Repeat>{{0, 4, 2}, {9, 2, 3}}))
      << "one on each side";
}

TEST_F(Chain, HostileNamesOfAFileStayText) {
  const std::string hostile = "</script><b>\"'&\xc3\xa4";
  const std::string page = (scratch / "page.html").string();
  ASSERT_EQ(run_cermet("explain " +
                       scratch.file("hostile.onnx", chain_file({"Sigmoid", "Neg"}, {"x", hostile, "y"})).string() +
                       " -o " + page)
                .code,
            0);
  EXPECT_EQ(data_text(content_of(page)).find('<'), std::string::npos);
  EXPECT_NO_THROW(nlohmann::json::parse(data_text(content_of(page))));
  EXPECT_EQ(count_of(content_of(page), "</script"), 2u);
}

TEST_F(Chain, BisectSaysThatNothingIsWrong) {
  const CommandResult result = run_cermet("bisect " + file + " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.json()["culprit"].is_null());
  EXPECT_EQ(result.json()["changes"], 1);
  const CommandResult text = run_cermet("bisect " + file);
  EXPECT_NE(text.out.find("none: every result is within 0.001"), std::string::npos) << text.out;
  expect_mistake("bisect " + sized_classifier + " --tolerance -1", {"--tolerance", "expected 0 to", "found -1"});
  expect_mistake("bisect " + sized_classifier + " --device null", {"--device", "expected one that computes"});
}

TEST_F(Chain, AllModesGiveTheSameResults) {
  ASSERT_EQ(run_cermet("run " + file + " --mode none --output " + (scratch / "none").string()).code, 0);
  for (const char* mode : {"pattern", "published", "full"}) {
    ASSERT_EQ(run_cermet("run " + file + " --mode " + mode + " --output " + (scratch / mode).string()).code, 0);
    EXPECT_EQ(content_of(scratch / mode / "y.npy"), content_of(scratch / "none" / "y.npy"));
  }
  ASSERT_EQ(run_cermet("compile " + file + " --mode none -o " + (scratch / "plan").string()).code, 0);
  const CommandResult plan = run_cermet("run " + (scratch / "plan").string() + " --json");
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(launches_in(plan.json()), launches_of(file, "none")) << "the plan keeps its mode";
  expect_mistake("run " + file + " --mode all", {"--mode", "none, pattern, published or full"});
}

}  // namespace
}  // namespace cermet::test

// A server's loop: prompts are submitted while others are answered, and every pass gives each running one a token.
#include <cermet/cermet.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main(int, char** arguments) {
  cermet_model_options sizes = cermet_model_defaults();
  sizes.max_sequences = 2;  // that run at a time; others wait for a place
  cermet::model model(arguments[1], sizes);
  cermet_generate_options options = cermet_generate_defaults();
  options.max_new_tokens = 8;

  cermet::batch batch(model);
  struct Answer {
    std::string prompt;
    std::vector<std::int32_t> ids;
  };
  std::map<std::int64_t, Answer> answers;
  for (const char* prompt : {"The server", "A tensor", "The cache"}) answers[batch.submit(model.tokenize(prompt), options)].prompt = prompt;
  for (std::size_t left = answers.size(); left > 0;) {
    left = batch.step();  // a new prompt may be submitted between any two steps
    for (auto request = answers.begin(); request != answers.end();) {
      const auto [ids, done, result] = batch.poll(request->first);
      auto& [prompt, answer] = request->second;
      answer.insert(answer.end(), ids.begin(), ids.end());
      if (done) std::printf("%s%s (%zu tokens)\n", prompt.c_str(), model.detokenize(answer).c_str(), result.new_tokens);
      request = done ? answers.erase(request) : std::next(request);
    }
  }
}

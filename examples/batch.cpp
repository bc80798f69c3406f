// A server's loop: prompts are submitted while others are answered, and every pass gives each running one a token.
#include <cermet/cermet.hpp>
#include <cstdio>
#include <map>
#include <string>

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  cermet_model_options sizes = cermet_model_defaults();
  sizes.max_sequences = 2;  // that run at a time; others wait for a place
  cermet::model model(arguments[1], sizes);
  cermet_generate_options options = cermet_generate_defaults();
  options.max_new_tokens = 8;

  cermet::batch batch(model);
  std::map<std::int64_t, std::string> answers;
  for (const char* prompt : {"The server", "A tensor", "The cache"})
    answers[batch.submit(model.tokenize(prompt), options)] = prompt;
  for (std::size_t left = answers.size(); left > 0;) {
    left = batch.step();  // a new prompt may be submitted between any two steps
    for (auto request = answers.begin(); request != answers.end();) {
      const auto [ids, text, done, result] = batch.poll(request->first);
      request->second += text;  // what a server would send
      if (done) std::printf("%s (%zu tokens)\n", request->second.c_str(), result.new_tokens);
      request = done ? answers.erase(request) : std::next(request);
    }
  }
}

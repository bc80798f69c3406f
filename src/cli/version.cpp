// cermet version: what --version prints.
#include "cermet/cermet.h"
#include "cli/verb.hpp"

namespace cermet::cli::version_verb {

Verb verb() {
  return {"version", "print the version", "  cermet version\n  cermet version --json", [](Parser&) -> Action {
            return [](Console& console) {
              if (console.json()) console.write_json({{"version", cermet_version()}});
              else console.print("cermet {}\n", cermet_version());
            };
          }};
}

}  // namespace cermet::cli::version_verb

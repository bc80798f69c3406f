#include "base/symbol.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

struct NameTable {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const std::string>, std::less<>> names;
};

/// Never destroyed: symbols of static storage may outlive any other static object.
NameTable& table() {
  static NameTable& names = *new NameTable;
  return names;
}

void release(const std::string* name) {
  {
    NameTable& t = table();
    const std::lock_guard lock(t.mutex);
    const auto at = t.names.find(*name);
    if (at != t.names.end() && at->second.expired()) t.names.erase(at);  // or somebody has made it again meanwhile
  }
  delete name;
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

}  // namespace

Symbol::Symbol(std::string_view name) {
  if (!is_identifier(name))
    fail(Status::invalid_argument, "symbol {}: expected a letter or underscore, then letters, digits and underscores",
         quote(name));
  NameTable& t = table();
  const std::lock_guard lock(t.mutex);
  const auto at = t.names.find(name);
  if (at != t.names.end()) name_ = at->second.lock();
  if (name_) return;
  name_ = std::shared_ptr<const std::string>(new std::string(name), release);
  t.names.insert_or_assign(*name_, name_);
}

std::size_t Symbol::kept() {
  NameTable& t = table();
  const std::lock_guard lock(t.mutex);
  return t.names.size();
}

}  // namespace cermet

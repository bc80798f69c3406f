// What the functions of ops.hpp share: each call's callable, kept by thread, handle and attributes.
#ifndef CERMET_SHORT_FORM_HPP_
#define CERMET_SHORT_FORM_HPP_

#include <cermet/cermet.hpp>

#include <algorithm>

namespace cermet {

/// Where a call runs, and where its results go.
struct call_options {
  /// The default handle, of the CPU, where it is null.
  const handle* on = nullptr;
  /// Memory for the results, on the handle's device; empty: new host memory, for handles of the CPU.
  std::vector<tensor> out = {};
  /// The handle's own where none is given: the call has ended when it returns.
  stream on_stream = {};
};

namespace face {

/// An attribute of each type, as the C interface has it. Refers to the value.
inline cermet_attribute value(const char* name, bool v) {
  return {name, CERMET_BOOL, v, 0, nullptr, nullptr, 0, nullptr, nullptr};
}
inline cermet_attribute value(const char* name, std::int64_t v) {
  return {name, CERMET_INT, v, 0, nullptr, nullptr, 0, nullptr, nullptr};
}
inline cermet_attribute value(const char* name, double v) {
  return {name, CERMET_FLOAT, 0, v, nullptr, nullptr, 0, nullptr, nullptr};
}
inline cermet_attribute value(const char* name, const std::string& v) {
  return {name, CERMET_STRING, 0, 0, v.c_str(), nullptr, 0, nullptr, nullptr};
}
inline cermet_attribute value(const char* name, const std::vector<std::int64_t>& v) {
  return {name, CERMET_INTS, 0, 0, nullptr, v.data(), v.size(), nullptr, nullptr};
}
inline cermet_attribute value(const char* name, const std::vector<double>& v) {
  return {name, CERMET_FLOATS, 0, 0, nullptr, nullptr, v.size(), v.data(), nullptr};
}
/// Strings as the C interface takes them.
struct texts {
  std::vector<const char*> list;
  explicit texts(const std::vector<std::string>& from) {
    for (const std::string& text : from) list.push_back(text.c_str());
  }
};
inline cermet_attribute value(const char* name, const texts& v) {
  return {name, CERMET_STRINGS, 0, 0, nullptr, nullptr, v.list.size(), nullptr, v.list.data()};
}

/// Result i; empty where there are fewer.
inline tensor result(const std::vector<tensor>& results, std::size_t i) {
  return i < results.size() ? results[i] : tensor();
}

/// The value of an attribute, kept: to tell whether another is the same to the bit.
class kept_value {
 public:
  explicit kept_value(const cermet_attribute& a)
      : integer_(a.integer), number_(a.number), string_(a.string ? a.string : "") {
    if (a.kind == CERMET_INTS) integers_.assign(a.integers, a.integers + a.count);
    if (a.kind == CERMET_FLOATS) numbers_.assign(a.numbers, a.numbers + a.count);
    if (a.kind == CERMET_STRINGS) strings_.assign(a.strings, a.strings + a.count);
  }
  bool is(const cermet_attribute& a) const {
    switch (a.kind) {
      case CERMET_BOOL:
      case CERMET_INT: return integer_ == a.integer;
      case CERMET_FLOAT: return std::memcmp(&number_, &a.number, sizeof number_) == 0;
      case CERMET_STRING: return string_ == a.string;
      case CERMET_INTS:
        return integers_.size() == a.count && std::equal(integers_.begin(), integers_.end(), a.integers);
      case CERMET_FLOATS:
        return numbers_.size() == a.count &&
               (a.count == 0 || std::memcmp(numbers_.data(), a.numbers, a.count * sizeof(double)) == 0);
      case CERMET_STRINGS: return strings_.size() == a.count && std::equal(strings_.begin(), strings_.end(), a.strings);
    }
    return false;
  }

 private:
  std::int64_t integer_;
  double number_;
  std::string string_;
  std::vector<std::int64_t> integers_;
  std::vector<double> numbers_;
  std::vector<std::string> strings_;
};

/// The callables of one operator: of the last calls' handles and attributes, latest first.
class short_form {
 public:
  explicit short_form(const char* name) : name_(name) {}

  /// Every result; those of `how`, where it has some.
  std::vector<tensor> operator()(call_arguments& operands, const cermet_attribute* attributes, std::size_t count,
                                 const call_options& how) {
    cermet_callable* const callable = find(how.on ? *how.on : default_handle(), operands, attributes, count);
    operands.add(how.on_stream);
    if (how.out.empty()) return operands.call(callable);
    operands.call_into(callable, out(how.out));
    return how.out;
  }

 private:
  static constexpr std::size_t most_kept = 16;
  struct kept {
    std::weak_ptr<cermet_handle> on;  // whose address is not used again while this is here
    std::vector<kept_value> attributes;
    callable made;
  };

  static bool is_same(const kept& entry, const std::shared_ptr<cermet_handle>& on, const cermet_attribute* attributes) {
    if (entry.on.owner_before(on) || on.owner_before(entry.on)) return false;
    for (std::size_t i = 0; i < entry.attributes.size(); ++i)
      if (!entry.attributes[i].is(attributes[i])) return false;
    return true;
  }
  cermet_callable* find(const handle& on, const call_arguments& operands, const cermet_attribute* attributes,
                        std::size_t count) {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (!is_same(kept_[i], on.shared(), attributes)) continue;
      if (i > 0)
        std::rotate(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(i),
                    kept_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return kept_.front().made.get();
    }
    std::vector<descriptor> samples;
    for (std::size_t i = 0; i < operands.inputs(); ++i) samples.emplace_back(operands.source(i));
    callable made(on, name_, samples, attributes, count);
    if (kept_.size() == most_kept) kept_.pop_back();
    kept_.insert(kept_.begin(),
                 kept{on.shared(), std::vector<kept_value>(attributes, attributes + count), std::move(made)});
    return kept_.front().made.get();
  }

  const char* name_;
  std::vector<kept> kept_;
};

}  // namespace face
}  // namespace cermet

#endif  // CERMET_SHORT_FORM_HPP_

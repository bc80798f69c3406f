// Cases of operators as calls of the C interface.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "cermet/cermet.h"
#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"

namespace cermet::test {

/// A view as DLPack has it; points into the view.
inline DLTensor dl(const TensorView& view) {
  std::uint8_t code = kDLInt;
  if (view.dtype == DType::bf16) code = kDLBfloat;
  else if (view.dtype == DType::boolean || (is_floating(view.dtype) && size_of(view.dtype) == 1)) code = kDLUInt;
  else if (is_floating(view.dtype)) code = kDLFloat;
  else if (name_of(view.dtype).front() == 'u') code = kDLUInt;
  const auto bits = static_cast<std::uint8_t>(8 * size_of(view.dtype));
  return {view.data,
          {kDLCPU, 0},
          view.shape.rank(),
          {code, bits, 1},
          const_cast<std::int64_t*>(view.shape.begin()),
          const_cast<std::int64_t*>(view.strides.begin()),
          0};
}

/// An attribute, to be passed on.
struct CaseAttribute {
  std::string name;
  AttributeValue value;
  mutable std::vector<const char*> texts = {};
  cermet_attribute get() const {
    cermet_attribute a{name.c_str(), CERMET_INT, 0, 0, nullptr, nullptr, 0, nullptr, nullptr};
    if (const auto* flag = std::get_if<bool>(&value)) a.kind = CERMET_BOOL, a.integer = *flag;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) a.integer = *integer;
    if (const auto* number = std::get_if<double>(&value)) a.kind = CERMET_FLOAT, a.number = *number;
    if (const auto* text = std::get_if<std::string>(&value)) a.kind = CERMET_STRING, a.string = text->c_str();
    if (const auto* list = std::get_if<cermet::Ints>(&value))
      a.kind = CERMET_INTS, a.integers = list->data(), a.count = list->size();
    if (const auto* list = std::get_if<cermet::Floats>(&value))
      a.kind = CERMET_FLOATS, a.numbers = list->data(), a.count = list->size();
    if (const auto* list = std::get_if<cermet::Strings>(&value)) {
      texts.clear();
      for (const std::string& text : *list) texts.push_back(text.c_str());
      a.kind = CERMET_STRINGS, a.strings = texts.data(), a.count = texts.size();
    }
    return a;
  }
};

/// The attributes of a problem; get() points into this object.
class CaseAttributes {
 public:
  explicit CaseAttributes(const Problem& problem) {
    for (const auto& [name, value] : problem.attributes) owned_.push_back({std::string(name), value});
    for (const CaseAttribute& a : owned_) list_.push_back(a.get());
  }
  std::span<const cermet_attribute> get() const { return list_; }

 private:
  std::vector<CaseAttribute> owned_;
  std::vector<cermet_attribute> list_;
};

/// A result of a call: its type, and the input that it shares, or -1.
struct CaseResult {
  DType dtype;
  Shape shape;
  int alias;
};

/// The tensors of a call: the inputs, with state that is updated in place in a copy, and zeroed results. Constants are
/// NULL.
class CaseTensors {
 public:
  CaseTensors(std::span<const TensorView> inputs, std::uint64_t constants, const std::vector<CaseResult>& results) {
    tensors_.reserve(inputs.size() + results.size());
    results_.reserve(results.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      tensors_.push_back(dl(inputs[i]));
      in.push_back(inputs[i].present && !(constants >> i & 1u) ? &tensors_.back() : nullptr);
    }
    for (const CaseResult& result : results) {
      const TensorView& view = results_.emplace_back(result.dtype, result.shape).view;
      if (view.elements() > 0) std::memset(view.data, 0, static_cast<std::size_t>(results_.back().memory.size()));
      tensors_.push_back(dl(view));
      out.push_back(&tensors_.back());
      if (result.alias < 0) continue;
      const TensorView& state = inputs[static_cast<std::size_t>(result.alias)];
      for (std::int64_t e = 0; e < state.elements(); ++e) copy_element(state, e, view, e);
      tensors_[static_cast<std::size_t>(result.alias)] = dl(view);
    }
  }
  CaseTensors(const CaseTensors&) = delete;
  CaseTensors& operator=(const CaseTensors&) = delete;
  std::vector<std::vector<std::byte>> bytes() const {
    std::vector<std::vector<std::byte>> list;
    for (const OwnedTensor& r : results_) list.emplace_back(r.memory.data(), r.memory.data() + r.memory.size());
    return list;
  }

  std::vector<const DLTensor*> in;
  std::vector<DLTensor*> out;

 private:
  std::vector<DLTensor> tensors_;
  std::vector<OwnedTensor> results_;
};

}  // namespace cermet::test

#include "comm/check.hpp"

#include <deque>
#include <random>

#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"

namespace cermet::comm {
namespace {

/// A stacked case with its reference, and one rank's share of both.
class RankCase {
 public:
  RankCase(Collective kind, const OpDefinition& op, const Case& stacked, int rank)
      : kind_(kind), data_(make_case_data(op, stacked)), expected_(run_reference(data_)), rank_(rank) {
    const auto ranks = static_cast<int>(data_.problem.size(0, 0));
    own_x_ = slice(data_.inputs[0]);
    std::vector<std::optional<TensorType>> types{own_x_.type()};
    if (data_.problem.has(1)) types.push_back(data_.inputs[1].type());
    Attributes attributes = stacked.attributes;
    attributes.set("ranks", ranks);
    own_ = make_problem(op, types, attributes);
  }

  /// "" or what is wrong. Results have `padding` elements between their rows, or the operand's memory.
  std::string run(Communicator& communicator, std::int64_t padding, bool in_place) const {
    CollectiveCall call = described();
    call.x = own_x_;
    OwnedTensor memory;
    call.y = own_result(memory, padding);
    if (in_place) {
      for (std::int64_t i = 0; i < own_x_.elements(); ++i) copy_element(own_x_, i, call.y, i);
      call.x = call.y;
    }
    communicator.run(call);
    return compare(own_, own_expected(), {call.y});
  }

  /// The same on a device; as a graph that is captured and replayed, too.
  std::string run_on_device(Communicator& communicator, Device& device, Stream& stream, bool captured) const {
    OwnedTensor x(own_x_.dtype, own_x_.shape), y(own_.outputs[0].dtype, bind(own_.outputs[0].dims, {}));
    for (std::int64_t i = 0; i < own_x_.elements(); ++i) copy_element(own_x_, i, x.view, i);
    const DeviceBuffer of_x = device.allocate(x.memory.size()), of_y = device.allocate(y.memory.size());
    CollectiveCall call = described();
    call.x = {of_x.data(), x.view.dtype, x.view.shape};
    call.y = {of_y.data(), y.view.dtype, y.view.shape};
    stream.upload(of_x.data(), x.memory.data(), x.memory.size());
    std::unique_ptr<CapturedGraph> graph;
    communicator
        .barrier();  // memory of the last case is freed, which may wait for what runs on a device that ranks share
    if (captured) {
      stream.begin_capture();
      communicator.run(call, &stream);
      graph = stream.end_capture();
    }
    stream.fill(of_y.data(), 0xa5, of_y.size());
    graph ? stream.replay(*graph) : communicator.run(call, &stream);
    communicator.barrier();
    stream.download(y.memory.data(), of_y.data(), y.memory.size());
    stream.synchronize();
    return compare(own_, own_expected(), {y.view});
  }

  /// What run_on_device() calls, at addresses that are no memory.
  CollectiveCall call_on_device() const {
    CollectiveCall call = described();
    call.x = {nullptr, own_x_.dtype, own_x_.shape};
    call.y = {reinterpret_cast<void*>(std::uintptr_t{1} << 40), own_.outputs[0].dtype, bind(own_.outputs[0].dims, {})};
    return call;
  }

  bool has_counts() const { return data_.problem.has(1); }
  /// Whether communicators on devices take it; an engine of ours all.
  bool is_for_devices(std::string_view engine) const {
    if (!has_reduction(kind_) || engine == "peer") return true;
    const std::string& reduction = own_.attributes.text("reduction");
    // NCCL's maximum of a NaN is the other operand; it sums integers without clamping.
    return is_integer(own_x_.dtype) ? reduction == "max" || reduction == "min" : !has_nan();
  }

 private:
  CollectiveCall described() const {
    CollectiveCall call;
    call.kind = kind_;
    if (has_reduction(kind_)) call.reduction = reduction_from_name(own_.attributes.text("reduction"));
    if (has_root(kind_)) call.root = static_cast<int>(own_.attributes.integer("root"));
    if (data_.problem.has(1)) call.counts = data_.inputs[1];
    return call;
  }

  bool has_nan() const {
    const TensorView& x = data_.inputs[0];
    for (std::int64_t i = 0; i < x.elements(); ++i)
      if (std::isnan(load(x, i))) return true;
    return false;
  }

  TensorView slice(const TensorView& stacked) const {
    TensorView view(stacked.as<std::byte>() + rank_ * stacked.strides[0] * byte_size(stacked.dtype), stacked.dtype, {},
                    {});
    for (int a = 1; a < stacked.shape.rank(); ++a) {
      view.shape.push_back(stacked.shape[a]);
      view.strides.push_back(stacked.strides[a]);
    }
    return view;
  }

  TensorView own_result(OwnedTensor& memory, std::int64_t padding) const {
    const Shape shape = bind(own_.outputs[0].dims, {});
    Shape padded = shape;
    if (shape.rank() > 1) padded[shape.rank() - 1] += padding;
    memory = OwnedTensor(own_.outputs[0].dtype, padded);
    std::memset(memory.memory.data(), 0xa5, static_cast<std::size_t>(memory.memory.size()));
    return {memory.memory.data(), own_.outputs[0].dtype, shape, memory.view.strides};
  }

  Expected own_expected() const {
    const TensorView& stacked = expected_.outputs[0].view;
    const std::int64_t count = stacked.shape[0] > 0 ? stacked.elements() / stacked.shape[0] : 0;
    Expected own;
    own.outputs.emplace_back(stacked.dtype, bind(own_.outputs[0].dims, {}));
    std::vector<double>& magnitude = own.magnitude.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) {
      copy_element(stacked, rank_ * count + i, own.outputs[0].view, i);
      magnitude.push_back(expected_.magnitude[0][static_cast<std::size_t>(rank_ * count + i)]);
    }
    return own;
  }

  Collective kind_;
  CaseData data_;
  Expected expected_;
  int rank_;
  TensorView own_x_;
  Problem own_;
};

/// Row counts for each pair of ranks, of which no rank sends or receives more than `rows`: the same on every rank.
std::vector<double> random_counts(int ranks, int rows, std::mt19937_64& random) {
  std::vector<double> counts(static_cast<std::size_t>(ranks * ranks), 0);
  std::vector<int> sent(static_cast<std::size_t>(ranks), 0), received = sent;
  for (int tries = 0; tries < ranks * rows; ++tries) {
    const auto from = random() % static_cast<unsigned>(ranks), to = random() % static_cast<unsigned>(ranks);
    if (sent[from] == rows || received[to] == rows) continue;
    ++sent[from];
    ++received[to];
    ++counts[from * static_cast<unsigned>(ranks) + to];
  }
  return counts;
}

/// The operator's cases with as many ranks as there are; each has its name, so that every rank makes the same.
std::vector<Case> cases_for(Collective kind, const OpDefinition& op, int ranks) {
  std::vector<Case> list;
  for (Case one : op.cases()) {
    Dims& dims = one.inputs[0]->type.dims;
    const AttributeValue* own = one.attributes.find("ranks");
    if (own || one.inputs.size() > 1 || (cuts_operand(kind) && dims.size() < 2)) continue;
    if (cuts_operand(kind)) dims[1] = dims[1] * ranks;
    dims[0] = ranks;
    if (has_root(kind)) one.attributes.set("root", ranks - 1);
    one.name = fmt::format("{}_of_{}", one.name, ranks);
    list.push_back(std::move(one));
  }
  Attributes attributes;
  if (has_root(kind)) attributes.set("root", ranks / 2);
  for (const std::int64_t rows : {1, 1100, 45000}) {  // fewer than a cache line, one window, several
    const TensorType type{DType::bf16, {ranks, cuts_operand(kind) ? (rows + ranks - 1) / ranks * ranks : rows, 3}};
    list.push_back({fmt::format("rows{}_of_{}", rows, ranks), {CaseOperand{type, normal()}}, attributes});
  }
  if (kind != Collective::all_to_all) return list;
  std::mt19937_64 random(7);
  const auto add_uneven = [&](std::string name, DType dtype, int rows, std::int64_t columns,
                              std::vector<double> counts) {
    const CaseOperand x{
        {dtype, {ranks, rows, columns}}, is_integer(dtype) ? integers(-128, 127) : normal(), rows == 9 ? 3 : 0};
    list.push_back({fmt::format("uneven_{}_of_{}", name, ranks),
                    {x, CaseOperand{{DType::i32, {ranks, ranks}}, values(std::move(counts))}},
                    {}});
  };
  for (const int rows : {1, 9, 14000})
    add_uneven(fmt::format("f32_{}", rows), DType::f32, rows, 5, random_counts(ranks, rows, random));
  for (const DType dtype : {DType::f16, DType::bf16, DType::i32, DType::i8})
    add_uneven(std::string(name_of(dtype)), dtype, 300, 64, random_counts(ranks, 300, random));
  add_uneven("nothing", DType::f32, 5, 4, std::vector<double>(static_cast<std::size_t>(ranks * ranks)));
  std::vector<double> to_last(static_cast<std::size_t>(ranks * ranks)),
      apart = to_last;  // one rank gets all; none sends others anything
  for (int r = 0; r < ranks; ++r)
    to_last[static_cast<std::size_t>(r * ranks + ranks - 1)] = r,
                                                         apart[static_cast<std::size_t>(r * ranks + r)] = 7 + r;
  add_uneven("to_last", DType::bf16, ranks * ranks, 33, to_last);
  add_uneven("apart", DType::i8, 7 + ranks, 3, apart);
  return list;
}

/// Compiled one after the other, programs of all types take most of the time.
void prepare_cases(Communicator& communicator) {
  std::deque<RankCase> cases;  // whose counts the calls read
  std::vector<CollectiveCall> calls;
  for (int k = 0; k <= static_cast<int>(Collective::all_to_all); ++k) {
    const auto kind = static_cast<Collective>(k);
    const OpDefinition& op = *find_operator(name_of(kind));
    for (const Case& one : cases_for(kind, op, communicator.size()))
      if (const RankCase& made = cases.emplace_back(kind, op, one, communicator.rank());
          made.is_for_devices(communicator.engine()))
        calls.push_back(made.call_on_device());
  }
  communicator.prepare(calls);
}

}  // namespace

CheckReport check_communicator(Communicator& communicator, Device* device, Stream* stream) {
  if (communicator.on_device()) prepare_cases(communicator);
  CheckReport report;
  const auto note = [&](const std::string& wrong, Collective kind, const Case& one, std::string_view how) {
    ++report.calls;
    if (!wrong.empty() && report.wrong.empty())
      report.wrong =
          fmt::format("rank {}: {}, case {}{}: {}", communicator.rank(), name_of(kind), one.name, how, wrong);
  };
  for (int k = 0; k <= static_cast<int>(Collective::all_to_all); ++k) {
    const auto kind = static_cast<Collective>(k);
    const OpDefinition& op = *find_operator(name_of(kind));
    const bool may_coincide =
        kind == Collective::all_reduce || kind == Collective::reduce_to || kind == Collective::broadcast_from;
    for (const Case& one : cases_for(kind, op, communicator.size())) {
      const RankCase rank_case(kind, op, one, communicator.rank());
      if (communicator.on_device()) {
        for (const bool captured : {false, true})
          if (rank_case.is_for_devices(communicator.engine()) && !(captured && rank_case.has_counts()))
            note(rank_case.run_on_device(communicator, *device, *stream, captured), kind, one,
                 captured ? ", captured" : "");
        continue;
      }
      for (const auto& [padding, in_place] : {std::pair(0, false), std::pair(3, false), std::pair(0, true)})
        if (!in_place || may_coincide)
          note(rank_case.run(communicator, padding, in_place), kind, one, in_place ? ", in place" : "");
    }
  }
  return report;
}

}  // namespace cermet::comm

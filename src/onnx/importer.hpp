// Turns a model into graphs, part by part: a part ends where elements must be read before the rest is known (a
// data-dependent shape, a branch).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"
#include "onnx/lowering.hpp"
#include "onnx/sizes.hpp"

namespace cermet::onnx {

/// A value of the model while it is imported.
struct Slot {
  std::string name;
  TensorType type;
  std::optional<TensorData> data;  ///< elements, where known
  std::optional<Dims>
      symbolic;  ///< elements some of which depend on sizes; of floating types, too, where whole numbers are exact
  const Tensor* tensor = nullptr;  ///< of the file: a weight, whose elements are read when they are needed
  std::shared_ptr<const ConstantExpression> expression =
      nullptr;    ///< of known slots: inputs are slots, not values of a graph
  int depth = 0;  ///< of expressions within the expression
  std::optional<QuantizedFrom> quantized_from = {};
  bool has_room = false;  ///< whether Lowering::make_room() was called for it
  int bits = 0;           ///< of integers that the file packs, which are held in 8
  Operand elements = {};  ///< of a value of more dimensions than a tensor may have: the same elements in fewer
  std::optional<Progression> counting = {};  ///< i64 [N] of a size that is not a number
  std::optional<Dim> undecided = {};  ///< the elements are computed only because sizes differ in the sign of this

  bool depends_on_sizes() const { return symbolic || counting; }
};

/// An application of an operator while a node is lowered, or a constant (no kind): taken again where the lowering
/// starts anew after elements were read.
struct Applied {
  std::optional<OpKind> kind;
  std::vector<Operand> inputs;
  Attributes attributes;
  std::vector<Operand> results;
};

/// A list of nodes that is being imported: the model's, a branch's, a loop body's, a function's.
struct Frame {
  const std::vector<Node>* nodes = nullptr;
  const std::map<std::string, std::int64_t>* opsets = nullptr;
  std::size_t next = 0;
  std::unordered_map<std::string, Operand> names;
  bool sees_outer = true;            ///< names of the frame below: not in a function
  std::vector<std::string> results;  ///< names in this frame
  const Node* caller = nullptr;      ///< node of the frame below whose results these are
  struct Loop {
    const GraphDef* body = nullptr;
    std::int64_t iteration = 0;
    std::optional<std::int64_t> trips;
    std::size_t carried = 0;
    bool is_scan = false;          ///< Scan; else Loop
    std::int64_t sequences = 0;    ///< of a Scan before opset 9, which scans them one after another; 0 for other loops
    std::vector<Operand> initial;  ///< of such a Scan: the states of all sequences
    std::vector<std::vector<Operand>> finals;   ///< of such a Scan: by state, of the sequences that are done
    std::vector<std::vector<Operand>> stacked;  ///< by scan result: its pieces
    std::vector<Operand> scan_inputs;
    Ints input_axes, output_axes, input_directions, output_directions;
  };
  std::shared_ptr<Loop> loop = nullptr;
  std::shared_ptr<const std::vector<Node>> own_nodes =
      nullptr;  ///< of a function's call or in it, whose attributes are in them
};

/// Where an import stands. A copy goes on from there with other elements.
struct ImportState {
  std::deque<Slot> slots;  ///< references to one stay good while others are added
  std::vector<Frame> frames;
  std::vector<Applied> applied;  ///< by the node that comes next, before elements were needed
  std::int64_t spent = 0;        ///< nodes and operators, with all iterations and calls
  std::int64_t made_bytes = 0;   ///< of constants that are computed of others
  std::uint64_t draws = 0;       ///< of random numbers
  double evaluated = 0;          ///< elements and operations of what was computed while importing
  double given_bytes = 0;        ///< of the file's tensors and the model's inputs, at most
};

/// What the import of a part ended with.
struct Part {
  Graph graph;
  std::vector<std::pair<std::int32_t, std::string>> inputs;   ///< slot and the graph's name of it
  std::vector<std::pair<std::int32_t, std::string>> outputs;  ///< slots that later parts read, and those to read now
  std::vector<std::pair<std::string, SizeTensor>> sizes;  ///< the graph's names of inputs that follow from the sizes
  std::vector<std::int32_t> reads;  ///< slots whose elements must be known; none: the model is complete
  std::vector<Operand> results;     ///< of a complete model, in its order
  ImportState state;
};

/// Thrown by a lowering.
struct NeedsElements {
  Operand operand;
};
/// A size that must be a number is a symbol: the model is to be imported for the sizes of each run.
struct NeedsSizes {
  std::string why;
  std::optional<Dim> sign_of = {};  ///< where given, it is enough that this one's sign is the same for all sizes
};

/// What a graph's constants are loaded from: tensors of the file by their name there.
class WeightTable {
 public:
  /// A name that no other tensor has.
  const std::string& name_of(const Tensor& tensor);
  const Tensor* find(const std::string& name) const;

 private:
  std::unordered_map<const Tensor*, std::string> names_;
  std::unordered_map<std::string, const Tensor*> tensors_;
};

/// Where a model's import begins: its inputs have these types, in the model's order; after them those that are given in
/// place of their initializers.
ImportState begin_import(const Model& model, const std::vector<TensorType>& inputs,
                         const std::vector<std::string>& overridden = {});

class Importer {
 public:
  Importer(const Model& model, WeightTable& weights, const SymbolRanges& ranges, ImportState state);
  /// Imports until the model is complete or elements are needed. Throws Error naming the node; NeedsSizes.
  Part run();

  // ---- For Lowering
  ImportState& state() { return state_; }
  Slot& slot(Operand x) { return state_.slots.at(static_cast<std::size_t>(x.slot)); }
  const Model& model() const { return model_; }
  Operand find(const std::string& name) const;
  void bind(const std::string& name, Operand value);
  Operand add(Slot slot);
  Operand add_constant(TensorData data);
  Operand add_tensor(const Tensor& tensor);  ///< of the file
  /// Elements of an operand: reads weights and evaluates expressions. Throws NeedsElements.
  const TensorData& known(Operand x);
  bool is_known(Operand x) const;
  /// Whether this part of the graph has the value without asking earlier parts for it.
  bool is_here(Operand x) const { return is_known(x) || ids_.contains(x.slot); }
  /// A value of more dimensions than a tensor may have, by what has its elements.
  Operand add_view(const Dims& dims, Operand elements);
  std::vector<Operand> apply(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes,
                             const std::string& scope);
  /// Lowers the nodes of a graph as part of the node that has it.
  std::vector<Operand> in_place(const GraphDef& graph, const std::vector<Operand>& inputs);
  const SymbolRanges& ranges() const { return ranges_; }
  /// Counts elements and operations that are about to be computed one by one. Throws Error where no model would want so
  /// many.
  void evaluate_work(double work);

 private:
  void step();
  void lower(const Node& node);
  bool control_flow(const Node& node);
  void finish_frame();
  void enter(Frame frame);
  Operand operand(const Node& node, std::size_t i) const;
  Operand frame_result(std::size_t i) const;
  bool is_true(const Node& node, Operand condition);
  void spend();
  void make_room(const TensorType& type);
  double work_left() const;
  void check_result(const TensorType& type) const;
  void check_sizes(const TensorType& type) const;
  void enter_branch(const Node& node);
  void enter_loop(const Node& node);
  void enter_scan(const Node& node);
  void begin_iteration(const std::vector<Operand>& carried, Operand condition);
  bool next_iteration();
  Frame frame_of(const Node& node, const std::shared_ptr<Frame::Loop>& loop) const;
  std::optional<std::vector<TensorType>> types_of_trial(const Frame& frame, const std::vector<Operand>& carried,
                                                        bool is_number_known);
  void bind_without_iteration(const Node& node, const Frame& frame, const std::vector<Operand>& carried);
  std::shared_ptr<const std::vector<Node>> with_references(const std::vector<Node>& nodes,
                                                           const Node* call = nullptr) const;
  void finish_loop();
  void enter_function(const Node& node, const FunctionDef& function);
  ValueId value(Operand x);
  ValueId size_input(const Slot& slot);
  std::string here() const;
  std::string reads_elements(Operand x) const;
  std::vector<Operand> emit(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes,
                            const std::string& scope);
  void note_undecided(const std::vector<Operand>& inputs, const std::vector<Operand>& results);
  void check_broadcast(const std::vector<Operand>& inputs, OpKind kind) const;
  std::optional<std::vector<Operand>> fold(OpKind kind, const std::vector<Operand>& inputs,
                                           const Attributes& attributes);
  void tell_sizes();
  Part end_part(std::vector<std::int32_t> reads);
  std::vector<bool> live_slots();

  const Model& model_;
  WeightTable& weights_;
  const SymbolRanges& ranges_;
  SymbolValues greatest_;
  ImportState state_;
  Graph graph_;
  std::unordered_map<std::int32_t, ValueId> ids_;  ///< slots that the graph has
  std::vector<std::pair<std::int32_t, std::string>> inputs_;
  std::vector<std::pair<std::string, SizeTensor>> sizes_;
  const Node* current_ = nullptr;  ///< what is being lowered
  std::optional<Dim> undecided_;   ///< by the operator that is applied
  std::size_t replayed_ = 0;       ///< of state_.applied
};

/// What a slot's elements are for each run's sizes; nothing where they do not depend on them.
std::optional<SizeTensor> size_tensor(const Slot& slot);

/// Integer arithmetic on elements that depend on sizes: the results, or nothing where the operator has none here.
/// `undecided` becomes what sizes differ in the sign of where that is the reason.
std::optional<std::vector<std::pair<TensorType, Dims>>> shape_arithmetic(
    OpKind kind, const std::vector<std::pair<TensorType, Dims>>& operands, const Attributes& attributes,
    const SymbolRanges& ranges, std::optional<Dim>& undecided);

}  // namespace cermet::onnx

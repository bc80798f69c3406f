// Which part of a model each rank holds, and that it reads that part and no other.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "io/json_value.hpp"
#include "model/linear_modules.hpp"
#include "model/parallel/module_parts.hpp"
#include "model/parallel/shard_reader.hpp"
#include "tests/model/blocks.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

std::vector<std::byte> bytes_of(const TensorReader& reader, const std::string& name) {
  const StoredTensor* tensor = reader.find(name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor->bytes()));
  reader.read(*tensor, 0, bytes);
  return bytes;
}

/// One matrix of consecutive bytes, so that a byte says where it was stored.
class OneMatrix {
 public:
  OneMatrix(std::string name, std::int64_t rows, std::int64_t columns) {
    tensor_ = {std::move(name), DType::i8, {rows, columns}, 0, rows * columns};
    bytes_.resize(static_cast<std::size_t>(tensor_.bytes()));
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(1 + i % 251);
  }
  TensorReader reader() const {
    return {[this](std::string_view name) { return name == tensor_.name ? &tensor_ : nullptr; },
            [this](const StoredTensor&, std::int64_t offset, std::span<std::byte> to) {
              ASSERT_LE(offset + static_cast<std::int64_t>(to.size()), tensor_.bytes());
              std::memcpy(to.data(), bytes_.data() + offset, to.size());
              read += static_cast<std::int64_t>(to.size());
            }};
  }
  const StoredTensor& tensor() const { return tensor_; }
  std::byte at(std::int64_t row, std::int64_t column) const {
    return bytes_[static_cast<std::size_t>(row * tensor_.shape[1] + column)];
  }
  mutable std::int64_t read = 0;

 private:
  StoredTensor tensor_;
  std::vector<std::byte> bytes_;
};

/// A model of 6 heads, 2 of keys, with an inner dimension of 160; other fields than those take the place of its own.
ModelConfig small(std::initializer_list<std::pair<const char*, std::int64_t>> fields = {},
                  const std::filesystem::path& model = small_model) {
  const test::ScratchFolder scratch;
  JsonValue json = *JsonValue::parse(test::content_of(model / "config.json"));
  for (const auto& [key, value] : fields) json[key] = value;
  return load_config_file(scratch.file("config.json", json.dump()));
}

TEST(ModelShard, EveryElementIsHeldOnceAndTheRestIsZero) {
  const ModelConfig config = small();
  for (const std::int64_t ranks : {1, 2, 3, 4, 5, 8}) {
    for (const LinearModule& module : linear_modules(config)) {
      if (module.name.ends_with("k_proj") || module.name.ends_with("v_proj"))
        continue;  // heads that several ranks hold
      const OneMatrix matrix(module.name + ".weight", module.rows, module.columns);
      std::vector<int> held(static_cast<std::size_t>(module.rows * module.columns));
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const TensorPart part = module_parts(config.decoder, {rank, ranks}).at(module.name);
        const TensorReader reader = sharded_reader(matrix.reader(), config.decoder, {rank, ranks});
        const StoredTensor& local = *reader.find(matrix.tensor().name);
        const std::vector<std::byte> bytes = bytes_of(reader, matrix.tensor().name);
        std::int64_t at = 0;
        for (const TensorPart::Segment& segment : part.segments)
          for (std::int64_t i = 0; i < segment.count; ++i, ++at)
            for (std::int64_t other = 0; other < local.shape[part.axis == 0 ? 1 : 0]; ++other) {
              const std::int64_t row = part.axis == 0 ? at : other, column = part.axis == 0 ? other : at;
              const std::byte found = bytes[static_cast<std::size_t>(row * local.shape[1] + column)];
              if (segment.begin < 0) {
                ASSERT_EQ(found, std::byte{}) << module.name << " rank " << rank << " of " << ranks;
                continue;
              }
              const std::int64_t from = segment.begin + i, whole_row = part.axis == 0 ? from : row,
                                 whole_column = part.axis == 0 ? column : from;
              ASSERT_EQ(found, matrix.at(whole_row, whole_column))
                  << module.name << " rank " << rank << " of " << ranks;
              ++held[static_cast<std::size_t>(whole_row * module.columns + whole_column)];
            }
      }
      EXPECT_EQ(matrix.read, module.rows * module.columns) << module.name << ": bytes read by " << ranks;
      EXPECT_TRUE(std::ranges::all_of(held, [](int count) { return count == 1; })) << module.name << " over " << ranks;
    }
  }
}

TEST(ModelShard, HeadsOfQueriesMeetTheirHeadsOfKeys) {
  for (const auto& [heads, kv_heads] : {std::pair{6, 2}, {6, 6}, {8, 2}, {8, 4}, {6, 1}}) {
    const ModelConfig config =
        small({{"num_attention_heads", heads}, {"num_key_value_heads", kv_heads}, {"head_dim", 16}});
    for (const std::int64_t ranks : {2, 3, 4, 8}) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const DecoderModel part = sharded(config.decoder, {rank, ranks});
        const Attention& own = test::attention_of(part);
        const auto parts = module_parts(config.decoder, {rank, ranks});
        const TensorPart &q = parts.at("model.layers.0.self_attn.q_proj"),
                         &k = parts.at("model.layers.0.self_attn.k_proj");
        ASSERT_EQ(q.count(), own.heads * own.head_dim);
        ASSERT_EQ(k.count(), own.kv_heads * own.head_dim);
        for (std::int64_t head = 0; head < own.heads; ++head) {
          const std::int64_t query = rank * own.heads + head;
          if (query >= heads) continue;
          const std::int64_t key =
              k.segments.at(static_cast<std::size_t>(head / (own.heads / own.kv_heads))).begin / config.head_dim;
          EXPECT_EQ(key, query / (heads / kv_heads))
              << heads << "/" << kv_heads << " over " << ranks << ": head " << query;
        }
      }
    }
  }
}

TEST(ModelShard, SizesThatDivideAreNotPadded) {
  const DecoderModel whole = small().decoder, half = sharded(whole, {1, 2});
  EXPECT_EQ(test::attention_of(half).heads, 3);
  EXPECT_EQ(test::attention_of(half).kv_heads, 1);
  EXPECT_EQ(test::feed_forward_of(half).down.columns, 80);
  EXPECT_EQ(half.embedding.columns, whole.embedding.columns);
  EXPECT_EQ(half.embedding.rows, 160);
  EXPECT_EQ(test::attention_of(sharded(whole, {0, 1})).kv_heads, test::attention_of(whole).kv_heads);
}

TEST(ModelShard, PackedColumnsThatCannotBeCutAreRefusedByName) {
  const ModelConfig config = small({{"head_dim", 6}});
  Quantization quantization;
  quantization.packed.insert("model.layers.0.self_attn.o_proj");
  test::expect_error(Status::unsupported, {"model.layers.0.self_attn.o_proj", "multiple of 4", "found 18"}, [&] {
    check_shard(config, quantization, {0, 2});
  });
  check_shard(config, quantization, {0, 3});
}

TEST(ModelShard, PackedColumnsArePaddedToWholeWords) {
  const ModelConfig config = small({{"intermediate_size", 78}});  // 20 words, the last of which is half full
  Quantization quantization;
  quantization.packed.insert("model.layers.0.mlp.down_proj");
  check_shard(config, quantization, {0, 3});
  const std::string name = "model.layers.0.mlp.down_proj.weight_packed";
  const StoredTensor stored{name, DType::i32, {2, 20}, 0, 160};
  std::vector<std::byte> bytes(160);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const TensorReader whole{[&](std::string_view asked) { return asked == name ? &stored : nullptr; },
                           [&](const StoredTensor&, std::int64_t offset, std::span<std::byte> to) {
                             std::memcpy(to.data(), bytes.data() + offset, to.size());
                           }};
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const std::vector<std::byte> own = bytes_of(sharded_reader(whole, config.decoder, {rank, 3}), name);
    ASSERT_EQ(own.size(), 2u * 28) << "a third is 26 columns";
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::size_t column = static_cast<std::size_t>(rank) * 28 + i % 28;
      EXPECT_EQ(own[i], column < 80 ? bytes[i / 28 * 80 + column] : std::byte{0x80})
          << "rank " << rank << " byte " << i;
    }
  }
}

TEST(ModelShard, EveryExpertIsOfOneRankOrOfThoseThatShareIt) {
  for (const std::int64_t experts : {5, 8, 16}) {
    const ModelConfig config = small({{"num_local_experts", experts}}, small_mixture);
    const Mixture& mixture = test::mixture_of(config.decoder);
    for (const auto& [tensor, ranks] : {std::pair(1, 2), {1, 3}, {1, 5}, {4, 2}, {4, 4}, {6, 3}}) {
      std::vector<std::int64_t> held(static_cast<std::size_t>(experts));  // elements of the inner dimension
      for (std::int64_t rank = 0; rank < std::max(tensor, ranks); ++rank) {
        const ModelShard shard = ModelShard::of(rank, tensor, ranks);
        const DecoderModel part = sharded(config.decoder, shard);
        const Mixture& own = test::mixture_of(part);
        EXPECT_GE(own.count, 1);
        const auto parts = module_parts(config.decoder, shard);
        for (std::int64_t e = own.first; e < own.first + own.count; ++e)
          for (const TensorPart::Segment& segment : parts.at(mixture.expert(e).down.name).segments)
            if (segment.begin >= 0) held[static_cast<std::size_t>(e)] += segment.count;
      }
      EXPECT_EQ(held, std::vector(held.size(), config.expert_intermediate_size))
          << experts << " experts, " << tensor << " x " << ranks;
    }
  }
}

TEST(ModelShard, ExpertsThatCannotBeSpreadAreRefused) {
  test::expect_error(Status::unsupported, {"expert_parallel: expected a divisor of the 4 ranks", "found 3"},
                     [] { ModelShard::of(0, 4, 3); });
  test::expect_error(Status::invalid_argument, {"expert parallel: expected a mixture", "LlamaForCausalLM"},
                     [] { check_shard(small(), {}, ModelShard::of(0, 1, 2)); });
  test::expect_error(Status::invalid_argument, {"at most a rank for each of 16 experts, found 17 ranks"},
                     [] { check_shard(load_config(small_mixture), {}, ModelShard::of(0, 1, 17)); });
}

TEST(ModelShard, ARankOutsideItsGroupIsRefused) {
  test::expect_error(Status::invalid_argument, {"rank 2 of 2"}, [] { check_shard(small(), {}, {2, 2}); });
}

}  // namespace
}  // namespace cermet

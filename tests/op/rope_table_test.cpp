// Rotary tables against values that transformers 5.17 computed (LlamaRotaryEmbedding, position 69, float32; the model
// cast to the named type first).
#include "op/rope_table.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cermet {
namespace {

struct Golden {
  const char* name;
  RopeParameters parameters;
  std::vector<float> inverse, cos, sin;  ///< [rotary_dim/2]
  float attention_scaling;
};

std::vector<Golden> golden() {
  return {
      {"plain",
       {.theta = 1e6, .rotary_dim = 16},
       {0x1p+0f, 0x1.6c310ep-3f, 0x1.030dc6p-5f, 0x1.708938p-8f, 0x1.0624dep-10f, 0x1.74eea6p-13f, 0x1.094564p-15f,
        0x1.796182p-18f},
       {0x1.fc9daap-1f, 0x1.e9b288p-1f, -0x1.25cd1ep-1f, 0x1.d9f056p-1f, 0x1.fec81cp-1f, 0x1.fff622p-1f, 0x1.ffffbp-1f,
        0x1.fffffep-1f},
       {-0x1.d6289ap-4f, -0x1.2aef42p-2f, 0x1.a35092p-1f, 0x1.836ec2p-2f, 0x1.1a665ap-4f, 0x1.920eb4p-7f,
        0x1.1dfec2p-9f, 0x1.96dd2p-12f},
       0x1p+0f},
      {"linear",
       {.scaling = RopeScaling::linear, .rotary_dim = 16, .factor = 2.5},
       {0x1.99999ap-2f, 0x1.030dc4p-3f, 0x1.47ae14p-5f, 0x1.9e7c7p-7f, 0x1.0624dcp-8f, 0x1.4b96cp-10f, 0x1.a36e3p-12f,
        0x1.094566p-13f},
       {-0x1.8fef64p-1f, -0x1.889f5ep-1f, -0x1.db2c58p-1f, 0x1.490fp-1f, 0x1.ec9f58p-1f, 0x1.fe0d16p-1f, 0x1.ffce14p-1f,
        0x1.fffb02p-1f},
       {0x1.3fae52p-1f, 0x1.489ee4p-1f, 0x1.7d562ep-2f, 0x1.88416ep-1f, 0x1.170ca8p-2f, 0x1.650a62p-4f, 0x1.c4241ap-6f,
        0x1.1dfde4p-7f},
       0x1p+0f},
      {"llama3",
       {.scaling = RopeScaling::llama3,
        .theta = 5e5,
        .rotary_dim = 32,
        .factor = 8,
        .original_max_position_embeddings = 64},
       {0x1p+0f, 0x1.c2ef78p-2f, 0x1.453c18p-4f, 0x1.5dc95ap-7f, 0x1.34119p-8f, 0x1.0f5386p-9f, 0x1.ddee9ep-11f,
        0x1.a4ee4p-12f, 0x1.72ba42p-13f, 0x1.46831ap-14f, 0x1.1f91fp-15f, 0x1.fa8b86p-17f, 0x1.be2188p-18f,
        0x1.88ec2p-19f, 0x1.5a0f4ep-20f, 0x1.30c94ep-21f},
       {0x1.fc9daap-1f, 0x1.074facp-1f, 0x1.631a48p-1f, 0x1.7b48e2p-1f, 0x1.e54d92p-1f, 0x1.fac93ep-1f, 0x1.fefccep-1f,
        0x1.ffcdb8p-1f, 0x1.fff64p-1f, 0x1.fffe1cp-1f, 0x1.ffffa2p-1f, 0x1.ffffeep-1f, 0x1.fffffcp-1f, 0x1p+0f, 0x1p+0f,
        0x1p+0f},
       {-0x1.d6289ap-4f, -0x1.b71a4cp-1f, -0x1.70d822p-1f, 0x1.57eddp-1f, 0x1.4657e6p-2f, 0x1.2387acp-3f,
        0x1.017726p-4f, 0x1.c5c202p-6f, 0x1.8fae46p-7f, 0x1.6004eap-8f, 0x1.360944p-9f, 0x1.110f32p-10f,
        0x1.e0fc24p-12f, 0x1.a79e92p-13f, 0x1.75188p-14f, 0x1.489908p-15f},
       0x1p+0f},
      {"llama3_bf16",
       {.scaling = RopeScaling::llama3,
        .theta = 5e5,
        .rotary_dim = 32,
        .factor = 8,
        .original_max_position_embeddings = 64,
        .round_frequencies_to = DType::bf16},
       {0x1p+0f, 0x1.c2p-2f, 0x1.46p-4f, 0x1.5ep-7f, 0x1.34p-8f, 0x1.1p-9f, 0x1.dep-11f, 0x1.a4p-12f, 0x1.72p-13f,
        0x1.46p-14f, 0x1.2p-15f, 0x1.fap-17f, 0x1.bep-18f, 0x1.88p-19f, 0x1.5ap-20f, 0x1.3p-21f},
       {0x1.fc9daap-1f, 0x1.d64212p-2f, 0x1.67d3f2p-1f, 0x1.7b214cp-1f, 0x1.e55096p-1f, 0x1.fac29ep-1f, 0x1.fefcbap-1f,
        0x1.ffcdf2p-1f, 0x1.fff64ap-1f, 0x1.fffe1ep-1f, 0x1.ffffa2p-1f, 0x1.ffffeep-1f, 0x1.fffffcp-1f, 0x1p+0f,
        0x1p+0f, 0x1p+0f},
       {-0x1.d6289ap-4f, -0x1.c6d11ap-1f, -0x1.6c3c6cp-1f, 0x1.581972p-1f, 0x1.4645f2p-2f, 0x1.243fbap-3f,
        0x1.01808p-4f, 0x1.c4c13ep-6f, 0x1.8ee57ap-7f, 0x1.5f7792p-8f, 0x1.367fecp-9f, 0x1.10c3fcp-10f, 0x1.e0d7fep-12f,
        0x1.a6ap-13f, 0x1.7508p-14f, 0x1.47cp-15f},
       0x1p+0f},
      {"dynamic_short",
       {.scaling = RopeScaling::dynamic,
        .rotary_dim = 16,
        .factor = 2,
        .max_position_embeddings = 512,
        .sequence_length = 70},
       {0x1p+0f, 0x1.43d136p-2f, 0x1.99999ap-4f, 0x1.030dc6p-5f, 0x1.47ae14p-7f, 0x1.9e7c7p-9f, 0x1.0624dep-10f,
        0x1.4b96cp-12f},
       {0x1.fc9daap-1f, -0x1.f87ea8p-1f, 0x1.a1a6b6p-1f, -0x1.25cd1ep-1f, 0x1.8ae0c2p-1f, 0x1.f3dc3p-1f, 0x1.fec81cp-1f,
        0x1.ffe0ccp-1f},
       {-0x1.d6289ap-4f, 0x1.5d60b2p-3f, 0x1.282944p-1f, 0x1.a35092p-1f, 0x1.45e834p-1f, 0x1.bb549p-3f, 0x1.1a665ap-4f,
        0x1.657744p-6f},
       0x1p+0f},
      {"dynamic_grown",
       {.scaling = RopeScaling::dynamic,
        .rotary_dim = 16,
        .factor = 2,
        .max_position_embeddings = 16,
        .sequence_length = 70},
       {0x1p+0f, 0x1.e360c2p-3f, 0x1.c85b2p-5f, 0x1.aed836p-7f, 0x1.96c264p-9f, 0x1.80053ep-11f, 0x1.6a8d86p-13f,
        0x1.564906p-15f},
       {0x1.fc9daap-1f, -0x1.ace85cp-1f, -0x1.86dd34p-1f, 0x1.3b5ab4p-1f, 0x1.f44e8ap-1f, 0x1.ff58a4p-1f,
        0x1.fff6acp-1f, 0x1.ffff7cp-1f},
       {-0x1.d6289ap-4f, -0x1.179c5ep-1f, -0x1.4ab5d2p-1f, 0x1.935b02p-1f, 0x1.b3319ep-3f, 0x1.9dd888p-5f,
        0x1.86de34p-7f, 0x1.71069ap-9f},
       0x1p+0f},
      {"dynamic_grown_bf16",
       {.scaling = RopeScaling::dynamic,
        .rotary_dim = 16,
        .factor = 2,
        .max_position_embeddings = 16,
        .sequence_length = 70,
        .round_frequencies_to = DType::bf16},
       {0x1p+0f, 0x1.e360c2p-3f, 0x1.c85b2p-5f, 0x1.aed836p-7f, 0x1.96c264p-9f, 0x1.80053ep-11f, 0x1.6a8d86p-13f,
        0x1.564906p-15f},
       {0x1.fc9daap-1f, -0x1.ace85cp-1f, -0x1.86dd34p-1f, 0x1.3b5ab4p-1f, 0x1.f44e8ap-1f, 0x1.ff58a4p-1f,
        0x1.fff6acp-1f, 0x1.ffff7cp-1f},
       {-0x1.d6289ap-4f, -0x1.179c5ep-1f, -0x1.4ab5d2p-1f, 0x1.935b02p-1f, 0x1.b3319ep-3f, 0x1.9dd888p-5f,
        0x1.86de34p-7f, 0x1.71069ap-9f},
       0x1p+0f},
      {"yarn",
       {.scaling = RopeScaling::yarn, .rotary_dim = 16, .factor = 4, .original_max_position_embeddings = 64},
       {0x1p+0f, 0x1.e5b9dp-3f, 0x1.999998p-5f, 0x1.030dc6p-7f, 0x1.47ae14p-9f, 0x1.9e7c7p-11f, 0x1.0624dep-12f,
        0x1.4b96cp-14f},
       {0x1.219p+0f, -0x1.cdae7cp-1f, -0x1.15bc76p+0f, 0x1.f25f2p-1f, 0x1.1f29bep+0f, 0x1.230e3ap+0f, 0x1.23721ep+0f,
        0x1.237c1cp+0f},
       {-0x1.0bab1p-3f, -0x1.63f802p-1f, -0x1.61ea8p-2f, 0x1.2e78ep-1f, 0x1.904356p-3f, 0x1.fc9084p-5f, 0x1.41c9cp-6f,
        0x1.970d2ep-8f},
       0x1.237d38p+0f},
      {"yarn_mscale",
       {.scaling = RopeScaling::yarn,
        .theta = 5e5,
        .rotary_dim = 32,
        .factor = 4,
        .original_max_position_embeddings = 64,
        .mscale = 0.7,
        .mscale_all_dim = 1.1,
        .beta_fast = 16,
        .beta_slow = 2,
        .truncate = false},
       {0x1p+0f, 0x1.188af2p-2f, 0x1.8d276p-5f, 0x1.5dc95ap-6f, 0x1.34119p-7f, 0x1.0f5386p-8f, 0x1.ddee9ep-10f,
        0x1.a4ee4p-11f, 0x1.72ba42p-12f, 0x1.46831ap-13f, 0x1.1f91fp-14f, 0x1.fa8b86p-16f, 0x1.be2188p-17f,
        0x1.88ec2p-18f, 0x1.5a0f4ep-19f, 0x1.30c94ep-20f},
       {0x1.e424dcp-1f, 0x1.e6a648p-1f, -0x1.dd4d1ep-1f, 0x1.7c4df2p-4f, 0x1.845d94p-1f, 0x1.d39d3cp-1f, 0x1.e38398p-1f,
        0x1.e69e1ep-1f, 0x1.e73864p-1f, 0x1.e75652p-1f, 0x1.e75c1ep-1f, 0x1.e75d4p-1f, 0x1.e75d76p-1f, 0x1.e75d82p-1f,
        0x1.e75d84p-1f, 0x1.e75d84p-1f},
       {-0x1.bf897ep-4f, 0x1.a675d4p-5f, -0x1.8a2044p-3f, 0x1.e50a92p-1f, 0x1.26719ep-1f, 0x1.12ad5cp-2f,
        0x1.e92f96p-4f, 0x1.afc27ep-5f, 0x1.7c6c06p-6f, 0x1.4f13bap-7f, 0x1.271e3ap-8f, 0x1.03ebccp-9f, 0x1.c9d7acp-11f,
        0x1.933cb4p-12f, 0x1.6324f2p-13f, 0x1.38c994p-14f},
       0x1.e75d84p-1f},
      {"yarn_f16",
       {.scaling = RopeScaling::yarn,
        .theta = 5e5,
        .rotary_dim = 32,
        .factor = 4,
        .original_max_position_embeddings = 64,
        .attention_factor = 0.9,
        .beta_fast = 16,
        .beta_slow = 2,
        .round_frequencies_to = DType::f16},
       {0x1p+0f, 0x1.19cp-2f, 0x1.8d4p-5f, 0x1.5dcp-6f, 0x1.34p-7f, 0x1.0f4p-8f, 0x1.dep-10f, 0x1.a5p-11f, 0x1.72cp-12f,
        0x1.468p-13f, 0x1.1f8p-14f, 0x1.fbp-16f, 0x1.bep-17f, 0x1.88p-18f, 0x1.58p-19f, 0x1.3p-20f},
       {0x1.c9c118p-1f, 0x1.c892b4p-1f, -0x1.c3357ap-1f, 0x1.6823b4p-4f, 0x1.6f3c9ap-1f, 0x1.ba22ccp-1f, 0x1.c9285ap-1f,
        0x1.cc17c6p-1f, 0x1.cca9bp-1f, 0x1.ccc5fep-1f, 0x1.cccb7ap-1f, 0x1.cccc8cp-1f, 0x1.cccccp-1f, 0x1.cccccap-1f,
        0x1.ccccccp-1f, 0x1.ccccccp-1f},
       {-0x1.a7248ap-4f, 0x1.f22b0ep-4f, -0x1.761af6p-3f, 0x1.ca9882p-1f, 0x1.165758p-1f, 0x1.03a254p-2f,
        0x1.ce962ep-4f, 0x1.984ae6p-5f, 0x1.67b52ap-6f, 0x1.3ccd0ap-7f, 0x1.16f6bcp-8f, 0x1.ebf2b6p-10f,
        0x1.b0c262p-11f, 0x1.7c5cccp-12f, 0x1.4dc99ap-13f, 0x1.26f99ap-14f},
       0x1.ccccccp-1f},
  };
}

TEST(RopeTable, MatchesTransformers) {
  for (const Golden& expected : golden()) {
    SCOPED_TRACE(expected.name);
    const RotaryFrequencies found = rotary_frequencies(expected.parameters);
    ASSERT_EQ(found.inverse.size(), expected.inverse.size());
    EXPECT_EQ(found.attention_scaling, expected.attention_scaling);
    const RopeTable table = make_rope_table(expected.parameters, 70);
    for (std::size_t i = 0; i < expected.inverse.size(); ++i) {
      // Powers differ by a unit in the last place between libraries; types with fewer bits hide that.
      EXPECT_NEAR(found.inverse[i], expected.inverse[i],
                  2 * std::abs(std::nextafter(expected.inverse[i], 2.0f) - expected.inverse[i]));
      EXPECT_NEAR(table.cos.view.as<float>()[69 * expected.inverse.size() + i], expected.cos[i], 1e-5);
      EXPECT_NEAR(table.sin.view.as<float>()[69 * expected.inverse.size() + i], expected.sin[i], 1e-5);
    }
  }
}

TEST(RopeTable, FirstRowIsNoRotation) {
  const RopeTable table = make_rope_table({.rotary_dim = 6}, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(table.cos.view.as<float>()[i], 1.0f);
    EXPECT_EQ(table.sin.view.as<float>()[i], 0.0f);
  }
}

TEST(RopeTable, RefusesParametersOutOfRange) {
  const auto message = [](const RopeParameters& parameters) -> std::string {
    try {
      rotary_frequencies(parameters);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message({.rotary_dim = 7}), "rope: rotary_dim: expected a positive even number, found 7");
  EXPECT_EQ(message({.theta = -1, .rotary_dim = 8}), "rope: theta: expected a positive number, found -1");
  EXPECT_EQ(message({.scaling = RopeScaling::yarn, .rotary_dim = 8}),
            "rope: original_max_position_embeddings: expected a positive number, found 0");
  EXPECT_EQ(message({.scaling = RopeScaling::dynamic, .rotary_dim = 8}),
            "rope: max_position_embeddings: expected a positive number, found 0");
  EXPECT_EQ(message({.scaling = RopeScaling::llama3,
                     .rotary_dim = 8,
                     .low_freq_factor = 4,
                     .high_freq_factor = 4,
                     .original_max_position_embeddings = 8}),
            "rope: high_freq_factor: expected more than low_freq_factor = 4, found 4");
}

}  // namespace
}  // namespace cermet

// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/node.h"

#include <gtest/gtest.h>

namespace berth::slurm {
namespace {

TEST(SlurmGres, IsCounted) {
  EXPECT_EQ(count_of({"gpu:2", "becpu:8"}, "becpu"), 8U);
  EXPECT_EQ(count_of({"becpu:0"}, "becpu"), 0U);
  EXPECT_EQ(count_of({"becpu:2K(S:0)"}, "becpu"), 2048U);
  EXPECT_EQ(count_of({"gpu:2"}, "becpu"), 0U);
  EXPECT_EQ(count_of({"becpus:8"}, "becpu"), 0U);
  EXPECT_EQ(count_of({"becpu"}, "becpu"), std::nullopt);
  EXPECT_EQ(count_of({"becpu:fast:8"}, "becpu"), std::nullopt);
  EXPECT_EQ(count_of({"becpu:8", "becpu:9"}, "becpu"), std::nullopt);
  EXPECT_EQ(count_of({"becpu:-1"}, "becpu"), std::nullopt);
  EXPECT_EQ(count_of({"becpu:18446744073709551615"}, "becpu"), 18446744073709551615U);
  EXPECT_EQ(count_of({"becpu:18446744073709551615K"}, "becpu"), std::nullopt);
}

TEST(SlurmGres, KeepsAllOthersInTheirOrder) {
  EXPECT_EQ(with_count({"gpu:a100:2(S:0-1)", "becpu:8", "nic:1"}, "becpu", 14), "gpu:a100:2,becpu:14,nic:1");
  EXPECT_EQ(with_count({"gpu:1g.10gb:7", "gpu:a100:2"}, "becpu", 3), "gpu:1g.10gb:7,gpu:a100:2,becpu:3");
  EXPECT_EQ(with_count({}, "becpu", 0), "becpu:0");
  EXPECT_EQ(with_count({"becpu:fast:8", "becpus:1", "becpu:slow:2"}, "becpu", 5), "becpu:5,becpus:1");
}

}  // namespace
}  // namespace berth::slurm

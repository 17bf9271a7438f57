// SPDX-License-Identifier: Apache-2.0
#include "model/attribute.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(Attribute, NamesGoBothWays) {
  for (const Attribute attribute : kAttributes) EXPECT_EQ(attribute_of(control_file(attribute)), attribute);
  EXPECT_EQ(attribute_of("cpuset.mems.effective"), std::nullopt);
}

}  // namespace
}  // namespace berth::model

// SPDX-License-Identifier: Apache-2.0
#include "model/hash.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

// Of the reference's list of test vectors (Fowler, Noll, Vo).
TEST(Hash, IsTheReferences) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

}  // namespace
}  // namespace berth::model

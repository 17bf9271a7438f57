// SPDX-License-Identifier: Apache-2.0
#include "os/ancestors.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::os {
namespace {

TEST(FindAround, AsksForThePathAndThenUpwards) {
  std::vector<std::string> asked;
  const auto found = find_around("a/b.slice/c", [&](const std::string& path) {
    asked.push_back(path);
    return std::optional<int>();
  });
  EXPECT_EQ(found, std::nullopt);
  EXPECT_EQ(asked, (std::vector<std::string>{"a/b.slice/c", "a/b.slice", "a"})) << "not for the root";
}

TEST(FindAround, EndsAtTheNearest) {
  const auto length_if = [](std::size_t most) {
    return
        [most](const std::string& path) { return path.size() <= most ? std::optional(path) : std::nullopt; };
  };
  EXPECT_EQ(find_around("a/b/c", length_if(9)), "a/b/c");
  EXPECT_EQ(find_around("a/b/c", length_if(3)), "a/b");
  EXPECT_EQ(find_around("", length_if(3)), std::nullopt);
}

}  // namespace
}  // namespace berth::os

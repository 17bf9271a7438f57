// SPDX-License-Identifier: Apache-2.0
#include "os/staged_file.h"

#include "tests/unit/cgroup/fake_tree.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::os {
namespace {

class StagedFileTest : public testing::Test {
 protected:
  std::optional<std::string> read(std::uintmax_t most_bytes = 100) {
    seen = nullptr;
    return read_document(file, most_bytes, [this](const nlohmann::json& document) {
      seen = document;
      if (!document.contains("wrong")) return std::optional<std::string>();
      return std::optional(document.at("wrong").get<std::string>());
    });
  }
  cgroup::test::FakeTree tree;
  std::filesystem::path file = tree.root() / "kept.json";
  nlohmann::json seen;
};

}  // namespace

TEST_F(StagedFileTest, WhatWasWrittenIsReadBack) {
  ASSERT_TRUE(replace_file(file, R"({"a": 1})"));
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(seen["a"], 1);
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".new"));
}

TEST_F(StagedFileTest, OneThatIsToLastIsWrittenToTheDiskUnderEitherName) {
  for (const char* text : {R"({"a": 1})", R"({"a": 2})"}) {
    const auto replaced = replace_file(file, text, Readers::owner, Lasts::power_loss);
    ASSERT_TRUE(replaced) << replaced.error().message();
  }
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(seen["a"], 2);
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".new"));
  EXPECT_FALSE(replace_file(tree.root() / "none" / "x", "{}", Readers::owner, Lasts::power_loss));
}

TEST_F(StagedFileTest, WhyItCannotBeWrittenIsSaidAndTheOldOneStays) {
  ASSERT_TRUE(replace_file(file, R"({"a": 1})"));
  std::filesystem::create_symlink("/dev/full", file.string() + ".new");
  const auto linked = replace_file(file, "{}");
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().message(), "making " + file.string() + ".new: Too many levels of symbolic links");
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(seen["a"], 1);
}

TEST_F(StagedFileTest, NoFileIsNoProblem) {
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(seen, nullptr);
}

TEST_F(StagedFileTest, WhatCannotBeReadIsSaidWithTheFilesName) {
  ASSERT_TRUE(replace_file(file, "{"));
  EXPECT_NE(read().value_or("").find("kept.json: "), std::string::npos);
  ASSERT_TRUE(replace_file(file, R"({"wrong": "it is of another host"})"));
  EXPECT_EQ(read(), file.string() + ": it is of another host");
  ASSERT_TRUE(replace_file(file, R"({"wrong": 7})"));  // the taker's own exception
  EXPECT_NE(read().value_or("").find("kept.json: "), std::string::npos);
}

TEST_F(StagedFileTest, WhatIsTooLargeIsNotRead) {
  ASSERT_TRUE(replace_file(file, R"({"a": 1})"));
  EXPECT_NE(read(4).value_or("").find("too large"), std::string::npos);
  EXPECT_EQ(seen, nullptr);
}

TEST_F(StagedFileTest, ADirectoryOfThatNameIsAProblem) {
  std::filesystem::create_directory(file);
  EXPECT_NE(read().value_or("").find("kept.json: "), std::string::npos);
}

}  // namespace berth::os

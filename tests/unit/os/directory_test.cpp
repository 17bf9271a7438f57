// SPDX-License-Identifier: Apache-2.0
#include "os/directory.h"

#include "os/beneath.h"
#include "tests/temporary_directory.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

namespace berth::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

namespace fs = std::filesystem;

class DirectoryTest : public testing::Test {
 protected:
  const test::TemporaryDirectory directory_;
  const fs::path& base = directory_.path();
};

TEST_F(DirectoryTest, SubdirectoriesAreAscendingWithoutFilesAndLinks) {
  for (const char* name : {"b", "c", "a", "a/below"}) fs::create_directory(base / name);
  std::ofstream(base / "file") << "text";
  fs::create_directory_symlink("a", base / "link");
  EXPECT_THAT(subdirectories(open_beneath(base, "").get()), Optional(ElementsAre("a", "b", "c")));
}

TEST_F(DirectoryTest, ADirectoryIsListedAgainAfterItsFirstChildCame) {
  std::ofstream(base / "file") << "text";
  const FileDescriptor directory = open_beneath(base, "");
  EXPECT_THAT(subdirectories(directory.get()), Optional(IsEmpty()));
  fs::create_directory(base / "child");
  EXPECT_THAT(subdirectories(directory.get()), Optional(ElementsAre("child")));
  fs::remove(base / "child");
  EXPECT_THAT(subdirectories(directory.get()), Optional(IsEmpty()));
}

TEST_F(DirectoryTest, ADirectoryThatCannotBeListedIsAnError) {
  errno = 0;
  EXPECT_FALSE(subdirectories(-1));
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace berth::os

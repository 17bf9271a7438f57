// SPDX-License-Identifier: Apache-2.0
#include "os/read_file.h"

#include "os/file_descriptor.h"
#include "tests/temporary_directory.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::os {
namespace {

FileDescriptor opened(const std::filesystem::path& file) {
  return FileDescriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC));
}

TEST(ReadFile, EndsAtTheLimitOrTheEnd) {
  const test::TemporaryDirectory directory;
  std::string written;
  while (written.size() < 20'000) written += std::to_string(written.size()) + ' ';
  const auto file = directory.write("numbers", written);
  for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{4097},
                                 written.size(), written.size() + 1, std::size_t{1} << 20}) {
    std::string text = "left from before";
    ASSERT_TRUE(read_up_to(opened(file).get(), most, text));
    EXPECT_EQ(text, written.substr(0, most));
  }
}

TEST(ReadFile, AFaultKeepsItsReason) {
  std::string text;
  EXPECT_FALSE(read_up_to(opened("/proc/self/fd").get(), 100, text));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_EQ(text, "");
  EXPECT_FALSE(read_up_to(-1, 100, text));
  EXPECT_EQ(errno, EBADF);
}

TEST(ReadFile, OnePartOfAPipeIsTakenAtATime) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  ASSERT_EQ(write(writer.get(), "abc", 3), 3);
  std::array<char, 8> buffer{};
  EXPECT_EQ(read_retrying(reader.get(), buffer.data(), buffer.size()), 3);
  writer = FileDescriptor();
  EXPECT_EQ(read_retrying(reader.get(), buffer.data(), buffer.size()), 0);
}

}  // namespace
}  // namespace berth::os

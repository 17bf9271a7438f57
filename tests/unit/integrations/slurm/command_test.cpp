// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/command.h"

#include "tests/temporary_directory.h"

#include <chrono>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::slurm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto kLong = 60'000ms;

class SlurmCommand : public testing::Test {
 protected:
  std::string program(const std::string& script) const {
    const auto file = directory_.write("program", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
  }

  berth::test::TemporaryDirectory directory_;
};

TEST_F(SlurmCommand, GetsItsWordsUntouched) {
  const auto ended =
      run_program({program("printf '%s|' \"$@\"; echo said >&2; exit 3"), "a b", "$(id)", "'; reboot\n", ""},
                  {"A=1"}, kLong);
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_EQ(ended->status, 3);
  EXPECT_EQ(ended->output, "a b|$(id)|'; reboot\n||");
  EXPECT_EQ(ended->errors, "said\n");
}

TEST_F(SlurmCommand, HasItsEnvironmentAloneAndNoInput) {
  setenv("BERTH_SECRET", "x", 1);
  const auto ended = run_program(
      {program("/usr/bin/env | /usr/bin/grep -v ^PWD= | /usr/bin/grep -v ^_=; /bin/cat")}, {"A=1"}, kLong);
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_EQ(ended->output, "A=1\n");
}

TEST_F(SlurmCommand, InheritsNoFile) {
  const int open_file = open("/dev/null", O_RDONLY);
  const auto ended =
      run_program({program("ls /proc/self/fd | /usr/bin/wc -l")}, {"PATH=/usr/bin:/bin"}, kLong);
  close(open_file);
  ASSERT_TRUE(ended) << ended.error().message();
  // The three streams, and the directory that ls reads.
  EXPECT_EQ(ended->output, "4\n");
}

TEST_F(SlurmCommand, IsKilledAfterItsTime) {
  const auto ended = run_program({program("exec sleep 1000")}, {"PATH=/usr/bin:/bin"}, 50ms);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind(), model::ErrorKind::transient);
  EXPECT_THAT(ended.error().message(), HasSubstr("no answer"));
  // A program may close its streams and stay.
  EXPECT_FALSE(run_program({program("exec >&- 2>&-; exec sleep 1000")}, {"PATH=/usr/bin:/bin"}, 50ms));
}

TEST_F(SlurmCommand, MayNotWriteWithoutEnd) {
  const auto ended = run_program({program("exec yes")}, {"PATH=/usr/bin:/bin"}, kLong);
  ASSERT_FALSE(ended);
  EXPECT_THAT(ended.error().message(), HasSubstr("more than 65536 bytes"));
  const auto errors = run_program({program("yes | head -c 1000000 >&2")}, {"PATH=/usr/bin:/bin"}, kLong);
  ASSERT_TRUE(errors) << errors.error().message();
  EXPECT_EQ(errors->errors.size(), kMostErrorBytes);
}

TEST_F(SlurmCommand, SaysWhyItCannotStart) {
  const auto missing = run_program({"/nonexistent/scontrol", "show"}, {}, kLong);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("/nonexistent/scontrol: No such file"));
  EXPECT_EQ(run_program({program("kill -9 $$")}, {}, kLong)->status, 137);
}

}  // namespace
}  // namespace berth::slurm

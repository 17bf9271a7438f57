// SPDX-License-Identifier: Apache-2.0
// The examples of docs/progress.md do what they are examples of.
#include "../cli/program.h"
#include "fixture.h"
#include "model/progress.h"
#include "tests/paths.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace berth::test {

namespace {

const std::string kExamples = BERTH_EXAMPLES;

// How each of them is started; none takes long for its work.
const std::string kStart = "SECONDS_A_PART=0.01 PATH=\"$(dirname " BERTHCTL "):$PATH\" ";
const std::string kExampleCommands[] = {kStart + kExamples + "/progress.sh",
                                        kStart + "/usr/bin/python3 -B " + kExamples + "/progress.py",
                                        kStart + BERTH_EXAMPLE_PROGRAM};

}  // namespace

using ProgressExamples = BusServiceTest;

TEST_F(ProgressExamples, ReportToTheDaemonFromInsideTheirWorkload) {
  control_.home_of_all = "system.slice/web@1.service";
  for (const std::string& command : kExampleCommands) {
    control_.progress.clear();
    control_.reports = 0;
    const Ran ran = with_client([&command] { return run_shell(command); });
    EXPECT_EQ(ran.exit, 0) << command << "\n" << ran.err;
    EXPECT_EQ(ran.err, "") << command;
    EXPECT_EQ(control_.progress["system.slice/web@1.service"], 1) << command;
    EXPECT_EQ(control_.reports, 5) << command;
  }
}

TEST_F(ProgressExamples, GoOnWhereNobodyListens) {
  service_.reset();
  for (const std::string& command : kExampleCommands) {
    EXPECT_EQ(run_shell(command).exit, 0) << command;
  }
}

TEST_F(ProgressExamples, LeaveTheirProgressInAFile) {
  std::string pattern = (std::filesystem::temp_directory_path() / "progress-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  for (const std::string& command : kExampleCommands) {
    const auto file = std::filesystem::path(pattern) / "progress";
    const Ran ran = run_shell(command + " " + file.string());
    EXPECT_EQ(ran.exit, 0) << command << "\n" << ran.err;
    std::string line;
    std::getline(std::ifstream(file), line);
    EXPECT_EQ(model::parse_progress(line).value_or(0), 1) << command << " wrote " << line;
    std::filesystem::remove(file);
    EXPECT_TRUE(std::filesystem::is_empty(pattern)) << command << " left something behind";
  }
  std::filesystem::remove_all(pattern);
}

TEST(ProgressExample, TheScriptHasNoFaultThatShellcheckKnows) {
  if (run_shell("command -v shellcheck").exit != 0) GTEST_SKIP() << "shellcheck is not installed";
  const Ran ran = run_shell("shellcheck " + kExamples + "/progress.sh");
  EXPECT_EQ(ran.exit, 0) << ran.out;
}

}  // namespace berth::test

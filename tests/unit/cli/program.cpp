// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <sys/wait.h>

namespace berth::test {

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Ran run_shell(const std::string& command, const std::string& input) {
  std::string pattern = (std::filesystem::temp_directory_path() / "berth-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  const std::filesystem::path directory = pattern;
  std::ofstream(directory / "in") << input;
  std::ofstream(directory / "command") << "berthctl() { \"" BERTHCTL "\" \"$@\"; }\n" << command << "\n";
  const std::string at = directory.string();
  const int status =
      std::system(("/bin/bash " + at + "/command <" + at + "/in >" + at + "/out 2>" + at + "/err").c_str());
  Ran ran;
  ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = read_file(directory / "out");
  ran.err = read_file(directory / "err");
  std::filesystem::remove_all(directory);
  return ran;
}

int lines_of(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

void expect_complaint(const Ran& ran, int exit, const std::string& about) {
  EXPECT_EQ(ran.exit, exit) << ran.err;
  EXPECT_EQ(lines_of(ran.err), 1) << ran.err;
  EXPECT_THAT(ran.err, testing::StartsWith("berthctl: "));
  EXPECT_THAT(ran.err, testing::HasSubstr(about));
}

void Berthctl::SetUp() {
  setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + directory_.path().string() + "/no-bus").c_str(), 1);
}

}  // namespace berth::test

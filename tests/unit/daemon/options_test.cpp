// SPDX-License-Identifier: Apache-2.0
#include "daemon/options.h"

#include "tests/unit/daemon/fake_node.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

std::variant<Options, ExitStatus> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "berthd");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

Options parsed(std::vector<const char*> arguments) {
  const auto result = parse(std::move(arguments));
  if (const auto* options = std::get_if<Options>(&result)) return *options;
  ADD_FAILURE() << "the command line was refused";
  return {};
}

// The one line that a refused command line is answered with.
std::string refusal(std::vector<const char*> arguments) {
  testing::internal::CaptureStderr();
  const auto result = parse(std::move(arguments));
  std::string said = testing::internal::GetCapturedStderr();
  const auto* status = std::get_if<ExitStatus>(&result);
  EXPECT_TRUE(status != nullptr && *status == ExitStatus::wrong_use);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  return said;
}

TEST(Options, DefaultsAreTheInstalledPaths) {
  const auto options = parsed({});
  EXPECT_EQ(options.command, Command::run);
  EXPECT_EQ(options.config_file, "/etc/berth/berth.toml");
  EXPECT_TRUE(options.cgroup_root.empty());
  EXPECT_EQ(options.proc_root, "/proc");
  EXPECT_EQ(options.sys_root, "/sys");
  EXPECT_EQ(options.state_dir, "/var/lib/berth");
  EXPECT_EQ(options.runtime_dir, "/run/berth");
  EXPECT_EQ(options.sparkd_socket, "/run/berth-sparkd.socket");
  EXPECT_FALSE(options.observe);
}

TEST(Options, EveryPathCanBeMoved) {
  const auto options = parsed({"--cgroup-root", "/a", "--proc-root=/b", "--sys-root", "/c", "--state-dir",
                               "/d", "--runtime-dir", "/e", "--sparkd-socket", "/f", "--observe"});
  EXPECT_EQ(options.cgroup_root, "/a");
  EXPECT_EQ(options.proc_root, "/b");
  EXPECT_EQ(options.sys_root, "/c");
  EXPECT_EQ(options.state_dir, "/d");
  EXPECT_EQ(options.runtime_dir, "/e");
  EXPECT_EQ(options.sparkd_socket, "/f");
  EXPECT_TRUE(options.observe);
}

TEST(Options, CheckConfigTakesAFileOrNone) {
  const test::FakeNode node;
  EXPECT_EQ(parsed({"--check-config"}).command, Command::check_config);
  EXPECT_FALSE(parsed({"--check-config"}).no_unit);
  EXPECT_TRUE(parsed({"--check-config", "--no-unit"}).no_unit);
  EXPECT_NE(refusal({"--no-unit"}).find("--no-unit goes with --check-config"), std::string::npos);
  const std::string file = node.config_file();
  const auto named = parsed({"--check-config", file.c_str()});
  EXPECT_EQ(named.command, Command::check_config);
  EXPECT_EQ(named.config_file, file);
  EXPECT_EQ(parsed({"--config", file.c_str(), "--check-config"}).config_file, file);
}

TEST(Options, OneShotCommands) {
  EXPECT_EQ(parsed({"--once"}).command, Command::once);
  EXPECT_FALSE(parsed({"--once"}).json);
  EXPECT_TRUE(parsed({"--once", "--json"}).json);
  EXPECT_EQ(parsed({"--restore", "--json"}).command, Command::restore);
}

TEST(Options, MistakesAreAnsweredWithOneLine) {
  EXPECT_NE(refusal({"--bogus"}).find("--bogus"), std::string::npos);
  EXPECT_NE(refusal({"stray"}).find("stray"), std::string::npos);
  EXPECT_NE(refusal({"--state-dir"}).find("--state-dir"), std::string::npos);
  EXPECT_NE(refusal({"--once", "--restore"}).find("exclude"), std::string::npos);
  EXPECT_NE(refusal({"--json"}).find("--once"), std::string::npos);
  EXPECT_NE(refusal({"--config", "/there/is/none"}).find("/there/is/none"), std::string::npos);
  EXPECT_NE(refusal({"--check-config", "/there/is/none"}).find("/there/is/none"), std::string::npos);
}

TEST(Options, AnEmptyNameIsAMistakeAndNotTheDefault) {
  EXPECT_NE(refusal({"--config", ""}).find("--config: the name is empty"), std::string::npos);
  EXPECT_NE(refusal({"--config="}).find("--config"), std::string::npos);
  EXPECT_NE(refusal({"--check-config", ""}).find("--check-config: the name is empty"), std::string::npos);
  EXPECT_NE(refusal({"--once", "--state-dir", ""}).find("empty"), std::string::npos);
}

TEST(Options, AFileThatCannotBeSeenIsNotCalledMissing) {
  const test::FakeNode node;
  const auto loop = node.runtime_dir() / "loop";
  std::filesystem::create_symlink(loop, loop);
  const std::string file = loop / "berth.toml";
  for (const char* option : {"--config", "--check-config"}) {
    const std::string said = refusal({option, file.c_str()});
    EXPECT_NE(said.find(file + ": Too many levels"), std::string::npos) << said;
  }
}

TEST(Options, HelpAndVersionEndWell) {
  for (const char* option : {"--help", "--version"}) {
    testing::internal::CaptureStdout();
    const auto result = parse({option});
    const std::string said = testing::internal::GetCapturedStdout();
    EXPECT_EQ(std::get<ExitStatus>(result), ExitStatus::done);
    EXPECT_NE(said.find("berthd"), std::string::npos);
  }
}

}  // namespace
}  // namespace berth::daemon

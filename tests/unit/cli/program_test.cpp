// SPDX-License-Identifier: Apache-2.0
// The real program as a whole: help, output, wrong use, and its exit status, without a daemon.
#include "program.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::test {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Berthctl, SaysItsVersion) {
  const Ran ran = run_shell("berthctl --version");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_THAT(ran.out, StartsWith("berthctl "));
  EXPECT_EQ(ran.err, "");
}

TEST_F(Berthctl, HelpIsForPeopleWhoAsk) {
  const Ran ran = run_shell("berthctl --help");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_THAT(ran.out, StartsWith("Usage: berthctl COMMAND"));
  EXPECT_EQ(run_shell("berthctl plan --help").exit, 0);
  EXPECT_THAT(run_shell("berthctl evict --help").out, HasSubstr("Asks first")) << "what ends work says how";
}

TEST_F(Berthctl, HelpFitsATerminalOf24RowsAnd80Columns) {
  std::string commands = run_shell("berthctl --help | grep -oP '(?<=  )[a-z][a-z-]*(?= +[A-Z])'").out;
  EXPECT_GT(lines_of(commands), 15);
  std::istringstream names("--help\n" + commands);
  for (std::string name; std::getline(names, name);) {
    const std::string help = run_shell("berthctl " + (name == "--help" ? name : name + " --help")).out;
    EXPECT_LT(lines_of(help), 24) << "and the prompt has no row: " << name;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << name << ": " << line;
  }
}

TEST_F(Berthctl, AMistypedWordIsUnderstood) {
  expect_complaint(run_shell("berthctl stauts"), 2, "no command \"stauts\"; did you mean status? (");
  expect_complaint(run_shell("berthctl tpo"), 2, "did you mean top?");
  expect_complaint(run_shell("berthctl check"), 2, "did you mean check-config?");
  expect_complaint(run_shell("berthctl plan --snapshto x"), 2, "did you mean --snapshot?");
  expect_complaint(run_shell("berthctl --jsn list"), 2, "did you mean --json?");
  EXPECT_EQ(run_shell("berthctl frobnicate").err.find("did you mean"), std::string::npos);
}

// On a terminal of 24 rows, whose line ends are "\r\n".
class BerthctlOnATerminal : public Berthctl {
 protected:
  static std::string shown(const std::string& command, const std::string& settings) {
    const Ran ran =
        run_shell("unset NO_COLOR SUDO_UID PKEXEC_UID LESS PAGER; export TERM=xterm; " + settings +
                  "script -qec \"stty rows 24 cols 80; " BERTHCTL " " + command + "\" /dev/null < /dev/null");
    EXPECT_EQ(ran.exit, 0) << ran.out;
    return ran.out;
  }
};

TEST_F(BerthctlOnATerminal, LongOutputGoesToThePager) {
  const std::string plan = "plan --snapshot " + snapshot("worked_example.json");
  EXPECT_GT(lines_of(run_shell("berthctl " + plan).out), 24);
  EXPECT_THAT(shown(plan, "PAGER='sed s/^/paged:/' "), StartsWith("paged:"));
  EXPECT_THAT(shown(plan, "PAGER='echo $LESS; cat' "), StartsWith("FRX\r\n"));
  EXPECT_THAT(shown(plan, "LESS=R PAGER='echo $LESS; cat' "), StartsWith("R\r\n"));
  for (const char* none :
       {"PAGER= ", "PAGER=cat ", "TERM=dumb PAGER='sed s/^/paged:/' ", "PAGER=/no/such/pager "}) {
    const std::string text = shown(plan, none);
    EXPECT_THAT(text, HasSubstr("Capacity of the node")) << none;
    EXPECT_EQ(text.find("paged:"), std::string::npos) << none;
  }
  EXPECT_EQ(shown(plan + " --no-pager", "PAGER='sed s/^/paged:/' ").find("paged:"), std::string::npos);
  EXPECT_EQ(shown("--no-pager " + plan, "PAGER='sed s/^/paged:/' ").find("paged:"), std::string::npos);
}

TEST_F(BerthctlOnATerminal, APagerThatEndsEarlyIsNoFailure) {
  EXPECT_EQ(shown("topology --json --synthetic 'package:4 l3:1 core:512 pu:2'", "PAGER=true "), "");
}

TEST_F(BerthctlOnATerminal, ShortOutputAndHelpNeedNoPager) {
  const std::string pager = "PAGER='sed s/^/paged:/' ";
  EXPECT_EQ(shown("topology --synthetic pu:2", pager).find("paged:"), std::string::npos);
  EXPECT_THAT(shown("--help", pager), StartsWith("Usage:"));
}

TEST_F(BerthctlOnATerminal, WithBorrowedRightsThePagerRunsNoPrograms) {
  const std::string plan = "plan --snapshot " + snapshot("worked_example.json");
  const auto bin = directory_.path() / "bin";
  std::filesystem::create_directories(bin);
  std::ofstream(bin / "less") << "#!/bin/sh\necho secure=$LESSSECURE open=$LESSOPEN\ncat\n";
  std::filesystem::permissions(bin / "less", std::filesystem::perms(0755));
  const std::string text = shown(
      plan, "SUDO_UID=12345 LESSOPEN='|/tmp/x' PAGER='sed s/^/paged:/' PATH=" + bin.string() + ":$PATH ");
  EXPECT_THAT(text, StartsWith("secure=1 open=\r\n"));
}

TEST_F(BerthctlOnATerminal, ColoursAreForThoseWhoWantThem) {
  const std::string plan = "plan --no-pager --snapshot " + snapshot("worked_example.json");
  EXPECT_NE(shown(plan, "").find("\x1b[1m"), std::string::npos);
  EXPECT_NE(shown(plan, "NO_COLOR= ").find("\x1b[1m"), std::string::npos) << "an empty one says nothing";
  EXPECT_EQ(shown(plan, "NO_COLOR=1 ").find('\x1b'), std::string::npos);
}

TEST_F(Berthctl, WrongUseIsOneLine) {
  expect_complaint(run_shell("berthctl"), 2, "--help");
  expect_complaint(run_shell("berthctl frobnicate"), 2, "frobnicate");
  expect_complaint(run_shell("berthctl plan --frobnicate"), 2, "--frobnicate");
  expect_complaint(run_shell("berthctl mode"), 2, "mode");
  expect_complaint(run_shell("berthctl mode panic"), 2, "there are observe and enforce");
  expect_complaint(run_shell("berthctl log -n 0"), 2, "-n");
  expect_complaint(run_shell("berthctl log -n many"), 2, "many");
  expect_complaint(run_shell("berthctl top --interval soon"), 2, "not a duration");
  expect_complaint(run_shell("berthctl top --interval 50ms"), 2, "from 100ms to 1h");
  expect_complaint(run_shell("berthctl top --interval 2h"), 2, "from 100ms to 1h");
  expect_complaint(run_shell("berthctl top -n 0"), 2, "-n");
  expect_complaint(run_shell("berthctl top --once -n 2"), 2, "--once");
  expect_complaint(run_shell("berthctl set web"), 2, "settings");
  expect_complaint(run_shell("berthctl set web vcpus"), 2, "KEY=VALUE");
  expect_complaint(run_shell("berthctl set web color=red"), 2, "class, service, vcpus");
  expect_complaint(run_shell("berthctl set web vcpus=1 vcpus=2"), 2, "given twice");
  expect_complaint(run_shell("berthctl topology --xml a --synthetic b"), 2, "--xml");
  expect_complaint(run_shell("berthctl progress web"), 2, "fraction");
  expect_complaint(run_shell("berthctl progress web 2"), 2, "neither a fraction");
  expect_complaint(run_shell("berthctl progress web 3/2"), 2, "neither a fraction");
  expect_complaint(run_shell("berthctl explain"), 2, "subject");
  expect_complaint(run_shell("berthctl explain web --config x"), 2, "--config needs --snapshot");
  expect_complaint(run_shell("berthctl explain web --snapshot x --since 1h"), 2, "a file has no log");
  expect_complaint(run_shell("berthctl log --since soon"), 2, "\"soon\" is no time");
  expect_complaint(run_shell("berthctl log --kind pni"), 2, "did you mean pin?; there are pin, unpin");
  expect_complaint(run_shell("berthctl watch --policy evicton"), 2, "did you mean eviction?");
  expect_complaint(run_shell("berthctl serve --listen 0.0.0.0:8472"), 2,
                   "put a web server with TLS before it");
  expect_complaint(run_shell("berthctl serve --domain x..y"), 2, "each of its parts");
  expect_complaint(run_shell("berthctl serve --domain kubernetes.io"), 2, "keeps this domain for itself");
  for (const char* address : {"127.0.0.1:0", "127.0.0.1:99999", "run/socket", "localhost:8472"}) {
    const std::string said = run_shell(std::string("berthctl serve --listen ") + address).err;
    EXPECT_THAT(said, testing::Not(HasSubstr("TLS"))) << said;
    EXPECT_THAT(said, HasSubstr(" is not ")) << said;
  }
  expect_complaint(run_shell("berthctl serve --snapshots 10.0.0.1:8473"), 2, "is not a loopback address");
  expect_complaint(run_shell("berthctl log --workload $'\\xff'"), 2, "is not a workload's id");
}

TEST_F(Berthctl, WithoutADaemonSaysWhatToDo) {
  for (const char* command :
       {"status", "list", "top", "top --json", "snapshot", "plan", "mode enforce", "set web vcpus=2",
        "reload", "log", "log --since 1h", "watch", "metrics", "progress self 0.5", "explain web"}) {
    expect_complaint(run_shell(std::string("berthctl ") + command), 4, "systemctl start berthd");
  }
}

TEST_F(Berthctl, RestoreWithoutADaemonRunsBerthd) {
  const auto bin = directory_.path() / "bin";
  const auto sbin = directory_.path() / "sbin";
  std::filesystem::create_directories(bin);
  std::filesystem::create_directories(sbin);
  std::filesystem::copy_file(BERTHCTL, bin / "berthctl");
  std::ofstream(sbin / "berthd") << "#!/bin/sh\necho \"$@\"\nexit 1\n";
  std::filesystem::permissions(sbin / "berthd", std::filesystem::perms(0755));
  const Ran ran = run_shell((bin / "berthctl").string() + " restore --json -- --state-dir /elsewhere");
  EXPECT_EQ(ran.out, "--restore --json --state-dir /elsewhere\n");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(run_shell((bin / "berthctl").string() + " restore").out, "--restore\n");
}

TEST_F(Berthctl, AClosedPipeEndsItWithoutAWord) {
  const Ran ran = run_shell(
      // More than a pipe holds.
      "berthctl topology --synthetic 'package:4 l3:1 core:512 pu:2' --json | head -c 10; "
      "exit ${PIPESTATUS[0]}");
  EXPECT_EQ(ran.exit, 128 + SIGPIPE);
  EXPECT_EQ(ran.err, "");
}

TEST_F(Berthctl, AFullDiskIsAFailure) {
  for (const char* command : {"--help", "--version", "plan --help", "topology --synthetic pu:2"}) {
    expect_complaint(run_shell(std::string("berthctl ") + command + " > /dev/full"), 1,
                     "cannot write the output");
  }
}

TEST_F(Berthctl, AnUnknownOptionIsNamed) {
  expect_complaint(run_shell("berthctl --jsn"), 2, "--jsn");
  expect_complaint(run_shell("berthctl --jsn list"), 2, "--jsn");
  expect_complaint(run_shell("berthctl list --jsn"), 2, "--jsn");
}

TEST_F(Berthctl, ArgumentsThatNoBusCarriesAreNamed) {
  expect_complaint(run_shell("berthctl set web service=$'\\xff'"), 2, "service=");
  expect_complaint(run_shell("berthctl set $'w\\xff' vcpus=1"), 2, "is not a workload's id");
  expect_complaint(run_shell("berthctl set '' vcpus=1"), 2, "is not a workload's id");
}

TEST_F(Berthctl, WhatIsQuotedInAComplaintIsBounded) {
  const Ran ran = run_shell("berthctl set web $(printf 'a%.0s' {1..100000})=1");
  expect_complaint(ran, 2, "there is no setting");
  EXPECT_LT(ran.err.size(), 1100U);
  EXPECT_THAT(ran.err, HasSubstr("evictable")) << "what helps is still there";
}

TEST_F(Berthctl, RestoreTakesNothingButOptionsOfTheDaemon) {
  expect_complaint(run_shell("berthctl restore foo"), 2, "foo");
  const auto bin = directory_.path() / "bin";
  std::filesystem::create_directories(bin);
  std::filesystem::copy_file(BERTHCTL, bin / "berthctl");
  expect_complaint(run_shell((bin / "berthctl").string() + " restore -- --state-dir /x"), 1, "not installed");
}

TEST_F(Berthctl, NoColourWhereNobodyLooks) {
  EXPECT_EQ(
      run_shell("TERM=xterm berthctl plan --snapshot " + snapshot("worked_example.json")).out.find('\x1b'),
      std::string::npos);
}

}  // namespace berth::test

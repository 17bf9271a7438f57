// SPDX-License-Identifier: Apache-2.0
// Runs the real berthctl.
#pragma once

#include "tests/paths.h"
#include "tests/temporary_directory.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::test {

struct Ran {
  int exit = -1;  // 128 and more: killed by a signal
  std::string out;
  std::string err;
};

// Runs `command` by the shell; "berthctl" in it is the built program. `input` is its standard input. None of
// its streams is a terminal.
Ran run_shell(const std::string& command, const std::string& input = "");

// Number of lines of `text`.
int lines_of(const std::string& text);

// Expects this exit, and one line on standard error that begins as every complaint does and contains `about`.
void expect_complaint(const Ran& ran, int exit, const std::string& about);

// Without a daemon, on a bus that does not exist.
class Berthctl : public testing::Test {
 protected:
  void SetUp() override;

  std::string file(const std::string& name, const std::string& text) const {
    return directory_.write(name, text).string();
  }

  static std::string snapshot(const char* name) { return std::string(BERTH_SNAPSHOTS) + "/" + name; }

  TemporaryDirectory directory_;
};

}  // namespace berth::test

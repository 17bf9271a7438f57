// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/paths.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::daemon::test {

enum class SystemBus {
  none,
  silent,  // takes connections and never answers
};

// The berthd program of this build as a child, with a socket of its own to notify.
class BerthdProcess {
 public:
  explicit BerthdProcess(const std::vector<std::string>& arguments, SystemBus bus = SystemBus::none,
                         const std::filesystem::path& program = BERTHD);
  // Kills what still runs.
  ~BerthdProcess();
  BerthdProcess(const BerthdProcess&) = delete;
  BerthdProcess& operator=(const BerthdProcess&) = delete;

  // Waits for a notification that has `line` as one of its lines; "" where none came in 20 s.
  std::string wait_notified(const std::string& line);
  // The first line that starts with `prefix`, without it, of the next notification that has one.
  std::string wait_field(const std::string& prefix);
  void signal(int number) const;
  // Waits for the end; exit status, or 128 plus the signal that ended it.
  int wait();
  pid_t pid() const { return pid_; }
  // So far.
  std::string output() const;
  std::string errors() const;

 private:
  bool receive(std::string& message);

  std::filesystem::path directory_;
  int socket_ = -1;
  int silent_bus_ = -1;
  pid_t pid_ = -1;
};

// Runs to the end.
struct Ended {
  int status = 0;
  std::string output;
  std::string errors;
};
Ended run_berthd(const std::vector<std::string>& arguments, const std::filesystem::path& program = BERTHD);

}  // namespace berth::daemon::test

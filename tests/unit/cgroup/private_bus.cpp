// SPDX-License-Identifier: Apache-2.0
#include "private_bus.h"

#include <array>
#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::cgroup {

namespace fs = std::filesystem;

PrivateBus::PrivateBus() {
  const fs::path config = directory_.path() / "bus.conf";
  const std::string socket = "unix:path=" + (directory_.path() / "bus").string();
  put_file(config, "<busconfig><type>session</type><listen>" + socket +
                       "</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow "
                       "send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/>"
                       "<allow own=\"*\"/></policy></busconfig>");
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) throw std::runtime_error("pipe");
  std::string option = "--config-file=" + config.string();
  std::string print = "--print-address=" + std::to_string(ready[1]);
  std::string program = "dbus-daemon";
  std::string nofork = "--nofork";
  std::array<char*, 5> arguments{program.data(), option.data(), nofork.data(), print.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, ready[0]);
  // It complains there of not being allowed to raise its limits.
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const int failed = posix_spawnp(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ready[1]);
  std::array<char, 512> line{};
  // The address comes when it listens; the end of the pipe where it did not start.
  if (failed == 0 && read(ready[0], line.data(), line.size() - 1) > 0) address_ = socket;
  close(ready[0]);
  if (failed != 0) pid_ = -1;
}

PrivateBus::~PrivateBus() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

}  // namespace berth::cgroup

// SPDX-License-Identifier: Apache-2.0
#include "private_bus.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace berth::test {

namespace {

// As Debian's /usr/share/dbus-1/system.conf decides for everybody, less what needs a whole system.
constexpr const char* kConfiguration =
    R"(<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={0}/socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
  <policy user="root">
    <allow own="org.freedesktop.PolicyKit1"/>
    <allow send_destination="org.freedesktop.PolicyKit1"/>
  </policy>
  <include>{1}</include>
  <servicedir>{0}/services</servicedir>
  <limit name="max_replies_per_connection">100000</limit>
</busconfig>
)";

}  // namespace

PrivateBus::PrivateBus(const std::filesystem::path& policy_file, const std::string& activatable) {
  std::string pattern = (std::filesystem::temp_directory_path() / "berth-bus-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = pattern;
  // Others must reach the socket.
  std::filesystem::permissions(directory_, std::filesystem::perms(0755));
  const std::filesystem::path configuration = directory_ / "bus.conf";
  std::ofstream(configuration) << fmt::format(kConfiguration, directory_.string(), policy_file.string());

  std::filesystem::create_directory(directory_ / "services");
  if (!activatable.empty()) {
    std::ofstream(directory_ / "services" / (activatable + ".service"))
        << fmt::format("[D-BUS Service]\nName={}\nExec=/bin/false\nUser=root\n", activatable);
  }

  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ready[1], 3);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> words{"dbus-daemon", "--config-file=" + configuration.string(),
                                 "--nofork",    "--nopidfile",
                                 "--nosyslog",  "--print-address=3"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed = posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ready[1]);

  std::string address;
  char byte = 0;
  while (failed == 0 && read(ready[0], &byte, 1) == 1 && byte != '\n') address += byte;
  close(ready[0]);
  if (address.empty()) {
    stop();
    throw std::runtime_error("dbus-daemon did not start");
  }
  setenv("DBUS_SYSTEM_BUS_ADDRESS", address.c_str(), 1);
}

PrivateBus::~PrivateBus() {
  stop();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void PrivateBus::stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

SilentBus::SilentBus() {
  std::string pattern = (std::filesystem::temp_directory_path() / "berth-silence-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = pattern;
  const std::string path = directory_ / "socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // The kernel takes connections up to the backlog without a call of accept().
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0 || bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket_, 16) != 0) {
    throw std::runtime_error("cannot listen at " + path);
  }
  setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + path).c_str(), 1);
}

SilentBus::~SilentBus() {
  close(socket_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace berth::test

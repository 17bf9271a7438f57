// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/daemon/berthd_process.h"

#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/unit/daemon/fake_node.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::daemon::test {

namespace {

int bound_socket(int type, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int bound = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (bound < 0 || bind(bound, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot bind " + path);
  }
  return bound;
}

}  // namespace

BerthdProcess::BerthdProcess(const std::vector<std::string>& arguments, SystemBus bus,
                             const std::filesystem::path& program) {
  std::string name = (std::filesystem::temp_directory_path() / "berthd-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  directory_ = name;

  const std::string path = directory_ / "notify";
  socket_ = bound_socket(SOCK_DGRAM, path);
  const std::string bus_path = directory_ / "bus";
  if (bus == SystemBus::silent) {
    silent_bus_ = bound_socket(SOCK_STREAM, bus_path);
    // The kernel takes connections up to the backlog without a call of accept().
    if (listen(silent_bus_, 16) != 0) throw std::runtime_error("cannot listen at " + bus_path);
  }

  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::string notify = "NOTIFY_SOCKET=" + path;
  const std::string bus_address = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + bus_path;
  const std::string output = directory_ / "stdout";
  const std::string errors = directory_ / "stderr";
  // All made before the fork: a child of a threaded process may only make system calls.
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> environment{notify, bus_address, "PATH=/usr/bin:/bin"};
  for (const char* inherited :
       {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH", "FAKE_NVML", "WATCHDOG_USEC"}) {
    if (const char* value = std::getenv(inherited))
      environment.push_back(std::string(inherited) + "=" + value);
  }
  std::vector<char*> envp;
  for (auto& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);

  pid_ = fork();
  if (pid_ == 0) {
    const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
}

BerthdProcess::~BerthdProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(socket_);
  if (silent_bus_ >= 0) close(silent_bus_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

bool BerthdProcess::receive(std::string& message) {
  pollfd waiting{socket_, POLLIN, 0};
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(berth::test::kPatience).count();
  if (poll(&waiting, 1, static_cast<int>(patience)) <= 0) return false;
  message.resize(4096);
  const ssize_t length = recv(socket_, message.data(), message.size(), 0);
  message.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return length >= 0;
}

std::string BerthdProcess::wait_notified(const std::string& line) {
  for (std::string message; receive(message);) {
    if (("\n" + message + "\n").find("\n" + line + "\n") != std::string::npos) return message;
  }
  return "";
}

std::string BerthdProcess::wait_field(const std::string& prefix) {
  for (std::string message; receive(message);) {
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(prefix, 0) == 0) return line.substr(prefix.size());
    }
  }
  return "";
}

void BerthdProcess::signal(int number) const { kill(pid_, number); }

int BerthdProcess::wait() {
  int status = 0;
  bool ended = false;
  eventually([&] { return ended = waitpid(pid_, &status, WNOHANG) == pid_; });
  if (!ended) return -1;
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string BerthdProcess::output() const { return read_text(directory_ / "stdout"); }
std::string BerthdProcess::errors() const { return read_text(directory_ / "stderr"); }

Ended run_berthd(const std::vector<std::string>& arguments, const std::filesystem::path& program) {
  BerthdProcess process(arguments, SystemBus::none, program);
  Ended ended;
  ended.status = process.wait();
  ended.output = process.output();
  ended.errors = process.errors();
  return ended;
}

}  // namespace berth::daemon::test

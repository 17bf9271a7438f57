// SPDX-License-Identifier: Apache-2.0
// A file server (FUSE) that never answers. A program that asks it hangs, and not even SIGKILL may end that.
#pragma once

#include "os/file_descriptor.h"
#include "os/proc_files.h"
#include "tests/patience.h"

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::test {

// Mounts the server that reads `server`, a descriptor of /dev/fuse, in a mount namespace of the calling
// thread. False where this machine does not let it.
inline bool mount_silent(const std::filesystem::path& point, int server) {
  const auto options = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server);
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("silent", point.c_str(), "fuse", 0, options.c_str()) == 0;
}

// Calls `what` while such a server is mounted at `point`, on a thread with a mount namespace of its own. Its
// result; nullopt where this machine cannot mount one. Where `what` asks the server, it is called off after
// the tests' patience, and `hung` is set.
template <typename What>
auto beside_silent_mount(const std::filesystem::path& point, What what, bool& hung)
    -> std::optional<decltype(what())> {
  os::FileDescriptor server(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!server) return std::nullopt;
  std::promise<std::optional<decltype(what())>> done;
  auto result = done.get_future();
  std::thread thread([&, fd = server.get()] {
    if (mount_silent(point, fd)) {
      done.set_value(what());
    } else {
      done.set_value(std::nullopt);
    }
  });
  hung = result.wait_for(kPatience) != std::future_status::ready;
  server = os::FileDescriptor();  // aborts what waits
  thread.join();
  return result.get();
}

// A child process that waits for a file server, for ever.
class HangingProcess {
 public:
  // The child calls `first`, and keeps its result.
  template <typename First>
  HangingProcess(const std::filesystem::path& point, First first)
      : server_(open("/dev/fuse", O_RDWR | O_CLOEXEC)), pid_(server_ ? fork() : -1) {
    if (pid_ != 0) return;
    const auto held = first();
    if (!held || !mount_silent_here(point)) _exit(1);
    struct stat status {};
    stat((point / "f").c_str(), &status);
    _exit(0);
  }
  HangingProcess(const HangingProcess&) = delete;
  HangingProcess& operator=(const HangingProcess&) = delete;
  ~HangingProcess() { end(); }

  pid_t pid() const { return pid_; }

  // Takes its request, which is then beyond recall. False where it could not mount, or sends none.
  bool hangs() const {
    alignas(fuse_in_header) std::array<char, FUSE_MIN_READ_BUFFER> request{};
    return pid_ > 0 && eventually([&] {
             pollfd ready{.fd = server_.get(), .events = POLLIN, .revents = 0};
             if (waitpid(pid_, nullptr, WNOHANG) != 0) return true;
             if (poll(&ready, 1, 10) <= 0 || read(server_.get(), request.data(), request.size()) <= 0)
               return false;
             fuse_in_header header{};
             std::memcpy(&header, request.data(), sizeof header);
             if (header.opcode == FUSE_INIT) accept(header);
             return header.opcode == FUSE_LOOKUP;
           }) &&
           std::filesystem::exists(fmt::format("/proc/{}", pid_));
  }
  // Kills it, which does not end it. False where it does not hang.
  bool is_killed() const {
    kill(pid_, SIGKILL);
    return eventually([this] { return os::hangs_for_good(fmt::format("/proc/{}", pid_)); });
  }
  void end() {
    server_ = os::FileDescriptor();  // answers all with an error
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  // The descriptor that the parent has keeps the server.
  bool mount_silent_here(const std::filesystem::path& point) {
    const bool mounted = mount_silent(point, server_.get());
    server_ = os::FileDescriptor();
    return mounted;
  }
  void accept(const fuse_in_header& of) const {
    struct {
      fuse_out_header header{};
      fuse_init_out init{};
    } answer;
    answer.header = {.len = sizeof answer, .error = 0, .unique = of.unique};
    answer.init.major = FUSE_KERNEL_VERSION;
    answer.init.minor = FUSE_KERNEL_MINOR_VERSION;
    answer.init.max_write = 4096;
    (void)!write(server_.get(), &answer, sizeof answer);
  }

  os::FileDescriptor server_;
  pid_t pid_ = -1;
};

}  // namespace berth::test

// SPDX-License-Identifier: Apache-2.0
// A file server (FUSE) that never answers. Who asks it hangs, and not even SIGKILL may end that.
#pragma once

#include "os/file_descriptor.h"
#include "tests/patience.h"

#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>

namespace berth::test {

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
    const auto options = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", fd);
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("silent", point.c_str(), "fuse", 0, options.c_str()) != 0) {
      done.set_value(std::nullopt);
      return;
    }
    done.set_value(what());
  });
  hung = result.wait_for(kPatience) != std::future_status::ready;
  server = os::FileDescriptor();  // aborts what waits
  thread.join();
  return result.get();
}

}  // namespace berth::test

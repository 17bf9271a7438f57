// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <thread>

#include <sched.h>
#include <sys/mount.h>

namespace berth::cgroup::test {

// Runs `work` in a mount namespace of its own, which one thread can have, with an empty file system at
// `point`. False where this machine does not allow that.
inline bool with_mount_at(const std::filesystem::path& point, const std::function<void()>& work) {
  bool mounted = false;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0) return;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (mount("none", point.c_str(), "tmpfs", 0, "mode=0755,size=64k") != 0) return;
    mounted = true;
    work();
  }).join();
  return mounted;
}

}  // namespace berth::cgroup::test

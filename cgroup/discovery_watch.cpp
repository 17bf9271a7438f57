// SPDX-License-Identifier: Apache-2.0
#include "cgroup/discovery_tree.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <sys/inotify.h>

namespace berth::cgroup {

namespace {

constexpr int kMaxReads = 4;
constexpr std::size_t kReadSize = 65536;
constexpr std::uint32_t kDirectoryEvents =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR;

int add(int inotify, int directory, const char* file, std::uint32_t mask) {
  std::array<char, 96> path{};
  // The link leads to the open directory itself, whatever its path has become.
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d/%s", directory, file);
  const int watch = inotify_add_watch(inotify, path.data(), mask);
  return watch < 0 ? -errno : watch;
}

}  // namespace

model::Result<Watcher> Watcher::create() {
  os::FileDescriptor fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd) {
    const int error = errno;
    return model::fail(model::Error::from_errno(
        error, error == EMFILE
                   ? "starting inotify (fs.inotify.max_user_instances or the limit of open files reached)"
                   : "starting inotify"));
  }
  return Watcher(std::move(fd));
}

int Watcher::watch_directory(int directory) const { return add(fd_.get(), directory, "", kDirectoryEvents); }

int Watcher::watch_file(int directory, const char* file) const {
  return add(fd_.get(), directory, file, IN_MODIFY);
}

void Watcher::remove(int watch) const { inotify_rm_watch(fd_.get(), watch); }

bool Watcher::Event::overflow() const { return (mask & IN_Q_OVERFLOW) != 0; }
bool Watcher::Event::ended() const { return (mask & IN_IGNORED) != 0; }
bool Watcher::Event::is_attributes() const { return (mask & IN_ATTRIB) != 0; }
bool Watcher::Event::is_modification() const { return (mask & IN_MODIFY) != 0; }

void Watcher::read(const std::function<void(const Event&)>& handle) const {
  alignas(inotify_event) std::array<char, kReadSize> buffer;
  for (int i = 0; i < kMaxReads; ++i) {
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    std::size_t offset = 0;
    while (offset + sizeof(inotify_event) <= static_cast<std::size_t>(size)) {
      inotify_event raw{};
      std::memcpy(&raw, buffer.data() + offset, sizeof raw);
      const char* name = buffer.data() + offset + sizeof raw;
      handle(
          {raw.wd, raw.mask, raw.len ? std::string_view(name, strnlen(name, raw.len)) : std::string_view()});
      offset += sizeof raw + raw.len;
    }
  }
}

}  // namespace berth::cgroup

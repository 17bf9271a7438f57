// SPDX-License-Identifier: Apache-2.0
#include "os/durable.h"

#include "os/file_descriptor.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace berth::os {

namespace {

model::Result<void> sync(int fd, const std::filesystem::path& name) {
  if (fsync(fd) == 0) return {};
  // Some file systems have nothing to do for a directory, and say so.
  if (errno == EINVAL) return {};
  return model::fail(model::Error::from_errno(errno, fmt::format("writing {} to the disk", name.string())));
}

}  // namespace

model::Result<void> sync_to_disk(int fd, const std::filesystem::path& file) {
  if (auto synced = sync(fd, file); !synced) return synced;
  return sync_directory_of(file);
}

model::Result<void> sync_directory_of(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  const FileDescriptor fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return model::fail(model::Error::from_errno(errno, fmt::format("opening {}", directory.string())));
  return sync(fd.get(), directory);
}

}  // namespace berth::os

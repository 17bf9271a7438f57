// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <filesystem>
#include <string>

namespace berth::os {

// The reachable part of the way to a file.
struct WayToFile {
  FileDescriptor directory;  // O_PATH: the deepest one on the way that is there
  std::string awaited;       // what was looked up in it last
  // O_PATH handle of whatever has the file's name, a symbolic link itself and not what it points to. Error
  // gone where it or a directory on the way is not there.
  model::Result<FileDescriptor> file;
};

// Walks to the absolute `path`. A user that may write a progress file may often change directories on the way
// to it. Such a user must not send berthd elsewhere, least of all to a file system that hangs.
//
// So a symbolic link is followed only if it belongs to root or to berthd's own user (as /var/run does). A
// mount on the way, or on the file, is entered only if the host keeps that file system itself, by the type in
// the mount table: a file server may never answer. In a directory that others may change, nothing is entered
// that is mounted there. Such a directory belongs to another user, or its group or all users may write to
// it. The file system of "/" may be of any type. Nothing is opened but handles, and no automount is
// triggered.
WayToFile walk_to(const std::filesystem::path& path);

// Opens for reading the file or directory at an absolute path that any user may have chosen. It goes by
// walk_to(), so only to file systems that this host keeps itself. Never opens a device, FIFO or socket. Error
// `gone` where nothing is there, `refused` for the rest.
model::Result<FileDescriptor> open_user_file(const std::filesystem::path& path);

}  // namespace berth::os

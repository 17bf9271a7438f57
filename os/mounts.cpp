// SPDX-License-Identifier: Apache-2.0
#include "os/mounts.h"

#include "model/number.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <poll.h>

namespace berth::os {

namespace {

// mountinfo writes space, tab, line break and backslash as "\ooo".
std::string unescaped(std::string_view field) {
  std::string text;
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && is_octal(field[i + 1]) && is_octal(field[i + 2]) &&
        is_octal(field[i + 3])) {
      text +=
          static_cast<char>(((field[i + 1] - '0') << 6) | ((field[i + 2] - '0') << 3) | (field[i + 3] - '0'));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::optional<MountTable> read_table(const std::filesystem::path& file) {
  std::ifstream lines(file);
  if (!lines.is_open()) return std::nullopt;
  MountTable table;
  for (std::string line; std::getline(lines, line);) {
    if (auto mount = parse_mount(line)) {
      table.mounts.push_back(*std::move(mount));
    } else {
      table.complete = false;
    }
  }
  return table;
}

// A thread may have a mount namespace of its own.
constexpr const char* kOwnTable = "/proc/thread-self/mountinfo";

}  // namespace

std::optional<Mount> parse_mount(std::string_view line) {
  // number, parent, device, root, point, options, optional fields, "-", type, source, options
  constexpr std::size_t kFixed = 6;
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() < kFixed) return std::nullopt;
  const auto dash = std::find(fields.begin() + kFixed, fields.end(), "-");
  if (fields.end() - dash < 4 || dash[1].empty()) return std::nullopt;
  const auto id = model::to_number<std::uint64_t>(fields[0]);
  if (!id) return std::nullopt;
  return Mount{
      .id = *id, .root = unescaped(fields[3]), .point = unescaped(fields[4]), .type = std::string(dash[1])};
}

std::optional<MountTable> read_mounts(const std::filesystem::path& proc_root) {
  return read_table(proc_root / "self" / "mountinfo");
}

bool MountTypes::is_changed() {
  if (!table_) {
    table_ = FileDescriptor(open(kOwnTable, O_RDONLY | O_CLOEXEC));
    return true;
  }
  pollfd table{.fd = table_.get(), .events = POLLPRI, .revents = 0};
  return poll(&table, 1, 0) != 0;
}

std::string MountTypes::type_of(std::uint64_t mount_id) {
  if (is_changed()) {
    types_.clear();
    if (const auto table = read_table(kOwnTable)) {
      for (const Mount& mount : table->mounts) types_.emplace(mount.id, mount.type);
    }
  }
  const auto found = types_.find(mount_id);
  return found == types_.end() ? std::string() : found->second;
}

const Mount* mount_of(const MountTable& table, std::string_view path) {
  const Mount* innermost = nullptr;
  for (const Mount& mount : table.mounts) {
    if (!is_at_or_below(path, mount.point)) continue;
    if (innermost == nullptr || mount.point.size() >= innermost->point.size()) innermost = &mount;
  }
  return innermost;
}

}  // namespace berth::os

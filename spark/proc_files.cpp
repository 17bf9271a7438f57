// SPDX-License-Identifier: Apache-2.0
#include "spark/proc_files.h"

#include "model/number.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace berth::spark {

std::vector<pid_t> pids_of(const std::filesystem::path& proc_root) {
  std::vector<pid_t> pids;
  std::error_code error;
  std::filesystem::directory_iterator entry(proc_root, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto pid = model::to_number<pid_t>(entry->path().filename().string());
    if (pid && *pid > 0) pids.push_back(*pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::string read_start(const std::filesystem::path& file, std::size_t most) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::array<char, 4096> chunk{};
  while (text.size() < most && stream.read(chunk.data(), chunk.size()).gcount() > 0)
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  return text;
}

std::optional<Stat> read_stat(const std::filesystem::path& process) {
  const std::string text = read_start(process / "stat", 4096);
  // The name stands in brackets, and may hold anything.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  std::vector<std::string_view> fields;  // from the third one on
  for (std::string_view rest = std::string_view(text).substr(close + 1); !rest.empty();) {
    const std::size_t begin = std::min(rest.find_first_not_of(" \n"), rest.size());
    const std::size_t end = std::min(rest.find_first_of(" \n", begin), rest.size());
    if (end > begin) fields.push_back(rest.substr(begin, end - begin));
    rest.remove_prefix(end);
  }
  if (fields.size() < 20 || fields[0].size() != 1) return std::nullopt;
  const auto parent = model::to_number<pid_t>(fields[1]);
  const auto threads = model::to_number<int>(fields[17]);
  const auto started = model::to_number<std::uint64_t>(fields[19]);
  if (!parent || !threads || !started) return std::nullopt;
  return Stat{.name = text.substr(open + 1, close - open - 1),
              .state = fields[0].front(),
              .parent = *parent,
              .threads = *threads,
              .started = *started};
}

std::optional<uid_t> user_of(const std::filesystem::path& process) {
  std::ifstream stream(process / "status");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("Uid:")) continue;
    std::istringstream words(line.substr(4));
    std::string user;  // real, effective, saved, of the file system
    for (int i = 0; i < 4; ++i) words >> user;
    return words ? model::to_number<uid_t>(user) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> cgroup_of(const std::filesystem::path& process) {
  std::ifstream stream(process / "cgroup");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("0::/")) return line.substr(4);
  return std::nullopt;
}

}  // namespace berth::spark

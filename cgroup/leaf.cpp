// SPDX-License-Identifier: Apache-2.0
#include "cgroup/leaf.h"

#include "cgroup/processes.h"
#include "model/cpu_set.h"
#include "model/name.h"
#include "model/number.h"
#include "model/path.h"
#include "model/text.h"
#include "os/beneath.h"
#include "os/directory.h"
#include "os/proc_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScopeSuffix = ".scope";
constexpr std::string_view kInfix = ".berth-executor-";
constexpr std::string_view kAt = "\\x40";
constexpr std::string_view kBackslash = "\\x5c";
// A process that forks during the emptying needs another pass.
constexpr int kPasses = 3;
constexpr std::size_t kDeepest = 64;

std::string_view trimmed(std::string_view text) { return model::trimmed_end(text, model::kEndOfControlFile); }

// The text of a control file that was never set.
struct Unset {
  const char* file;
  std::string_view value;
};
constexpr std::array kUnset{
    Unset{"cgroup.type", "domain"},
    Unset{"cgroup.freeze", "0"},
    Unset{"cgroup.max.depth", "max"},
    Unset{"cgroup.max.descendants", "max"},
    Unset{"cpu.max.burst", "0"},
    Unset{"cpu.uclamp.min", "0.00"},
    Unset{"cpu.uclamp.max", "max"},
    Unset{"cpuset.cpus.exclusive", ""},
    Unset{"cpuset.cpus.partition", "member"},
    Unset{"cpuset.mems", ""},
    Unset{"memory.min", "0"},
    Unset{"memory.low", "0"},
    Unset{"memory.max", "max"},
    Unset{"memory.oom.group", "0"},
    Unset{"memory.swap.high", "max"},
    Unset{"memory.swap.max", "max"},
    Unset{"memory.zswap.max", "max"},
    Unset{"memory.zswap.writeback", "1"},
    Unset{"io.max", ""},
    Unset{"io.latency", ""},
    Unset{"io.prio.class", "no-change"},
    Unset{"io.weight", "default 100"},
    Unset{"io.bfq.weight", "default 100"},
};

// "mlx5_0 hca_handle=max hca_object=max" and "res_a max", a device or resource a line.
bool is_all_max(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;  // its name
    while (words >> word) {
      if (word != "max" && !word.ends_with("=max")) return false;
    }
  }
  return true;
}

// Files such as hugetlb.2MB.max, as far as there are any.
std::vector<std::string> huge_page_files(const fs::path& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("hugetlb.") && name.ends_with(".max")) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A cpulist of all the vCPUs that the parent has is no bound: before Linux 7.0, clearing a cpulist results in
// that.
bool bounds_vcpus(const model::CpuSet& own, const std::string& parent, const fs::path& root) {
  if (own.empty()) return false;
  const auto above = Cgroup::open(root, parent);
  const auto text = above ? (*above)->read("cpuset.cpus.effective") : model::Result<std::string>("");
  const auto all = text ? model::CpuSet::parse(trimmed(*text)) : model::CpuSet::parse("");
  return !all || all->empty() || !all->is_subset_of(own);
}

bool bounds(const Cgroup& cgroup, const Value& value, const fs::path& root) {
  if (const auto* cpus = std::get_if<model::CpuSet>(&value)) {
    return bounds_vcpus(*cpus, std::string(model::parent_path(cgroup.path())), root);
  }
  if (const auto* limit = std::get_if<CpuMax>(&value)) return limit->quota_us.has_value();
  if (const auto* priority = std::get_if<CpuIdle>(&value)) return *priority != CpuIdle();
  return std::get<MemoryHigh>(value).bytes.has_value();
}

bool belongs_to_root(const struct stat& status, const struct stat& root) {
  if (status.st_uid != 0 && status.st_uid != root.st_uid) return false;
  const bool group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0 && status.st_gid != root.st_gid;
  return !group && (status.st_mode & S_IWOTH) == 0;
}

model::Error failed(int error, const char* what, const fs::path& directory) {
  return model::Error::from_errno(error, fmt::format("{} cgroup {}", what, directory.string()));
}

std::optional<Spot> look_in(const fs::path& process) {
  auto path = os::cgroup_of(process);
  const auto stat = os::read_stat(process);
  if (!path || !stat || stat->started == 0) return std::nullopt;
  return Spot{.path = *std::move(path), .started = stat->started, .parent = stat->parent};
}

void walk(const os::FileDescriptor& directory, const std::string& path, std::size_t depth,
          const struct stat& of_root, std::vector<std::string>& leaves) {
  struct stat status {};
  if (!directory || fstat(directory.get(), &status) != 0 || !belongs_to_root(status, of_root)) return;
  if (leaf_at(path)) leaves.push_back(path);
  if (depth == kDeepest) return;
  const std::string prefix = path.empty() ? path : path + '/';
  const auto names = os::subdirectories(directory.get());
  if (!names) return;
  for (const std::string& name : *names) {
    std::string child = prefix;
    walk(os::open_child(directory.get(), name.c_str()), child += name, depth + 1, of_root, leaves);
  }
}

}  // namespace

std::string leaf_prefix(std::string_view name) {
  std::string prefix;
  for (const char c : name) {
    if (c == '@') {
      prefix += kAt;
    } else if (c == '\\') {
      prefix += kBackslash;
    } else {
      prefix += c;
    }
  }
  return prefix.append(kInfix);
}

std::string leaf_path(const Leaf& leaf, bool scope) {
  const auto name = model::last_component(leaf.origin);
  return fmt::format("{}{}{}-{}{}", leaf.origin.substr(0, leaf.origin.size() - name.size()),
                     leaf_prefix(name), leaf.pid, leaf.started, scope ? kScopeSuffix : "");
}

std::optional<Leaf> leaf_at(std::string_view path) {
  const std::size_t infix = path.rfind(kInfix);
  if (infix == path.npos) return std::nullopt;
  const auto name = model::last_component(path.substr(0, infix));
  if (name.empty()) return std::nullopt;
  std::string origin(path.substr(0, infix - name.size()));
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool at = name.substr(i).starts_with(kAt);
    const bool escaped = at || name.substr(i).starts_with(kBackslash);
    origin += at ? '@' : name[i];  // what is left of an escaped backslash is one
    if (escaped) i += kAt.size() - 1;
  }
  std::string_view process = path.substr(infix + kInfix.size());
  if (is_scope(process)) process.remove_suffix(kScopeSuffix.size());
  const std::size_t dash = process.find('-');
  if (dash == process.npos) return std::nullopt;
  const auto pid = model::to_number<pid_t>(process.substr(0, dash));
  const auto started = model::to_number<std::uint64_t>(process.substr(dash + 1));
  if (!pid || *pid <= 0 || !started) return std::nullopt;
  return Leaf{.origin = std::move(origin), .pid = *pid, .started = *started};
}

bool is_trusted_ground(const fs::path& root, std::string_view path) {
  struct stat of_root {};
  if (stat(root.c_str(), &of_root) != 0) return false;
  for (std::string_view each = path; !each.empty(); each = model::parent_path(each)) {
    struct stat status {};
    if (lstat((root / each).c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
    if (!belongs_to_root(status, of_root)) return false;
  }
  return true;
}

std::optional<std::string> bounds_of(const Cgroup& cgroup, const std::map<Attribute, Value>& originals,
                                     const fs::path& root, bool pids) {
  for (const Attribute attribute :
       {Attribute::cpus, Attribute::cpu_quota, Attribute::memory_high, Attribute::cpu_idle}) {
    const auto held = originals.find(attribute);
    const auto value =
        held != originals.end() ? model::Result<Value>(held->second) : read_value(cgroup, attribute);
    if (!value) return value.error().message();
    if (!bounds(cgroup, *value, root)) continue;
    if (const auto* priority = std::get_if<CpuIdle>(&*value); priority != nullptr && !priority->idle)
      return fmt::format("cpu.weight is {}", priority->weight);
    return fmt::format("{} is {}", control_file(attribute), to_text(*value));
  }
  const auto differs = [&](const char* file, std::string_view unset) -> std::optional<std::string> {
    const auto text = cgroup.read(file);
    if (!text) return std::nullopt;  // its controller is off
    const std::string_view value = trimmed(*text);
    if (value == unset) return std::nullopt;
    return fmt::format("{} is {}", file, model::to_name(value.substr(0, value.find('\n'))));
  };
  for (const Unset& unset : kUnset) {
    if (auto found = differs(unset.file, unset.value)) return found;
  }
  for (const std::string& file : huge_page_files(root / cgroup.path())) {
    if (auto found = differs(file.c_str(), "max")) return found;
  }
  for (const char* file : {"misc.max", "rdma.max"}) {
    const auto text = cgroup.read(file);
    if (text && !is_all_max(*text)) return fmt::format("{} is {}", file, model::to_name(trimmed(*text)));
  }
  return pids ? differs("pids.max", "max") : std::nullopt;
}

LeafHands kernel_hands(const fs::path& proc_root) {
  return {
      .look = [proc_root](pid_t pid) { return look_in(proc_root / std::to_string(pid)); },
      .move = [](const Cgroup& to, pid_t pid) { return to.write("cgroup.procs", std::to_string(pid)); },
      .make = [](const fs::path& directory) -> model::Result<void> {
        // Sets the mode that cgroups have, whatever this process's mask is.
        constexpr mode_t kMode = 0755;
        if (mkdir(directory.c_str(), kMode) != 0 && errno != EEXIST)
          return model::fail(failed(errno, "making", directory));
        if (chmod(directory.c_str(), kMode) != 0) return model::fail(failed(errno, "making", directory));
        return {};
      },
      .remove = [](const fs::path& directory) -> model::Result<void> {
        if (rmdir(directory.c_str()) == 0 || errno == ENOENT) return {};
        return model::fail(failed(errno, "removing", directory));
      },
  };
}

std::vector<pid_t> pids_in(const Cgroup& cgroup) {
  std::set<pid_t> pids;
  const auto text = cgroup.read("cgroup.procs");
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    if (const auto pid = model::to_number<pid_t>(model::take_line(rest)); pid && *pid > 0) pids.insert(*pid);
  }
  return {pids.begin(), pids.end()};
}

void send_home(const fs::path& root, const Cgroup& from, pid_t pid, const LeafHands& hands) {
  const auto spot = hands.look(pid);
  const auto parent = spot ? hands.look(spot->parent) : std::nullopt;
  if (!parent || spot->path != from.path() || parent->path == from.path()) return;
  if (const auto home = Cgroup::open(root, parent->path)) (void)hands.move(**home, pid);
}

model::Result<bool> move_process(const fs::path& root, const Cgroup& from, const Cgroup& to, pid_t pid,
                                 std::uint64_t started, const LeafHands& hands) {
  const auto before = hands.look(pid);
  if (!before || before->started != started || before->path != from.path()) return false;
  const auto moved = hands.move(to, pid);
  if (!moved && moved.error().kind() == model::ErrorKind::gone) return false;
  if (!moved) return model::fail(moved.error());
  const auto after = hands.look(pid);
  if (!after || after->started == started) return true;
  send_home(root, to, pid, hands);
  return false;
}

namespace {

// Moves all processes that live in `from`, and counts them. `problem` is the reason where one stays.
void empty_out(const fs::path& root, const Cgroup& from, const Cgroup& to, const LeafHands& hands,
               PutBack& done) {
  for (int pass = 0; pass < kPasses; ++pass) {
    done.problem.reset();
    for (const pid_t pid : pids_in(from)) {
      const auto spot = hands.look(pid);
      const auto moved = spot ? move_process(root, from, to, pid, spot->started, hands) : false;
      if (!moved) done.problem = moved.error().message();
      if (moved && *moved) ++done.processes;
    }
  }
  if (!done.problem && !pids_in(from).empty())
    done.problem = "new processes start faster than berth can move them";
}

}  // namespace

std::optional<PutBack> put_back_leaf(const fs::path& root, const std::string& leaf, const LeafHands& hands) {
  const auto named = leaf_at(leaf);
  if (!named || !is_trusted_ground(root, leaf)) return std::nullopt;
  const auto from = Cgroup::open(root, leaf);
  if (!from) return std::nullopt;
  PutBack done{.leaf = leaf, .origin = named->origin};
  const bool own = !is_scope(leaf);
  if (const auto spot = hands.look(named->pid); spot && spot->started != named->started)
    send_home(root, **from, named->pid, hands);
  if (!pids_in(**from).empty()) {
    if (fgetxattr((*from)->fd(), kDecommissionedMark, nullptr, 0) >= 0) {
      done.problem = "its executor was asked to end, and stays until then";
      return done;
    }
    const auto to = Cgroup::open(root, named->origin);
    // A unit without processes is about to end, and would end these too.
    const auto there = to && !own ? is_populated(**to) : model::Result<bool>(static_cast<bool>(to));
    if (!there || !*there) {
      done.problem =
          fmt::format("its origin \"{}\" is gone, so it stays until its processes end", named->origin);
      return done;
    }
    empty_out(root, **from, **to, hands, done);
  }
  if (own && pids_in(**from).empty()) {
    if (const auto removed = hands.remove(root / leaf); !removed) done.problem = removed.error().message();
  }
  return done;
}

std::vector<PutBack> put_back_leaves(const fs::path& root, const LeafHands& hands) {
  std::vector<std::string> leaves;
  struct stat of_root {};
  if (stat(root.c_str(), &of_root) == 0) walk(os::open_beneath(root, ""), "", 0, of_root, leaves);
  std::vector<PutBack> done;
  for (const std::string& leaf : leaves) {
    if (auto back = put_back_leaf(root, leaf, hands)) done.push_back(*std::move(back));
  }
  return done;
}

}  // namespace berth::cgroup

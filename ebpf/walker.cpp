// SPDX-License-Identifier: Apache-2.0
#include "ebpf/walker.h"

#include "ebpf/collector.h"
#include "ebpf/load.h"
#include "os/beneath.h"
#include "os/directory.h"
#include "os/file_descriptor.h"
#include "walk_cgroup.skel.h"
#include "walk_css.skel.h"
#include "walk_css_old.skel.h"

#include <array>
#include <bit>
#include <cerrno>
#include <memory>
#include <string>
#include <type_traits>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace berth::ebpf {

namespace {

using model::Result;

// The carriers differ in the work of one read(2) of the iterator; their maps and names are the same.
template <typename Skeleton>
class IteratorWalker final : public Walker {
 public:
  static constexpr bool kByCgroup = std::is_same_v<Skeleton, bpf_walk_cgroup>;

  IteratorWalker(Options options, std::uint64_t root_id, os::FileDescriptor root)
      : options_(std::move(options)), root_id_(root_id), root_(std::move(root)) {}

  void set_detail(const std::string& detail) { detail_ = detail; }
  const char* name() const override { return kByCgroup ? "iter-cgroup" : "iter-css"; }

  Result<void> load_for(std::uint32_t capacity) {
    const char* log = kByCgroup                                ? "walk_cgroup"
                      : std::is_same_v<Skeleton, bpf_walk_css> ? "walk_css"
                                                               : "walk_css_old";
    auto loaded = load<Skeleton>(log, options_.log_directory, [&](Skeleton& programs) {
      bpf_map__set_max_entries(programs.maps.walked, capacity);
      if constexpr (!kByCgroup) programs.rodata->root_id = root_id_;
    });
    if (!loaded) return model::fail(std::move(loaded.error()));
    auto mapped = MappedArray<berth_walked>::map((*loaded)->maps.walked, capacity, false);
    if (!mapped) return model::fail(std::move(mapped.error()));
    Link link;
    auto attached = attempt(log, options_.log_directory, [&] {
      LIBBPF_OPTS(bpf_iter_attach_opts, how);
      bpf_iter_link_info where{};
      if constexpr (kByCgroup) {
        where.cgroup.cgroup_fd = static_cast<std::uint32_t>(root_.get());
        where.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
        how.link_info = &where;
        how.link_info_len = sizeof(where);
      }
      link.reset(bpf_program__attach_iter((*loaded)->progs.walk, &how));
      return link ? 0 : failure();
    });
    if (!attached) return model::fail(std::move(attached.error()));
    session_ = {};
    programs_ = std::move(*loaded);
    walked_ = std::move(*mapped);
    link_ = std::move(link);
    capacity_ = capacity;
    return {};
  }

  Result<std::span<const berth_walked>> walk(bool with_usage) override {
    while (true) {
      if (auto done = run(with_usage); !done) return model::fail(std::move(done.error()));
      const std::uint32_t count = __atomic_load_n(&programs_->bss->walked_count, __ATOMIC_RELAXED);
      if (count == 0)
        return model::fail(model::ErrorKind::io, "walking the cgroups in the kernel found none");
      if (count > kMostCgroups) return model::fail(too_many_cgroups());
      if (count <= capacity_) return std::span<const berth_walked>(walked_.data(), count);
      if (auto grown = load_for(std::bit_ceil(2 * count)); !grown)
        return model::fail(std::move(grown.error()));
    }
  }

 private:
  Result<void> run(bool with_usage) {
    // A session over tasks stays at its first task; a session over cgroups ends.
    if (kByCgroup || !session_) {
      session_ = {};
      session_ = os::FileDescriptor(bpf_iter_create(bpf_link__fd(link_.get())));
      if (!session_) return model::fail(model::Error::from_errno(errno, "starting a walk over the cgroups"));
    }
    programs_->bss->walked_count = 0;
    programs_->bss->with_usage = with_usage;
    std::array<char, 64> nothing{};
    ssize_t got = 0;
    do {
      got = read(session_.get(), nothing.data(), nothing.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (kByCgroup || errno != EAGAIN)) {
      return model::fail(model::Error::from_errno(errno, "walking the cgroups in the kernel"));
    }
    return {};
  }

  Options options_;
  std::uint64_t root_id_ = 0;
  os::FileDescriptor root_;
  Owned<Skeleton> programs_;
  MappedArray<berth_walked> walked_;
  Link link_;
  os::FileDescriptor session_;
  std::uint32_t capacity_ = 0;
};

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
};

// Appends the reason to `reasons` where this carrier does not work here. One walk is part of the trial.
template <typename Skeleton>
std::unique_ptr<Walker> try_carrier(const Options& options, std::uint32_t capacity, std::string& reasons) {
  os::FileDescriptor root(open(options.cgroup_root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat about {};
  const auto failed = [&](const std::string& why) {
    if (!reasons.empty()) reasons += "; ";
    reasons += why;
    return nullptr;
  };
  if (!root || fstat(root.get(), &about) != 0) {
    return failed(model::Error::from_errno(errno, "opening " + options.cgroup_root.string()).message());
  }
  auto made = std::make_unique<IteratorWalker<Skeleton>>(options, about.st_ino, std::move(root));
  if (auto loaded = made->load_for(capacity); !loaded) return failed(loaded.error().message());
  if (auto walked = made->walk(true); !walked) return failed(walked.error().message());
  made->set_detail(reasons);
  return made;
}

// Deeper groups are too many descriptors at once.
constexpr int kMostLevels = 64;

// A directory that vanishes meanwhile is left out with all below it. So is a file system that a user mounted
// there: its numbers are no cgroups, and it may never answer. False where there are too many.
bool scan_below(int parent_fd, std::uint64_t parent, int level, std::vector<ScannedGroup>& found) {
  const auto names = os::subdirectories(parent_fd, kMostCgroups);
  if (!names) return true;
  for (const std::string& name : *names) {
    const os::FileDescriptor fd = os::open_child(parent_fd, name.c_str());
    struct stat about {};
    if (!fd || fstat(fd.get(), &about) != 0) continue;
    if (found.size() >= kMostCgroups || level >= kMostLevels) return false;
    found.push_back({about.st_ino, parent});
    if (!scan_below(fd.get(), about.st_ino, level + 1, found)) return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Walker>> Walker::start(const Options& options, std::uint32_t capacity) {
  const std::unique_ptr<btf, FreeBtf> kernel(btf__load_vmlinux_btf());
  const auto has = [&](const char* function) {
    return kernel && btf__find_by_name_kind(kernel.get(), function, BTF_KIND_FUNC) > 0;
  };
  std::string reasons;
  std::unique_ptr<Walker> made;
  if (!has("bpf_iter_css_new")) {
    reasons = "this kernel has no bpf_iter_css_new (Linux 6.7)";
  } else if (has("css_rstat_flush")) {
    made = try_carrier<bpf_walk_css>(options, capacity, reasons);
  } else {
    made = try_carrier<bpf_walk_css_old>(options, capacity, reasons);
  }
  if (!made) made = try_carrier<bpf_walk_cgroup>(options, capacity, reasons);
  if (!made) return model::fail(model::ErrorKind::unavailable, reasons);
  return made;
}

model::Result<std::vector<ScannedGroup>> scan_tree(const std::filesystem::path& root) {
  const os::FileDescriptor fd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat about {};
  if (!fd || fstat(fd.get(), &about) != 0) {
    return model::fail(model::Error::from_errno(errno, "opening the cgroup tree at " + root.string()));
  }
  std::vector<ScannedGroup> found{{about.st_ino, 0}};
  if (!scan_below(fd.get(), about.st_ino, 1, found)) return model::fail(too_many_cgroups());
  return found;
}

}  // namespace berth::ebpf

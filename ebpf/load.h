// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace berth::ebpf {

// Owns a skeleton made by bpftool.
template <typename Skeleton>
struct Destroy {
  void operator()(Skeleton* skeleton) const { Skeleton::destroy(skeleton); }
};
template <typename Skeleton>
using Owned = std::unique_ptr<Skeleton, Destroy<Skeleton>>;

// Runs a step of libbpf that returns 0 or a negative errno, and keeps libbpf's messages, the verifier's log
// among them. If the step fails, they are written to LOG_DIRECTORY/NAME.log. The error names that file and
// quotes the most useful line.
model::Result<void> attempt(const std::string& name, const std::filesystem::path& log_directory,
                            const std::function<int()>& step);

// The error of a step that failed and should have set errno.
inline int failure() { return errno != 0 ? -errno : -ENOMEM; }

// Opens a skeleton, lets `configure` set its maps' sizes and constants, and loads it.
template <typename Skeleton, typename Configure>
model::Result<Owned<Skeleton>> load(const std::string& name, const std::filesystem::path& log_directory,
                                    Configure configure) {
  Owned<Skeleton> made;
  auto done = attempt(name, log_directory, [&] {
    made.reset(Skeleton::open());
    if (!made) return failure();
    configure(*made);
    return Skeleton::load(made.get());
  });
  if (!done) return model::fail(std::move(done.error()));
  return made;
}

struct DestroyLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Link = std::unique_ptr<bpf_link, DestroyLink>;

// The memory of an array map that may be mapped.
template <typename T>
class MappedArray {
 public:
  static_assert(sizeof(T) % 8 == 0, "elements of an array map start at multiples of eight");
  MappedArray() = default;
  MappedArray(MappedArray&& other) noexcept { *this = std::move(other); }
  MappedArray& operator=(MappedArray&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedArray() {
    if (at_) munmap(at_, bytes_);
  }

  static model::Result<MappedArray> map(const bpf_map* map, std::size_t elements, bool writable) {
    MappedArray made;
    made.bytes_ = elements * sizeof(T);
    void* at = mmap(nullptr, made.bytes_, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                    bpf_map__fd(map), 0);
    if (at == MAP_FAILED) {
      return model::fail(
          model::Error::from_errno(errno, std::string("mapping the BPF map ") + bpf_map__name(map)));
    }
    made.at_ = at;
    return made;
  }
  T* data() const { return static_cast<T*>(at_); }

 private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace berth::ebpf

// SPDX-License-Identifier: Apache-2.0
#include "os/resident_memory.h"

#include <cstddef>
#include <cstdint>

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace berth::os {

namespace {

// Segments mapped without write permission: the file has their content too. Relocated data is in other
// segments.
int release_segments(dl_phdr_info* object, std::size_t, void* page_size) {
  const auto page = *static_cast<const std::uintptr_t*>(page_size);
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // Where the kernel refuses, as for its own pages, they stay.
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
  }
  return 0;
}

}  // namespace

void release_start_memory() {
  malloc_trim(0);
  auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  dl_iterate_phdr(release_segments, &page);
}

}  // namespace berth::os

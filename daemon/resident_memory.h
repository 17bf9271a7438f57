// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::daemon {

// Lets go of memory that only the start needed: of freed heap, and of the pages of code and constants, the
// libraries' too, which stay in the page cache and come back as they are used (MADV_DONTNEED of what is
// mapped from files and never written, madvise(2)). What parses, connects and loads is half of what is
// mapped, and a page that nobody maps is one that the kernel can take without asking.
void release_start_memory();

}  // namespace berth::daemon

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::os {

// Releases memory that only the start needed: freed heap, and the pages of code and constants, the libraries'
// too. Those pages stay in the page cache and come back on use. It calls MADV_DONTNEED (madvise(2)) on file
// mappings that are never written.
//
// Half of the mapped memory is only for parsing, connecting and loading. The kernel can reclaim pages without
// a mapping at once.
void release_start_memory();

}  // namespace berth::os

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A program that every verifier refuses: it may look where no memory is.
#include "ebpf/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/refused")
int refused(void *unused) {
  return *(volatile int *)16;
}

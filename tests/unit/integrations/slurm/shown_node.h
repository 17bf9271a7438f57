// SPDX-License-Identifier: Apache-2.0
// Answers of `scontrol show node`, as Slurm 22.05 and 24.11 print them.
#pragma once

#include <string>

namespace berth::slurm::test {

struct Shown {
  std::string name = "n1";
  std::string gres = "becpu:8";
  std::string state = "IDLE";
  std::string weight = "1";
  std::string version = "22.05.8";
  std::string tail = {};  // lines after the figures: reason, comment, extra
};

inline std::string shown(const Shown& node) {
  return "NodeName=" + node.name +
         " Arch=x86_64 CoresPerSocket=4 \n"
         "   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=5.40\n"
         "   AvailableFeatures=(null)\n"
         "   ActiveFeatures=(null)\n"
         "   Gres=" +
         node.gres +
         "\n"
         "   NodeAddr=127.0.0.1 NodeHostName=ctl Port=17001 Version=" +
         node.version +
         "\n"
         "   OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC State=FOO Weight=99 \n"
         "   RealMemory=32000 AllocMem=0 FreeMem=16256 Sockets=1 Boards=1\n"
         "   State=" +
         node.state + " ThreadsPerCore=2 TmpDisk=0 Weight=" + node.weight +
         " Owner=N/A MCS_label=N/A\n"
         "   Partitions=p \n"
         "   BootTime=2026-11-24T22:38:08 SlurmdStartTime=2026-11-24T22:48:11\n"
         "   CfgTRES=cpu=8,mem=32000M,billing=8\n"
         "   AllocTRES=\n"
         "   CurrentWatts=0 AveWatts=0\n" +
         node.tail + "\n";
}

}  // namespace berth::slurm::test

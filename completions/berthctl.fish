# SPDX-License-Identifier: Apache-2.0
# Fish completion of berthctl(1); a test holds it against `berthctl --help`.

function __berthctl_workloads
    berthctl list --ids 2>/dev/null
end

# Whether the next word is the command.
function __berthctl_needs_command
    not string match -qr '^[a-z]' -- (commandline -opc)[2..-1]
end

# Whether one of these is the command, and the next word its first argument: words that begin with "-" do not count.
function __berthctl_first_of
    set -l words (string match -rv '^-' -- (commandline -opc)[2..-1])
    test (count $words) -eq 1; and contains -- $words[1] $argv
end

function __berthctl_command
    __fish_seen_subcommand_from $argv
end

complete -c berthctl -f
complete -c berthctl -l help -d 'Print a summary and exit'
complete -c berthctl -l json -d 'Print JSON instead of text'
complete -c berthctl -n __berthctl_needs_command -l version -d 'Print the version and exit'
complete -c berthctl -n '__berthctl_needs_command; or __berthctl_command status list topology snapshot metrics profile plan explain log replay rank backtest suggest' -l no-pager -d 'Print long output at once'

complete -c berthctl -n __berthctl_needs_command -a status -d 'Mode, capabilities of the host, the last actions'
complete -c berthctl -n __berthctl_needs_command -a list -d 'The workloads: class, vCPUs, use, pressure, score'
complete -c berthctl -n __berthctl_needs_command -a top -d 'The same, live, with the processors drawn'
complete -c berthctl -n __berthctl_needs_command -a topology -d 'The processors, of this host or another one'
complete -c berthctl -n __berthctl_needs_command -a snapshot -d 'The last tick\'s snapshot, as JSON'
complete -c berthctl -n __berthctl_needs_command -a metrics -d 'The daemon\'s metrics, as text that Prometheus reads'
complete -c berthctl -n __berthctl_needs_command -a profile -d 'The learned interference models: list, show, export, import, forget, fit'
complete -c berthctl -n __berthctl_needs_command -a plan -d 'The actions for now or for a given snapshot, and their reasons'
complete -c berthctl -n __berthctl_needs_command -a explain -d 'Why a workload is treated as it is, or a decision was made'
complete -c berthctl -n __berthctl_needs_command -a blame -d 'The work that ran while a service\'s threads waited for a vCPU'
complete -c berthctl -n __berthctl_needs_command -a log -d 'The newest decisions'
complete -c berthctl -n __berthctl_needs_command -a watch -d 'Follow the decisions as berthd makes them'
complete -c berthctl -n __berthctl_needs_command -a record -d 'Record the ticks of berthd in one compressed file'
complete -c berthctl -n __berthctl_needs_command -a replay -d 'The decisions over a recorded time, with these or other settings'
complete -c berthctl -n __berthctl_needs_command -a rank -d 'The places for new work on one or many hosts, best first'
complete -c berthctl -n __berthctl_needs_command -a trial -d 'Compare two settings on this host, in windows of both in random order'
complete -c berthctl -n __berthctl_needs_command -a backtest -d 'How well each method would have forecast recorded memory'
complete -c berthctl -n __berthctl_needs_command -a serve -d 'Answer a Kubernetes scheduler as its extender'
complete -c berthctl -n __berthctl_needs_command -a mode -d 'Switch between observing and enforcing'
complete -c berthctl -n __berthctl_needs_command -a set -d 'Change how berth treats one workload, until it ends'
complete -c berthctl -n __berthctl_needs_command -a admit -d 'Ask to start new work on this host, and reserve its place'
complete -c berthctl -n __berthctl_needs_command -a evict -d 'End a best-effort workload, gently first'
complete -c berthctl -n __berthctl_needs_command -a progress -d 'Report how far a workload\'s task is'
complete -c berthctl -n __berthctl_needs_command -a restore -d 'Put back every attribute that berth changed'
complete -c berthctl -n __berthctl_needs_command -a suggest -d 'Write a first configuration from what runs here'
complete -c berthctl -n __berthctl_needs_command -a check-config -d 'Read a configuration and report the first error'
complete -c berthctl -n __berthctl_needs_command -a reload -d 'Make the daemon read its configuration again'

complete -c berthctl -n '__berthctl_command list' -l spark -d 'Spark applications and the order of eviction'
complete -c berthctl -n '__berthctl_command list' -l ids -d 'The ids alone, one a line'
complete -c berthctl -n '__berthctl_command list' -l model -d 'The interference model of each service'
complete -c berthctl -n '__berthctl_first_of profile' -a 'list show export import forget fit'
complete -c berthctl -n '__berthctl_command profile' -l file -r -F -d 'Read the profiles of this file'
complete -c berthctl -n '__berthctl_command profile' -l sums -d 'Print the profiles that observations make'
complete -c berthctl -n '__berthctl_command profile' -F
complete -c berthctl -n '__berthctl_command metrics' -l openmetrics -d 'In the format OpenMetrics 1.0'
complete -c berthctl -n '__berthctl_command top' -l interval -x -d 'Time between two refreshes'
complete -c berthctl -n '__berthctl_command top' -s n -x -d 'End after so many frames'
complete -c berthctl -n '__berthctl_command top' -l once -d 'Print one frame and end'
complete -c berthctl -n '__berthctl_command topology' -l xml -r -F -d 'Draw this hwloc XML export, - for standard input'
complete -c berthctl -n '__berthctl_command topology' -l synthetic -x -d 'Draw this hwloc synthetic description'
complete -c berthctl -n '__berthctl_command plan explain rank' -l snapshot -r -F -d 'Read this snapshot'
complete -c berthctl -n '__berthctl_command plan explain rank profile replay serve' -l config -r -F -d 'Settings of this file'
complete -c berthctl -n '__berthctl_command plan' -l policy -x -a 'interference straggler eviction oversell placement quota' -d 'Run this policy only'
complete -c berthctl -n '__berthctl_command plan rank profile replay serve' -s o -x -d 'Override one setting'
complete -c berthctl -n '__berthctl_command record' -s o -r -F -d 'Write this file, - for standard output'
complete -c berthctl -n '__berthctl_command record' -l for -x -d 'Time for which it records'
complete -c berthctl -n '__berthctl_command record' -l observations -d 'Write observations in place of a trace'
complete -c berthctl -n '__berthctl_command replay' -l observations -r -F -d 'Write observations in place of decisions'
complete -c berthctl -n '__berthctl_command replay' -l compare -r -F -d 'Decide with the settings of this file too'
complete -c berthctl -n '__berthctl_command replay' -l report -r -F -d 'Write a page with plots'
complete -c berthctl -n '__berthctl_command replay' -l measured -r -F -d 'Show what trial or blame measured in the page'
complete -c berthctl -n '__berthctl_command replay' -s n -x -d 'Show so many decisions'
complete -c berthctl -n '__berthctl_first_of replay' -F
complete -c berthctl -n '__berthctl_command rank admit' -l request -r -F -d 'The request'
complete -c berthctl -n '__berthctl_command log explain' -l since -x -a 'today yesterday 1h 10min' -d 'Not older than this'
complete -c berthctl -n '__berthctl_command log watch' -l workload -x -a '(__berthctl_workloads)' -d 'Of this workload'
complete -c berthctl -n '__berthctl_command log explain watch' -l policy -x -a 'interference straggler eviction oversell placement quota operator foreign-writer' -d 'Of this policy'
complete -c berthctl -n '__berthctl_command log explain watch' -l kind -x -a 'pin unpin set-cpu-quota set-memory-high set-memory-nodes set-cpu-priority set-cpu-burst evict advertise admit restore leaf foreign interrupts' -d 'Of this kind'
complete -c berthctl -n '__berthctl_command watch' -s n -x -d 'End after so many'
complete -c berthctl -n '__berthctl_command log' -s n -x -d 'How many, newest first'
complete -c berthctl -n '__berthctl_command admit' -l hold -x -d 'How long its place is kept'
complete -c berthctl -n '__berthctl_command serve' -l listen -x -d 'Answer here'
complete -c berthctl -n '__berthctl_command serve' -l snapshots -x -d 'Take snapshots here'
complete -c berthctl -n '__berthctl_command serve' -l domain -x -d 'The domain of the resources'
complete -c berthctl -n '__berthctl_command serve' -l max-age -x -d 'Seconds for which a snapshot is believed'
complete -c berthctl -n '__berthctl_command serve' -l hold -x -d 'Seconds for which a placed pod counts'
complete -c berthctl -n '__berthctl_command serve' -l pause -x -d 'Seconds between two snapshots of a host'
complete -c berthctl -n '__berthctl_command trial' -l a -r -F -d 'Settings of one side'
complete -c berthctl -n '__berthctl_command trial' -l b -r -F -d 'Settings of the other side'
complete -c berthctl -n '__berthctl_command trial' -l for -x -d 'Time that the trial takes'
complete -c berthctl -n '__berthctl_command trial' -l window -x -d 'Time of one window'
complete -c berthctl -n '__berthctl_command trial' -l metric -x -d 'Compare a number that this command prints'
complete -c berthctl -n '__berthctl_command trial' -l keep -x -a 'runq-p99 runq-median cpi throttled progress batch-cpu metric' -d 'Keep the side that is better in this figure'
complete -c berthctl -n '__berthctl_command trial' -l seed -x -d 'Of the order of the windows'
complete -c berthctl -n '__berthctl_first_of backtest' -a memory
complete -c berthctl -n '__berthctl_command backtest' -F
complete -c berthctl -n '__berthctl_command backtest' -l capacity -x -d 'The memory that there is'
complete -c berthctl -n '__berthctl_command backtest' -l reserve -x -d 'Memory kept free'
complete -c berthctl -n '__berthctl_command backtest' -l horizon -x -d 'How long freeing memory takes'
complete -c berthctl -n '__berthctl_command admit' -l list -d 'Show all reservations'
complete -c berthctl -n '__berthctl_command admit' -l cancel -x -d 'Give up the reservation of this request'
complete -c berthctl -n '__berthctl_command blame' -l for -x -d 'How long'
complete -c berthctl -n '__berthctl_command suggest' -l for -x -d 'Time of the look'
complete -c berthctl -n '__berthctl_command check-config' -l no-unit -d 'Also take what the unit forbids'
complete -c berthctl -n '__berthctl_command evict' -l yes -d 'Do not ask'
complete -c berthctl -n '__berthctl_command set' -l reset -d 'Take back all earlier settings'
complete -c berthctl -n '__berthctl_command rank check-config' -F

complete -c berthctl -n '__berthctl_first_of explain set evict progress blame' -a '(__berthctl_workloads)' -d workload
complete -c berthctl -n '__berthctl_first_of progress' -a self -d 'the workload of this shell'
complete -c berthctl -n '__berthctl_first_of mode' -a 'observe enforce'
complete -c berthctl -n '__berthctl_command set; and not __berthctl_first_of set' -a 'class=latency-sensitive class=best-effort service= vcpus= isolation=shared isolation=vcpus isolation=cores deadline= priority= evictable=true evictable=false force=true force=false'

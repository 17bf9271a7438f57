# SPDX-License-Identifier: Apache-2.0
# The links of the pages, from their places in the sources to those in the packages. Run by debian/rules over each
# installed page with sed -E; tests/package/links finds links that lead nowhere.
s!\(\.\./\.\./docs/!(!g
s!\(\.\./tests/bench/README\.md!(bench.md!g
s!\(\.\./\.\./tests/bench/README\.md!(../bench.md!g
s!\(\.\./integrations/kubernetes/manifests/!(../berth-kube/examples/!g
s!\(\.\./integrations/slurm/job_submit!(../berth-slurm/examples/job_submit!g
# Manual pages and sources are in no directory below; the text names them.
s!\[[^]]*\]\(\.\./man/([a-z-]+)\.([1-8])\)!\1(\2)!g
s!\[[^]]*\]\(\.\./(tests/[^)]*\.(h|cpp))\)!`\1`!g

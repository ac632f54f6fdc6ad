"""Job control: what keeps a job alive through failures. docs/guides/keep-a-job-alive.md shows its use.

It decides by pure functions (policy, halting), the loop around them (loop) is short, and whatever a
site may have to adapt is a small class with one job (roles): a resource manager, a launcher, a test of
nodes, a way to run commands on nodes. It parses no record and no setting: it asks the native command
(native), and reads the log that the library writes for programs (job_log).
"""

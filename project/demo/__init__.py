"""The demo behind `make demo`: real orders, real processes, real kill -9, and an audit.

`manage.py demo` runs in two processes. The outer one (`launcher`) owns the servers and, at the
end, whatever is still alive. The inner one (`show`) runs on them:

| module | what it does |
| --- | --- |
| options, plan | what was asked for; the figures of one run that follow from it |
| launcher, interrupts, sweep | servers, the inner process, no orphans |
| show, run, background | the inner process, its steps, its threads |
| fleet, crew | start, restart and stop processes; which ones there are |
| load | orders over HTTP |
| killing, freezing, refusal | kill -9, SIGSTOP and SIGCONT, and how the zombie was refused |
| evidence, facts, audit, recovery | what happened, whether it was right, how fast it healed |
| progress, report, table | what people see |
| unguarded | the storage of GUARD=off, under which the audit must fail |
"""

"""Entry point of a worker process: ``python -m jobqueue.runtime.child <spec as JSON>``.

Spawned, not forked: it shares no connection, lock or random state with its supervisor.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback


def main() -> int:
    """Set up Django as the supervisor had it, and run the worker; return its exit code."""
    from jobqueue.runtime.exit_codes import CLEAN, MISCONFIGURED, RECYCLED
    from jobqueue.runtime.spec import ChildSpec
    from jobqueue.runtime.terminal import share_terminal

    spec = ChildSpec.load(sys.argv[1])
    share_terminal(spec.log_format)
    sys.path[:] = list(spec.sys_path)
    if spec.settings_module:
        os.environ["DJANGO_SETTINGS_MODULE"] = spec.settings_module
    try:
        import django

        django.setup()
        from jobqueue.runtime.worker import Worker

        worker = Worker(spec)
    except Exception as error:
        traceback.print_exc()
        if not spec.reload:
            return MISCONFIGURED
        from jobqueue.runtime.code_files import wait_for_repair

        return RECYCLED if wait_for_repair(error, spec.control_fd) else CLEAN
    gc.freeze()  # what is imported stays: going through it again and again would slow every job
    return worker.run()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)

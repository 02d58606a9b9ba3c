"""The sandbox: namespaces, mounts and filters around one harness.

`spec` and `plan` are pure; `child` makes the stage process; everything below them runs in the stage and in PID 1.
This file imports nothing, so that `import amem.sandbox.child` stays a matter of a few milliseconds.
"""

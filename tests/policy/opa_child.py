"""Run in a child of its own (a Go runtime with threads): evaluate a policy with OPA over many inputs, and say how long it took.

stdin: {library, modules: [[name, text]], data, inputs: [...], repeat}. stdout: {answers: [[value] or [null, error]], us: [...]}.
"""

import json
import statistics
import sys
import time


def main() -> None:
    job = json.load(sys.stdin)
    sys.path.insert(0, job["library"])
    from opa_bindings import OpaEngine, OpaError  # type: ignore[import-not-found]

    engine = OpaEngine()
    for name, text in job["modules"]:
        engine.add_policy(name, text)
    engine.add_data(job["data"])
    answers, taken = [], []
    for asked in job["inputs"]:
        times = []
        for _ in range(job["repeat"]):
            start = time.perf_counter()
            try:
                answer = [engine.eval_document("amem.decision", asked)]
            except OpaError as error:
                answer = [None, str(error)]
            times.append((time.perf_counter() - start) * 1e6)
        answers.append(answer)
        taken.append(statistics.median(times))
    json.dump({"answers": answers, "us": taken}, sys.stdout)


if __name__ == "__main__":
    main()

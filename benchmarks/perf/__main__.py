"""`python -m benchmarks.perf TABLE_FOLDER... --json FILE`."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before numpy is imported: the matrices are small

if __name__ == "__main__":
    from benchmarks.perf.report import main

    main()
